"""What kc does with the streams, descriptors and signals that it is started with."""

import os
import signal
import subprocess
import time

from kc_test import KC, KcTest, main, tile


class Streams(KcTest):
    def test_a_result_that_cannot_be_written_is_exit_3(self):
        self.make_units(1)
        env = self.with_fake()
        for arguments in (["build"], ["build", "--format=json"], ["plan"], ["show", "kernels.kcb"], ["verify", "kernels.kcb"]):
            with self.subTest(arguments), open("/dev/full", "wb") as full:
                done = subprocess.run([KC, *arguments], cwd=self.work, env=env, stdout=full, stderr=subprocess.PIPE)
                self.assertEqual(done.returncode, 3)
                self.assertIn(b"stdout", done.stderr)

    def test_closed_descriptors_do_not_become_files_of_kc(self):
        self.make_units(2)
        env = self.with_fake()
        done = subprocess.run(["sh", "-c", f"exec {KC} build 0<&- 1>&- 2>&-"], cwd=self.work, env=env)
        self.assertEqual(done.returncode, 0)
        self.kc("verify", "kernels.kcb")
        self.kc("store", "verify")

    def test_a_reader_that_goes_away_costs_nobody_the_bundle(self):
        self.make_units(200)
        subprocess.run(["sh", "-c", f"{KC} build -v -j4 | head -1"], cwd=self.work, env=self.with_fake(), stdout=subprocess.DEVNULL)
        self.kc("verify", "kernels.kcb")

    def test_an_output_that_is_no_file_is_left_alone(self):
        self.make_units(1)
        fifo = self.work / "fifo.kcb"
        os.mkfifo(fifo)
        self.assertIn("not a regular file", self.kc("build", "-o", fifo, env=self.with_fake(), expect=2).err)
        self.assertTrue(fifo.is_fifo())

    def test_options_of_everywhere_stand_before_or_after_the_command(self):
        self.make_units(1, folder="sub")
        self.kc("-C", "sub", "build", env=self.with_fake())
        self.kc("build", "-C", "sub", env=self.with_fake())
        self.kc("-q", "store", "-q", "stats", "-q")
        self.assertTrue((self.work / "sub" / "kernels.kcb").exists())

    def test_quiet_says_nothing_but_failures(self):
        self.make_units(2)
        done = self.kc("build", "-q", env=self.with_fake())
        self.assertEqual((done.out, done.err), ("", ""))
        self.write("k001.tilebc", tile("@entry=kernel @exit=5"))
        done = self.kc("build", "-q", env=self.with_fake(), expect=1)
        self.assertIn("k001@sm_90", done.err)

    def test_colour_is_asked_for_or_not_there(self):
        self.assertNotIn("\x1b", self.kc("build", "-f", "missing", expect=2).err)
        self.assertIn("\x1b", self.kc("build", "-f", "missing", "--color=always", expect=2).err)
        self.assertIn("\x1b", self.kc("build", "-f", "missing", env=self.environment(CLICOLOR_FORCE=1), expect=2).err)
        env = self.environment(CLICOLOR_FORCE=1, NO_COLOR=1)
        self.assertNotIn("\x1b", self.kc("build", "-f", "missing", env=env, expect=2).err)


class Signals(KcTest):
    def test_an_ignored_signal_stays_ignored(self):
        self.make_units(2, directives="@sleep=600")
        env = self.with_fake()
        for name in ("HUP", "INT"):
            with self.subTest(name):
                process = subprocess.Popen(
                    ["sh", "-c", f"trap '' {name}; exec {KC} build --store-mode=off"], cwd=self.work, env=env,
                    stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                )
                time.sleep(0.3)
                process.send_signal(getattr(signal, f"SIG{name}"))
                _, err = process.communicate(timeout=30)
                self.assertEqual(process.returncode, 0, err)

    def test_an_interrupted_build_costs_another_build_nothing(self):
        # Many jobs at once: some of the interrupted engine's threads see their compiler killed before it ends.
        self.make_units(16, directives="@sleep=900")
        env = self.with_fake()
        for attempt in range(4):
            with self.subTest(attempt):
                first = self.start("build", "-j16", "-o", "first.kcb", env=env)
                time.sleep(0.3)
                second = self.start("build", "-j16", "-o", "second.kcb", env=env)
                time.sleep(0.3)
                first.send_signal(signal.SIGINT)
                first.communicate(timeout=30)
                _, err = second.communicate(timeout=60)
                self.assertEqual(first.returncode, 130)
                self.assertEqual(second.returncode, 0, err)
                self.kc("gc", "--max-size", "0")
                os.unlink(self.work / "second.kcb")
                self.assertEqual([p.name for p in self.store_files("tmp/*")], [])

    def test_no_compiler_outlives_a_build_that_is_killed_at_any_moment(self):
        self.make_units(16, directives="@hang")
        env = self.with_fake()
        for number in (signal.SIGINT, signal.SIGKILL):
            for delay in range(10, 90, 8):
                process = self.start("build", "-j16", env=env)
                time.sleep(delay / 1000)
                process.send_signal(number)
                process.communicate(timeout=30)
        deadline = time.time() + 3
        command = ["pgrep", "-f", str(self.root / "compiler")]
        while time.time() < deadline and subprocess.run(command, stdout=subprocess.DEVNULL).returncode == 0:
            time.sleep(0.05)
        self.assertEqual(subprocess.run(command, capture_output=True).stdout, b"")

    def test_a_bundle_put_there_by_another_build_is_never_taken_for_ones_own(self):
        self.make_units(1, folder="a")
        self.make_units(1, directives="another", folder="b")
        env = self.with_fake()
        output = self.work / "shared.kcb"
        self.settle()
        self.kc("build", "-o", "own.kcb", cwd=self.work / "b", env=env)
        # The first build is held between the rename and its end, while the second puts its own bundle there.
        slow = subprocess.Popen(
            ["strace", "-f", "-o", "/dev/null", "-e", "trace=fsync", "-e", "inject=fsync:delay_exit=1500000:when=2",
             KC, "build", "-o", output], cwd=self.work / "a", env=env, stdout=subprocess.DEVNULL,
        )
        deadline = time.time() + 20
        while not output.exists() and time.time() < deadline:
            time.sleep(0.01)
        self.kc("build", "-o", output, cwd=self.work / "b", env=env)
        self.assertEqual(slow.wait(timeout=30), 0)
        self.assertIn("wrote", self.kc("build", "-o", output, cwd=self.work / "a", env=env).out)


if __name__ == "__main__":
    main()

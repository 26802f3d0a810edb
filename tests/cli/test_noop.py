"""What an unchanged build does: nothing but looking at file tuples."""

import os
import re
import subprocess

from kc_test import KC, KcTest, main


class NoOp(KcTest):
    def trace(self, *arguments, env):
        log = self.root / "trace"
        done = subprocess.run(
            ["strace", "-f", "-o", log, "-e", "trace=openat,open,execve,fork,vfork,clone,clone3", KC, *arguments],
            cwd=self.work, env={**env, "ASAN_OPTIONS": "detect_leaks=0"}, capture_output=True, text=True,
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout, log.read_text()

    def test_it_opens_no_input_and_starts_no_process(self):
        self.make_units(50)
        env = self.with_fake()
        self.settle()
        self.kc("build", env=env)
        before = os.stat(self.work / "kernels.kcb")
        out, log = self.trace("build", env=env)
        self.assertEqual(len(out.splitlines()), 1)
        opened = re.findall(r'open(?:at)?\((?:AT_FDCWD, |\d+, )?"([^"]+)"[^)]*\)\s+= \d', log)
        self.assertIn("v1", " ".join(opened), "the trace shows what is opened")
        for path in opened:
            self.assertFalse(path.endswith((".yaml", ".tilebc", ".kce", ".kcb", ".so.4", ".bc")), path)
            self.assertNotIn(str(self.root / "compiler"), path)
        self.assertEqual(len(re.findall(r"execve\(", log)), 1)
        self.assertNotRegex(log, r"\b(fork|vfork|clone3?)\(")
        after = os.stat(self.work / "kernels.kcb")
        self.assertEqual((before.st_ino, before.st_mtime_ns), (after.st_ino, after.st_mtime_ns))

    def test_inputs_too_young_to_be_trusted_are_read_once_more_and_then_not(self):
        self.make_units(3)
        env = self.with_fake()
        self.kc("build", env=env)
        self.settle()
        _, log = self.trace("build", env=env)
        self.assertIn("k001.tilebc", log)
        _, log = self.trace("build", env=env)
        self.assertNotIn("k001.tilebc", log)

    def test_a_change_within_the_tick_of_the_clock_is_seen(self):
        self.make_units(1)
        env = self.with_fake()
        source = self.work / "k000.tilebc"
        self.kc("build", env=env)
        status = os.stat(source)
        content = source.read_bytes()
        changed = content[:-2] + bytes([content[-2] ^ 1]) + content[-1:]
        with open(source, "r+b") as file:
            file.write(changed)
        os.utime(source, ns=(status.st_atime_ns, status.st_mtime_ns))
        self.assertEqual(self.summary("build", env=env)["compiled"], 1)

    def test_another_compiler_along_the_search_order_is_a_change(self):
        self.make_units(1)
        other = self.install_fake("other", variant="2")
        self.settle()
        self.kc("build", env=self.with_fake())
        self.assertIn("up to date", self.kc("build", env=self.with_fake()).out)
        env = self.with_fake()
        env["KC_TILEIRAS"] = str(other)
        self.assertEqual(self.summary("build", env=env)["compiled"], 1)

    def test_a_changed_bundle_is_made_again(self):
        self.make_units(1)
        env = self.with_fake()
        self.settle()
        self.kc("build", env=env)
        bundle = self.work / "kernels.kcb"
        good = self.digest(bundle)
        with open(bundle, "r+b") as file:
            file.seek(100)
            file.write(b"\xff")
        self.assertEqual(self.summary("build", env=env)["output_state"], "written")
        self.assertEqual(self.digest(bundle), good)

    def test_a_damaged_state_costs_time_and_nothing_else(self):
        self.make_units(2)
        env = self.with_fake()
        self.kc("build", env=env)
        (state,) = self.store_files("state/*")
        whole = state.read_bytes()
        for content in (b"", whole[:100], whole[:-1], whole[:200] + bytes([whole[200] ^ 1]) + whole[201:]):
            os.chmod(state, 0o644)
            state.write_bytes(content)
            summary = self.summary("build", env=env)
            self.assertEqual((summary["hits"], summary["compiled"], summary["output_state"]), (2, 0, "unchanged"))
            (state,) = self.store_files("state/*")


if __name__ == "__main__":
    main()

"""kill -9 at every system call of what a store lives through: a build that compiles, one that packs from hits, gc. And
signals that ask a build to end, at some of them.

After each kill the bundle is the old one or the new one, the next two builds are right (the second has nothing to do),
`kc store verify` finds nothing, and gc leaves nothing half-done in the store. Without the right to trace processes this
says `not run: ...`.

KC_TEST_LONG=1 kills at all points, at least 300 of each; else at a sample of them, the same each time.
"""

import os
import signal

from faults import LONG, FaultTest, sample
from kc_test import main

SAMPLE = 12  # points of a process, in the short form
LEAST = 300  # points of each case there are
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE)
SIGNALLED = 40 if LONG else 3  # points for each of them
KILLED = 128 + signal.SIGKILL


class Crash(FaultTest):
    def check_afterwards(self):
        """Nothing is wrong, whatever was killed."""
        self.assertIn(self.bundle(), (self.old, self.new))
        # What a killed process was writing beside the bundle.
        self.assertLessEqual(len(list(self.work.glob(".*kc-*"))), 1)
        self.kc("build", "--strict-store", env=self.env)  # nothing that it finds is damaged
        self.assertEqual(self.bundle(), self.new)
        self.assertIn("up to date", self.kc("build", env=self.env).out)
        self.kc("store", "verify", env=self.env)
        self.assertEqual(self.store_files("tmp/bad-*"), [])
        self.age(*self.store_files("tmp/*"), hours=48)
        self.kc("gc", env=self.env)
        self.assertEqual(self.store_files("tmp/*"), [])

    def explore(self, name, program, command, codes):
        """Kills `program` of `command` at each of its calls; gives how many there are."""
        calls = self.calls(program, command)
        points = sample(range(1, len(calls) + 1), SAMPLE)
        killed = 0
        for number in points:
            with self.subTest(name, program=program, call=number, of=len(calls), what=calls[number - 1]):
                self.restore()
                done = self.fault_at(program, number, f"signal={int(signal.SIGKILL)}", command)
                was_killed = self.reported()[1] is not None
                killed += was_killed
                self.assertIn(done.returncode, codes if was_killed else (0,), done.err)
                self.check_afterwards()
        kinds = sorted(set(calls))
        print(f"{name}: {program} killed at {killed} of {len(calls)} calls of {len(kinds)} kinds: {' '.join(kinds)}",
              flush=True)
        # A call or two more or less: waits end sooner or later.
        self.assertGreaterEqual(killed, len(points) * 9 // 10)
        return len(calls)

    def test_a_build_that_compiles(self):
        self.prepare(build_first=False, count=1)
        self.assertGreaterEqual(self.explore("build, all misses", "kc", ["build", "-j2"], (KILLED,)), LEAST)

    def test_the_engine_of_a_build_that_compiles(self):
        self.prepare(build_first=False, count=1)
        # kc goes on without its engine, or says that it cannot.
        codes = (0, 1, 3)
        self.assertGreaterEqual(self.explore("build, all misses", "kc-engine", ["build", "-j2"], codes), LEAST)

    def test_a_build_that_packs_from_hits(self):
        self.prepare(build_first=True)
        self.assertGreaterEqual(self.explore("build, all hits", "kc", ["build"], (KILLED,)), LEAST)

    def test_a_pack(self):
        self.prepare(build_first=True)
        self.assertGreaterEqual(self.explore("pack", "kc", ["pack"], (KILLED,)), LEAST)

    def test_a_collection(self):
        self.prepare(build_first=True)
        for name in (f"new-{os.getpid()}-0-{'0' * 16}", f"failed-{'0' * 64}"):
            left = self.saved / "store" / "v1" / "tmp" / name
            left.write_bytes(b"half")
            self.age(left, hours=24)
        self.assertGreaterEqual(self.explore("gc", "kc", ["gc", "--max-size=1"], (KILLED,)), LEAST)

    def test_a_signal_that_asks_a_build_to_end(self):
        self.prepare(build_first=False, count=1)
        calls = self.calls("kc", ["build", "-j2"])
        count, ended = SIGNALLED * len(SIGNALS), 0
        for i in range(count):
            number, by = 1 + i * (len(calls) - 1) // count, SIGNALS[i % len(SIGNALS)]
            with self.subTest(call=number, of=len(calls), what=calls[number - 1], signal=by.name):
                self.restore()
                done = self.fault_at("kc", number, f"signal={int(by)}", ["build", "-j2"])
                self.assertIn(done.returncode, (0, 128 + by), done.err)
                ended += done.returncode != 0
                self.assert_no_temporaries()
                self.check_afterwards()
        print(f"signals: {count} sent, {ended} builds ended by them", flush=True)
        self.assertGreater(ended, count // 2)


if __name__ == "__main__":
    main()

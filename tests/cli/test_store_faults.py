"""A store that is damaged and a disk that fails under a build: the bundle is right, or kc says what is wrong.

tests/unit/store damages every byte and fails every operation of the store alone; here the same goes through whole builds,
at a sample of places. KC_TEST_LONG=1 takes many more. Without the right to trace processes those that fail operations say
`not run: ...`.
"""

import errno
import os
import random

from faults import LONG, FaultTest, sample
from kc_test import main

ERRORS = (errno.ENOSPC, errno.EIO, errno.EDQUOT, errno.EACCES, errno.EMFILE, errno.ESTALE)
CALLS = ("open", "openat", "write", "pwrite64", "pread64", "link", "linkat", "rename", "renameat", "mkdir", "mkdirat", "unlink",
         "unlinkat", "fsync", "fstat", "newfstatat", "utimensat", "getdents64", "fcntl")


class StoreFaults(FaultTest):
    # -- damage ---------------------------------------------------------------------------------------------

    def heal(self, path, damaged, is_lost=True):
        """Puts `damaged` in the place of a file of the store and builds: the damage is told and moved aside, the bundle is
        the same, and the next build finds all in order. `is_lost`: something had to be compiled again."""
        for left in self.store_files("tmp/bad-*"):
            left.unlink()
        self.replace(path, damaged)
        path.chmod(0o444)
        self.output.unlink()
        done = self.kc("build", "--format=json", env=self.env)
        self.assertIn(f"had 1 fault ({path.relative_to(self.store / 'v1')}: ", done.err)
        self.assertEqual(self.digest(self.output), self.expected)
        self.assertEqual(len(self.store_files("tmp/bad-*")), 1)
        self.assertEqual(self.store_files("tmp/bad-*")[0].read_bytes(), damaged)
        self.assertRegex(done.out, '"compiled":1' if is_lost else '"compiled":0')
        self.assertNotEqual(path.read_bytes(), damaged)
        self.kc("store", "verify", env=self.env)
        self.output.unlink()
        done = self.kc("build", "--strict-store", env=self.env)
        self.assertEqual(self.digest(self.output), self.expected)

    def test_flipped_bytes_and_cut_files_are_found_moved_aside_and_made_again(self):
        self.make(2)
        self.kc("build", env=self.env)
        self.expected = self.digest(self.output)
        chance = random.Random(7)
        for kind, count in (("e/*/*.kce", 2), ("r/*/*.kcr", 1)):
            for path in self.store_files(kind)[:: 1 if LONG else 3]:
                size = path.stat().st_size
                places = sorted({0, 8, 40, size - 1, *chance.sample(range(size), 40 if LONG else count)})
                for place in places:
                    with self.subTest(path=path.name, flipped=place):
                        damaged = bytearray(path.read_bytes())
                        damaged[place] ^= 1 << chance.randrange(8)
                        # A record that is lost is found by linking again: nothing is compiled.
                        self.heal(path, bytes(damaged), is_lost=kind.startswith("e"))
                for length in sorted({0, 63, size - 1, *chance.sample(range(size), 20 if LONG else 1)}):
                    with self.subTest(path=path.name, length=length):
                        self.heal(path, path.read_bytes()[:length], is_lost=kind.startswith("e"))

    def test_an_entry_under_the_name_of_another_is_found(self):
        self.make(2)
        self.kc("build", env=self.env)
        self.expected = self.digest(self.output)
        entries = self.store_files("e/*/*.kce")
        self.heal(entries[0], entries[1].read_bytes())
        records = self.store_files("r/*/*.kcr")
        self.heal(records[0], records[1].read_bytes(), is_lost=False)

    def test_a_damaged_state_costs_a_look_at_everything_and_nothing_else(self):
        self.make(1)
        self.kc("build", env=self.env)
        expected = self.digest(self.output)
        [state] = self.store_files("state/*")
        good = state.read_bytes()
        for place in (0, 9, 33, 70, 100, 130, len(good) // 2, len(good) - 1):
            with self.subTest(flipped=place):
                damaged = bytearray(good)
                damaged[place] ^= 0x10
                state.write_bytes(damaged)
                summary = self.summary("build", env=self.env)
                self.assertEqual((summary["hits"], summary["compiled"]), (2, 0))
                self.assertEqual(self.digest(self.output), expected)
                self.assertIn("up to date", self.kc("build", env=self.env).out)

    # -- failing operations ---------------------------------------------------------------------------------

    def test_an_operation_that_is_to_fail_does(self):
        self.make(1)
        self.kc("build", env=self.env)
        for error in ERRORS:
            with self.subTest(errno.errorcode[error]):
                done = self.fault_at("kc", 1, f"error={error}@getdents64", ["store", "verify"])
                self.assertIn(os.strerror(error), done.err)
                self.assertIn(str(self.store), self.reported()[1])

    def explore(self, program, command, count):
        """Fails file operations of `program` one by one, with each error in turn."""
        calls = self.calls(program, command)
        points = sample([number for number, call in enumerate(calls, 1) if call in CALLS], count)
        self.assertGreater(len(points), count // 2)
        failed, failures = 0, 0
        for i, number in enumerate(points):
            error = ERRORS[i % len(ERRORS)]
            with self.subTest(program=program, call=calls[number - 1], number=number, error=errno.errorcode[error]):
                self.restore()
                done = self.fault_at(program, number, f"error={error}@{calls[number - 1]}", command)
                file = self.reported()[1]
                if file is None:
                    continue  # threads did things in another order, and this one earlier
                failed += 1
                # 2 is a source or a manifest that cannot be read.
                self.assertIn(done.returncode, (0, 1, 2, 3), done.err)
                if done.returncode == 0:
                    self.assertEqual(self.bundle(), self.new)
                else:
                    # A fault of the store fails no build. Jobs work there, too, which is another matter.
                    is_of_store = str(self.store) in file and "/tmp/job-" not in file
                    self.assertFalse(is_of_store, f"{file}: {done.err}")
                    failures += 1
                    self.assertIn(self.bundle(), (self.old, self.new))
                    self.assertRegex(done.err, "error: .+")
                if not calls[number - 1].startswith("unlink"):
                    self.assertEqual(list(self.work.glob(".*kc-*")) + self.store_files("tmp/new-*"), [])
                self.kc("build", "--strict-store", env=self.env)
                self.assertEqual(self.bundle(), self.new)
                self.kc("store", "verify", env=self.env)
        print(f"{command[0]}: {failed} operations of {program} failed, and {failures} of the builds", flush=True)
        self.assertGreater(failed, len(points) // 2)

    def test_operations_that_fail_under_a_build_that_compiles(self):
        self.prepare(build_first=False, count=1)
        self.explore("kc", ["build", "-j2"], 12)
        self.explore("kc-engine", ["build", "-j2"], 12)

    def test_operations_that_fail_under_a_build_that_packs(self):
        self.prepare(build_first=True)
        self.explore("kc", ["build"], 12)


if __name__ == "__main__":
    main()

"""What test_crash.py and test_store_faults.py share: a manifest for both stand-ins, a store and a bundle that come back
after each fault, and tests/support/fault_at.cpp, which kills a program or fails a call at a chosen point."""

import os
import shutil
import subprocess

from kc_test import BUILD, KC, KcTest, loom, tile

LONG = bool(os.environ.get("KC_TEST_LONG"))
FAULT_AT = BUILD / "bin" / "fault_at"
NOT_RUN = 77


class FaultTest(KcTest):
    def setUp(self):
        super().setUp()
        self.env = self.with_hostile(KC_TILEIRAS=self.install_fake())
        # A leak check traces threads itself, which a traced process cannot, and a killed one has no say in its leaks.
        self.env["ASAN_OPTIONS"] = ":".join(filter(None, [self.env.get("ASAN_OPTIONS"), "detect_leaks=0"]))
        self.output = self.work / "kernels.kcb"
        self.saved = self.root / "saved"
        self.report = self.root / "calls"

    def make(self, count):
        """A manifest of `count` kernels for each of the stand-ins: with and without a front half."""
        lines = ["version: 1", "targets: [sm_90, gfx1100]", "kernels:"]
        for i in range(count):
            self.write(f"t{i}.tilebc", tile(f"@entry=kernel n={i}"))
            lines.append(f"  - {{ name: t{i}, sources: t{i}.tilebc, entry: kernel }}")
            self.write(f"l{i}.loom", loom(f"l{i}", factor=i + 2))
            lines.append(f"  - {{ name: l{i}, sources: l{i}.loom }}")
        self.write("kernels.yaml", "\n".join(lines) + "\n")

    def prepare(self, build_first, count=2):
        """A manifest of twice `count` units, an old bundle of more and, with `build_first`, a store that has all units. Both
        are kept aside for restore()."""
        self.make(count + 1)
        self.kc("build", "--store-mode=off", env=self.env)
        self.old = self.digest(self.output)
        self.make(count)
        self.kc("build", "--store-mode=off", "-o", "new.kcb", env=self.env)
        self.new = self.digest(self.work / "new.kcb")
        self.assertNotEqual(self.old, self.new)
        if build_first:
            # With another output, so that there is no state that says "unchanged".
            self.kc("build", "-o", "other.kcb", env=self.env)
        else:
            self.store.mkdir(mode=0o700)
        shutil.copytree(self.store, self.saved / "store")
        shutil.copy2(self.output, self.saved / "kernels.kcb")
        self.settle()  # so that all builds do the same

    def restore(self):
        shutil.rmtree(self.store)
        shutil.copytree(self.saved / "store", self.store)
        for left in self.work.glob(".*kc-*"):
            left.unlink()
        shutil.copy2(self.saved / "kernels.kcb", self.output)

    def fault_at(self, program, number, what, command):
        """Runs `kc command`; at its call `number`, `program` meets `what`: `signal=9`, or `error=28@openat` at
        the first call of that name from there on."""
        self.report.unlink(missing_ok=True)  # so that nothing is read of an earlier run
        words = [FAULT_AT, program, self.store, str(number), what, self.report, KC, *command]
        done = subprocess.run(words, cwd=self.work, env=self.env, stdin=subprocess.DEVNULL, capture_output=True, timeout=60)
        if done.returncode == NOT_RUN:
            self.skipTest("not run: processes cannot be traced here")
        done.err = done.stderr.decode(errors="replace")
        return done

    def reported(self):
        """Names of the calls that were made, and what the one that met its fault was about, as far as it says: None when
        none did."""
        lines = self.report.read_text(errors="replace").splitlines()
        return ([line.split()[0].lstrip("!") for line in lines],
                next((line.partition(" ")[2] for line in lines if line.startswith("!")), None))

    def calls(self, program, command):
        """Names of all calls that can be chosen from."""
        self.restore()
        done = self.fault_at(program, 0, "signal=0", command)
        self.assertEqual(done.returncode, 0, done.err)
        return self.reported()[0]

    def bundle(self):
        """Digest of the bundle under its name, if there is one."""
        return self.digest(self.output) if self.output.exists() else None


def sample(points, count):
    """All of them in the long form; else so many, evenly spread, with the first and the last."""
    if LONG or len(points) <= count:
        return points
    return [points[i * (len(points) - 1) // (count - 1)] for i in range(count)]

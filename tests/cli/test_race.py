"""Many processes over one store at the same time.

First 16 builds of overlapping sets of keys from an empty store, which is left alone: each key is compiled exactly once.
Then 16 processes that build sets at random, while a collection in a loop takes away what they need and one build in five
is killed by `kill -9`: every bundle that comes out is right, and nobody waits for the dead.

KC_TEST_LONG=1: 200 keys, and the second part for a minute; else less of both.
"""

import os
import random
import signal
import subprocess
import threading
import time

from kc_test import KC, KcTest, events, main, tile

LONG = bool(os.environ.get("KC_TEST_LONG"))
KEYS = 200 if LONG else 48
SECONDS = 60 if LONG else 8
PROCESSES = 16
SETS = 12
KILLED = 1 / 5  # of the builds
LONGEST_WAIT = 10.0  # seconds
COUNT = 24  # units of a manifest that two builds share


class Race(KcTest):
    def setUp(self):
        super().setUp()
        self.env = self.with_fake()
        self.random = random.Random(20)
        self.counts = self.root / "counts"
        self.counts.mkdir()
        for i in range(KEYS):
            self.write(f"k{i:03}.tilebc", tile(f"@entry=kernel n={i} @size=4096 @count={self.counts}/{i:03}"))
        self.sets = [sorted(self.random.sample(range(KEYS), KEYS // 4)) for _ in range(SETS)]
        for number, keys in enumerate(self.sets):
            self.write_set(f"m{number}.yaml", keys)
        # What each set must give: packed alone, by a store of its own.
        other = self.environment(KC_TILEIRAS=self.env["KC_TILEIRAS"], KC_STORE_DIR=self.root / "reference")
        self.write_set("all.yaml", range(KEYS))
        started = time.monotonic()
        self.kc("build", "-j1", "-f", "all.yaml", env=other)
        self.seconds_a_set = (time.monotonic() - started) * len(self.sets[0]) / KEYS
        self.expected = []
        for number in range(SETS):
            self.kc("build", "-f", f"m{number}.yaml", "-o", "reference.kcb", env=other)
            self.expected.append(self.digest(self.work / "reference.kcb"))
        for count in self.counts.iterdir():
            count.unlink()

    def write_set(self, name, keys):
        lines = ["version: 1", "name: set", "targets: [sm_90]", "kernels:"]
        lines += [f"  - {{ name: k{i:03}, sources: k{i:03}.tilebc, entry: kernel }}" for i in keys]
        self.write(name, "\n".join(lines) + "\n")

    def start_set(self, number, output):
        return subprocess.Popen([KC, "build", "-j1", "--progress=none", "-f", f"m{number}.yaml", "-o", output], cwd=self.work, env=self.env,
                                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)

    def errors_of(self, kc):
        """What a build says until it ends, which it must."""
        try:
            return kc.communicate(timeout=120)[1]
        except subprocess.TimeoutExpired:
            kc.kill()
            raise

    def in_parallel(self, *functions):
        """Runs each in a thread of its own; what one raises is raised here."""
        raised = []

        def run(function):
            try:
                function()
            except BaseException as error:
                raised.append(error)

        threads = [threading.Thread(target=run, args=(function,)) for function in functions]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if raised:
            raise raised[0]

    def patience(self):
        """What a build may take: its own compiles, with all others on the same CPU, and the longest wait."""
        return PROCESSES * self.seconds_a_set + LONGEST_WAIT

    def test_each_key_is_compiled_once_and_every_bundle_is_right(self):
        started = time.monotonic()
        longest = []

        def build(process):
            def run():
                number = process % SETS
                output = self.work / f"out{process}.kcb"
                kc = self.start_set(number, output)
                errors = self.errors_of(kc)
                longest.append(time.monotonic() - started)
                self.assertEqual((kc.returncode, errors), (0, ""))
                self.assertEqual(self.digest(output), self.expected[number])
            return run

        self.in_parallel(*map(build, range(PROCESSES)))
        wanted = {i for keys in self.sets for i in keys}
        compiles = {int(path.name): path.stat().st_size for path in self.counts.iterdir()}
        self.assertEqual(compiles, {i: 1 for i in wanted})
        self.kc("store", "verify", env=self.env)
        print(f"{PROCESSES} processes, {len(wanted)} keys: one compile a key; the longest build took {max(longest):.1f} s",
              flush=True)
        self.assertLess(max(longest), self.patience())

    def test_collections_and_kills_make_no_bundle_wrong(self):
        start = time.monotonic()
        lock = threading.Lock()
        builds, killed, longest, removed = 0, 0, 0.0, 0

        def goes_on():
            """Until the time is over, and on a slow machine until something has happened."""
            seconds = time.monotonic() - start
            has_seen_all = builds >= 2 * PROCESSES and killed > 0 and removed >= len(self.sets[0])
            return seconds < SECONDS or (not has_seen_all and seconds < 10 * SECONDS)

        def build_at_random(process):
            def run():
                nonlocal builds, killed, longest
                chance = random.Random(process)
                output = self.work / f"out{process}.kcb"
                before = None
                while goes_on():
                    number = chance.randrange(SETS)
                    started = time.monotonic()
                    kc = self.start_set(number, output)
                    is_killed = chance.random() < KILLED
                    if is_killed:
                        time.sleep(chance.random() * (0.02 + 2 * self.seconds_a_set))
                        # Its engine is the other half of the time the one that dies.
                        engine = self.engine_of(kc) if chance.random() < 0.5 else None
                        try:
                            os.kill(engine or kc.pid, signal.SIGKILL)
                        except ProcessLookupError:
                            engine = None
                    errors = self.errors_of(kc)
                    seconds = time.monotonic() - started
                    now = self.digest(output) if output.exists() else None
                    if is_killed:
                        self.assertIn(kc.returncode, (0, 1, 3, -signal.SIGKILL), errors)
                        self.assertIn(now, (before, self.expected[number]))
                    else:
                        self.assertEqual(kc.returncode, 0, errors)
                        self.assertEqual(now, self.expected[number])
                    before = now
                    with lock:
                        builds += 1
                        # Not one that had ended by then.
                        killed += kc.returncode == -signal.SIGKILL or (is_killed and engine is not None)
                        longest = max(longest, seconds)
            return run

        def collect():
            nonlocal removed
            while goes_on():
                # What half a set takes.
                report = self.summary("gc", f"--max-size={len(self.sets[0]) * 4 << 10}", env=self.env)
                removed += report["entries_removed"]

        self.in_parallel(collect, *map(build_at_random, range(PROCESSES)))
        print(f"{time.monotonic() - start:.0f} s: {builds} builds, {killed} killed, {removed} entries collected; "
              f"the longest build took {longest:.1f} s", flush=True)
        self.assertGreater(builds, PROCESSES)
        self.assertGreater(killed, 0)
        self.assertGreaterEqual(removed, len(self.sets[0]))
        self.assertLess(longest, self.patience())
        self.kc("store", "verify", env=self.env)
        self.kc("build", "-f", "all.yaml", "--strict-store", env=self.env)


class TwoBuilds(KcTest):
    """Two builds of one manifest, started together from an empty store. What they take is for tests/bench, `share-*`."""

    def check(self, manifest, env):
        self.work.joinpath("counts").mkdir()
        builds = [self.start("build", "-j2", "-f", manifest, "-o", f"{i}.kcb", "--format=json", env=env) for i in range(2)]
        compiled = 0
        for build in builds:
            out, errors = build.communicate(timeout=120)
            self.assertEqual((build.returncode, errors), (0, ""))
            summary = events(out)[-1]
            self.assertEqual((summary["units"], summary["hits"] + summary["compiled"]), (COUNT, COUNT))
            compiled += summary["compiled"]
        self.assertEqual(compiled, COUNT)
        self.assertEqual([path.stat().st_size for path in self.work.glob("counts/*")], [1] * COUNT)
        self.kc("build", "-f", manifest, "-o", "alone.kcb", "--store-mode=off", env=env)
        expected = self.digest(self.work / "alone.kcb")
        self.assertEqual([self.digest(self.work / f"{i}.kcb") for i in range(2)], [expected] * 2)
        self.kc("store", "verify", env=env)

    def test_a_child_compiler_runs_once_for_each_unit(self):
        manifest = self.make_units(COUNT, f"@sleep=10 @count={self.work}/counts/{{i}}")
        self.check(manifest, self.with_fake())

    def test_a_compiler_in_process_runs_once_for_each_unit(self):
        directives = {i: f"@sleep=10 @count={self.work}/counts/{i}" for i in range(COUNT)}
        self.check(self.make_loom_units(COUNT, directives), self.with_hostile())


if __name__ == "__main__":
    main()

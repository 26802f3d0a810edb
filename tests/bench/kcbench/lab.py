"""Where cases run: one temporary folder, a built environment, and what several cases need made only once."""

import os
import pathlib
import shutil
import subprocess
import sys
import time

import make_units
from kcbench import measure
from kcbench.case import Measured

SOURCE = pathlib.Path(__file__).resolve().parents[3]
DEMO = SOURCE / "manifests" / "demo" / "kernels.yaml"
# kc trusts a file's tuple from this age on (2 s), and so does the no-op.
SETTLE_SECONDS = 2.1


def say(text):
    print(f"bench: {text}", file=sys.stderr, flush=True)


class Lab:
    def __init__(self, build, runs, scratch):
        self.build = pathlib.Path(build).resolve()
        self.kc = self.build / "bin" / "kc"
        self.runs = runs
        self.scratch = pathlib.Path(scratch)
        self.cpus = len(os.sched_getaffinity(0))
        self._units = {}
        (self.scratch / "home").mkdir()

    # -- programs -------------------------------------------------------------------------------------------

    def tool(self, name):
        return pathlib.Path(shutil.which(name))

    def pinned(self, name):
        """A program of the pinned CUDA release, or None."""
        found = sorted(self.build.glob(f"venv/lib/python3*/site-packages/nvidia/cu13/bin/{name}"))
        return found[0] if found else None

    @property
    def loom(self):
        """The Loom compiler that packaging/bootstrap makes for tests (tests/support/loom_bridge)."""
        return self.build / "loom" / "g4" / "libloomc.so"

    @property
    def loom_wheel(self):
        """The wheel that it is made of, or None."""
        return next(iter(sorted((self.build / "loom" / "wheel").glob("*.whl"))), None)

    def environment(self, store=None, **changes):
        """What each command gets; `store` also chooses the stand-in as the compiler."""
        env = {"PATH": "/usr/bin:/bin", "HOME": str(self.scratch / "home"), "TMPDIR": str(self.scratch), "LC_ALL": "C"}
        if store is not None:
            env |= {"KC_STORE_DIR": str(store), "KC_TILEIRAS": str(self.stand_in())}
        return env | {name: str(value) for name, value in changes.items()}

    def stand_in(self):
        folder = self.scratch / "stand-in"
        if not folder.exists() and (self.build / "bin" / "fake_tileiras").exists():
            self.must([self.build / "bin" / "fake_tileiras", "--install", folder])
        return folder / "bin" / "tileiras"

    # -- running --------------------------------------------------------------------------------------------

    @property
    def log(self):
        return self.scratch / "stderr"

    def seconds(self, command, env, cwd=None, expect=0):
        return measure.seconds(command, env, cwd or self.scratch, self.log, expect)

    def peak_memory(self, command, env, cwd=None, expect=0):
        return measure.peak_memory(command, env, cwd or self.scratch, self.log, expect)

    def must(self, command, env=None, cwd=None):
        """Runs a command that is not measured; returns what it wrote on stdout."""
        done = subprocess.run([os.fspath(word) for word in command], env=env or self.environment(),
                              cwd=cwd or self.scratch, stdin=subprocess.DEVNULL, capture_output=True)
        if done.returncode != 0:
            shown = " ".join(map(str, command[:6]))
            raise measure.CommandFailed(f"`{shown}` ended with {done.returncode}: {done.stderr.decode()[-2000:]}")
        return done.stdout

    def compare(self, ours, rival, at_most=None, times=1, warm_up=True):
        """Calls both in turn, after one call of each to warm up; each returns its seconds. Pairs begin with kc and
        with the rival by turns, so that neither always follows the other. `at_most`: fewer runs where one takes
        long; `times`: more where one takes next to nothing."""
        if warm_up:
            ours(), rival()
        out = Measured([], [])
        for i in range(min(self.runs, at_most or self.runs) * times):
            pair = [(ours, out.ours), (rival, out.rival)]
            for call, figures in pair if i % 2 == 0 else reversed(pair):
                figures.append(call())
        return out

    # -- what several cases share ---------------------------------------------------------------------------

    def folder(self, name):
        """A new folder of this name; what an earlier case left in it is gone."""
        path = self.scratch / name
        shutil.rmtree(path, ignore_errors=True)
        path.mkdir()
        return path

    def units(self, count, kernels=None, **options):
        """A folder as make_units.py makes it, in which nothing was built. Made once."""
        kernels = kernels or count
        key = ("units", count, kernels, *sorted(options.items()))
        if key not in self._units:
            say(f"making {count:,} units of {kernels:,} kernels")
            folder = self.folder("-".join(str(part) for part in key if not isinstance(part, tuple)) +
                                 "".join(f"-{name}{value}" for name, value in sorted(options.items())))
            make_units.write(folder, count, kernels, **options)
            self._units[key] = folder
        return self._units[key]

    def built_units(self, count, kernels=None, **options):
        """Such a folder, another one, after `kc build` with the stand-in, and the store: made once, and old enough
        that a build with nothing to do opens no file."""
        kernels = kernels or count
        key = ("built", count, kernels, *sorted(options.items()))
        if key not in self._units:
            original = self.units(count, kernels, **options)
            folder = original.with_name(original.name + "-built")
            shutil.copytree(original, folder)
            store = self.folder(folder.name + "-store")
            say(f"compiling {count:,} units with the stand-in")
            self.must([self.kc, "build"], self.environment(store), folder)
            time.sleep(SETTLE_SECONDS)
            self.must([self.kc, "build"], self.environment(store), folder)
            self._units[key] = (folder, store)
        return self._units[key]

    def build_demo(self, jobs):
        """Seconds that the demo takes from an empty store; leaves demo.kcb, and demo-store."""
        self.folder("demo-store")
        (self.scratch / "demo.kcb").unlink(missing_ok=True)
        return self.seconds([self.kc, "build", "-f", DEMO, "-o", self.scratch / "demo.kcb", f"-j{jobs}"],
                            self.demo_environment())

    def demo_environment(self):
        return self.environment(KC_STORE_DIR=self.scratch / "demo-store", KC_TILEIRAS=self.pinned("tileiras"))

    def demo_bundle(self):
        if not (self.scratch / "demo.kcb").exists():
            say("compiling the demo")
            self.build_demo(self.cpus)
        return self.scratch / "demo.kcb"

    def demo_objects(self):
        """The demo's code objects as files <kernel>/<target>/<configuration>.cubin, sorted."""
        folder = self.scratch / "demo-objects"
        if not folder.exists():
            self.must([self.kc, "extract", self.demo_bundle(), "--all", folder])
        return sorted(folder.rglob("*.cubin"))

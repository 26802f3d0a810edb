#!/usr/bin/env python3
"""Measures kc against a rival in the same run, interleaved: median, minimum and maximum of both, and the ratio.

usage: bench.py --build BUILD [--runs N] [--json FILE] [CASE...]

BUILD is a release build folder with kc and, for the cases that compile, the pinned tileiras in its venv (both come from
`packaging/bootstrap test`). Cases: noop, start, slots, xargs, size. Absolute times are this machine's alone; the ratio is
what to quote.
"""

import argparse
import json
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
DEMO = ROOT / "manifests" / "demo" / "kernels.yaml"
CASES = {}


def case(function):
    CASES[function.__name__] = function
    return function


class Bench:
    def __init__(self, build, runs, folder):
        self.build = pathlib.Path(build).resolve()
        self.runs = runs
        self.folder = folder
        self.kc = self.build / "bin" / "kc"
        self.results = []

    def environment(self, store, **changes):
        env = {"PATH": "/usr/bin:/bin", "HOME": str(self.folder), "KC_STORE_DIR": str(store), "LC_ALL": "C"}
        env.update(changes)
        return env

    def tileiras(self):
        found = sorted(self.build.glob("venv/lib/python3*/site-packages/nvidia/cu13/bin/tileiras"))
        if not found:
            sys.exit("bench: the pinned tileiras is not installed: run packaging/bootstrap demo first")
        return found[0]

    def run(self, command, env, cwd=None):
        """Seconds that the command took, on the wall's clock."""
        start = time.perf_counter()
        done = subprocess.run(command, env=env, cwd=cwd, stdin=subprocess.DEVNULL, capture_output=True)
        seconds = time.perf_counter() - start
        if done.returncode != 0:
            sys.exit(f"bench: {command} failed:\n{done.stderr.decode()}")
        return seconds

    def compare(self, name, ours, rival, runs=None):
        """Calls both in turn after one call of each to warm up; each returns seconds."""
        ours(), rival()
        a, b = [], []
        for _ in range(runs or self.runs):
            a.append(ours())
            b.append(rival())
        self.report(name, a, b)

    def report(self, name, a, b):
        ratio = statistics.median(x / y for x, y in zip(a, b))
        row = {"case": name, "ratio": ratio}
        for key, values in (("kc", a), ("rival", b)):
            row[key] = {"median": statistics.median(values), "min": min(values), "max": max(values), "runs": len(values)}
        self.results.append(row)
        print(f"{name:<28} ratio {ratio:6.3f}   " + "   ".join(
            f"{key} {row[key]['median']:.4f} [{row[key]['min']:.4f}, {row[key]['max']:.4f}]" for key in ("kc", "rival")),
            flush=True)

    def report_sizes(self, name, ours, rival):
        self.results.append({"case": name, "ratio": ours / rival, "kc": ours, "rival": rival})
        print(f"{name:<28} ratio {ours / rival:6.3f}   kc {ours} bytes   rival {rival} bytes", flush=True)


@case
def noop(bench):
    """An unchanged kc build of 1,000 units against an unchanged ninja of 1,000 edges over the same files."""
    count = 1000
    folder = bench.folder / "noop"
    folder.mkdir()
    subprocess.run([bench.build / "bin" / "fake_tileiras", "--install", bench.folder / "compiler"], check=True,
                   stdout=subprocess.DEVNULL)
    lines = ["version: 1", "targets: [sm_90]", "kernels:"]
    ninja = ["rule copy", "  command = cp $in $out"]
    for i in range(count):
        (folder / f"k{i}.tilebc").write_bytes(b"\x7fTileIR\x00\x0d\x03\x00\x00\n@entry=kernel %d\n" % i)
        lines.append(f"  - {{ name: k{i}, sources: k{i}.tilebc, entry: kernel }}")
        ninja.append(f"build out/k{i}.o: copy k{i}.tilebc")
    (folder / "kernels.yaml").write_text("\n".join(lines) + "\n")
    (folder / "build.ninja").write_text("\n".join(ninja) + "\n")
    env = bench.environment(bench.folder / "noop-store", KC_TILEIRAS=str(bench.folder / "compiler/bin/tileiras"))
    time.sleep(2.1)  # so that the inputs' tuples are trusted
    bench.run([bench.kc, "build"], env, folder)
    bench.run(["ninja"], env, folder)
    bench.compare("noop: kc / ninja, 1,000", lambda: bench.run([bench.kc, "build"], env, folder),
                  lambda: bench.run(["ninja"], env, folder))


@case
def start(bench):
    """kc --version against ninja --version."""
    env = bench.environment(bench.folder / "start-store")
    bench.compare("start: kc / ninja", lambda: bench.run([bench.kc, "--version"], env),
                  lambda: bench.run(["ninja", "--version"], env))


def demo_build(bench, jobs):
    store = bench.folder / "demo-store"
    shutil.rmtree(store, ignore_errors=True)
    return bench.run([bench.kc, "build", "-f", DEMO, "-o", bench.folder / "demo.kcb", f"-j{jobs}"], bench.environment(store))


@case
def slots(bench):
    """The demo from an empty store with one slot against two: the ratio is the speed-up."""
    bench.tileiras()
    bench.compare("slots: -j1 / -j2, demo", lambda: demo_build(bench, 1), lambda: demo_build(bench, 2), min(bench.runs, 3))


@case
def xargs(bench):
    """The demo from an empty store at -j2 against tileiras by hand over the same files with xargs -P2."""
    program = bench.tileiras()
    env = bench.environment(bench.folder / "plan-store")
    plan = subprocess.run([bench.kc, "plan", "-f", DEMO, "--format=json"], env=env, capture_output=True, check=True).stdout
    jobs = []
    output = bench.folder / "by-hand"
    output.mkdir()
    for i, line in enumerate(plan.splitlines()):
        unit = json.loads(line)
        if unit["event"] == "unit":
            level = "2" if unit["kernel"] == "vec_add" else "3"
            jobs.append(f"{DEMO.parent / unit['sources'][0]} -o {output}/{i}.cubin --gpu-name {unit['target']} -O{level}")
    (bench.folder / "jobs").write_text("\n".join(jobs) + "\n")
    by_hand = {"PATH": f"{program.parent}:/usr/bin:/bin", "HOME": str(bench.folder), "TMPDIR": str(bench.folder), "LC_ALL": "C"}
    command = ["sh", "-c", f"xargs -P2 -L1 {program} < {bench.folder / 'jobs'}"]
    bench.compare("xargs: kc -j2 / xargs -P2", lambda: demo_build(bench, 2), lambda: bench.run(command, by_hand),
                  min(bench.runs, 3))


@case
def size(bench):
    """The demo's bundle against its code objects compressed one by one at the same level."""
    bench.tileiras()
    demo_build(bench, 2)
    bundle = bench.folder / "demo.kcb"
    objects = bench.folder / "objects"
    bench.run([bench.kc, "extract", bundle, "--all", objects], bench.environment(bench.folder / "demo-store"))
    single = 0
    for path in sorted(objects.rglob("*.cubin")):
        single += len(subprocess.run(["zstd", "-3", "-c", "--no-check", path], capture_output=True, check=True).stdout)
    bench.report_sizes("size: bundle / one by one", bundle.stat().st_size, single)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", required=True)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("cases", nargs="*", metavar="CASE")
    arguments = parser.parse_args()
    unknown = [name for name in arguments.cases if name not in CASES]
    if unknown:
        parser.error(f"no case {unknown[0]}; there are {', '.join(CASES)}")
    with tempfile.TemporaryDirectory(prefix="kc-bench-") as folder:
        bench = Bench(arguments.build, arguments.runs, pathlib.Path(folder))
        for name in arguments.cases or CASES:
            CASES[name](bench)
    if arguments.json:
        arguments.json.write_text(json.dumps(bench.results, indent=2) + "\n")


if __name__ == "__main__":
    main()

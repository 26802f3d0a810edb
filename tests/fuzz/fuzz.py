#!/usr/bin/env python3
"""Runs the fuzzers of a build folder and reports what they tried and found.

usage: fuzz.py --build FOLDER [--seconds N] [--jobs N] [--keep FOLDER] [NAME...]

Builds nothing: `cmake --preset fuzz && cmake --build --preset fuzz` comes first. Each fuzzer begins with
tests/fuzz/corpus/NAME and the dictionary tests/fuzz/NAME.dict where there is one. The committed corpus is not
changed; --keep gets what was found to be new (one folder a fuzzer), to go on from another time.

exit: 0 nothing was found; 1 something was, its input is printed as base64; 2 usage
"""

import argparse
import base64
import concurrent.futures
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent

# One input: 10 s is a thousand times what any takes; a reader that needs more has no bound.
LIMITS = ["-timeout=10", "-rss_limit_mb=512"]
# ASan's default of 256 MiB of freed memory would be most of that limit. What cannot be had is an error.
ASAN = "quarantine_size_mb=16:allocator_may_return_null=0:detect_leaks=1"
UBSAN = "halt_on_error=1:print_stacktrace=1"


def inputs_of_finding(folder):
    """The inputs that libFuzzer kept: crash-*, leak-*, timeout-*, oom-*, and slow ones."""
    return sorted(path for path in folder.iterdir() if path.name.split("-")[0] in ("crash", "leak", "timeout", "oom"))


def run(program, seconds, keep):
    """Runs one fuzzer; gives its line of the report, and the text of what it found or ""."""
    name = program.name.removeprefix("fuzz_")
    with tempfile.TemporaryDirectory(prefix=f"kc-fuzz-{name}-") as temporary:
        folder = pathlib.Path(temporary)
        new, findings, scratch = folder / "new", folder / "findings", folder / "tmp"
        for path in (findings, scratch):
            path.mkdir()
        if keep:
            new = keep / name
        new.mkdir(parents=True, exist_ok=True)
        command = [str(program), f"-max_total_time={seconds}", "-print_final_stats=1", *LIMITS,
                   f"-artifact_prefix={findings}/"]
        if (HERE / f"{name}.dict").exists():
            command.append(f"-dict={HERE / name}.dict")
        command += [str(new), str(HERE / "corpus" / name)]
        environment = dict(os.environ, ASAN_OPTIONS=ASAN, UBSAN_OPTIONS=UBSAN, TMPDIR=str(scratch))
        if symbolizer := shutil.which("llvm-symbolizer-19") or shutil.which("llvm-symbolizer"):
            environment["ASAN_SYMBOLIZER_PATH"] = os.path.realpath(symbolizer)
        # A fuzzer that no longer looks at its own clock is a finding too.
        try:
            process = subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                                     timeout=seconds + 120, check=False)
            log, status = process.stderr.decode(errors="replace"), process.returncode
        except subprocess.TimeoutExpired as expired:
            log, status = (expired.stderr or b"").decode(errors="replace"), "still running"

        def last(pattern):
            found = re.findall(pattern, log)
            return found[-1] if found else "?"

        line = (f"{name:10} {last(r'number_of_executed_units: *([0-9]+)'):>10} executions"
                f"  {last(r'cov: ([0-9]+)'):>6} edges  {last(r'ft: ([0-9]+)'):>6} features"
                f"  {last(r'peak_rss_mb: *([0-9]+)'):>4} MiB")
        if status == 0:
            return line, ""
        # Without the lines of progress.
        said = [text for text in log.splitlines() if not re.match(r"#[0-9]+\s|\s*NEW_FUNC|INFO:", text)]
        report = [f"{name}: finding (exit {status})", *said[-80:]]
        for path in inputs_of_finding(findings):
            report += [f"{name}: {path.name}, as base64:", base64.b64encode(path.read_bytes()).decode()]
        return line, "\n".join(report)


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("\n\n")[1].removeprefix("usage: "), add_help=True)
    parser.add_argument("--build", required=True, type=pathlib.Path)
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--keep", type=pathlib.Path)
    parser.add_argument("names", nargs="*")
    arguments = parser.parse_args()
    programs = sorted((arguments.build / "bin").glob("fuzz_*"))
    if arguments.names:
        programs = [arguments.build / "bin" / f"fuzz_{name}" for name in arguments.names]
    missing = [str(program) for program in programs if not program.is_file()]
    if missing or not programs:
        parser.error(f"no fuzzer: {', '.join(missing) or arguments.build}")

    findings = []
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        runs = [pool.submit(run, program, arguments.seconds, arguments.keep) for program in programs]
        for done in concurrent.futures.as_completed(runs):
            line, finding = done.result()
            print(line, flush=True)
            if finding:
                findings.append(finding)
    for finding in findings:
        print(f"\n{finding}")
    print(f"{len(programs)} fuzzers, {arguments.seconds} s each, {len(findings)} with a finding")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())

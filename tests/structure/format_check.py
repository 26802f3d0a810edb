#!/usr/bin/env python3
"""Checks that all C++ sources are as clang-format leaves them.

usage: format_check.py REPOSITORY CLANG_FORMAT

Exit 1 and one line a file that is not; 77 (skipped, for CTest) when CLANG_FORMAT is missing or is not the
release pinned in packaging/requirements-test.txt, since releases differ.
"""

import pathlib
import re
import subprocess
import sys

FOLDERS = ["core", "cli", "include", "tests", "docs/examples"]
SUFFIXES = {".h", ".hpp", ".c", ".cpp"}
SKIPPED = 77


def why_unusable(root, clang_format):
    pins = (root / "packaging/requirements-test.txt").read_text(encoding="utf-8")
    pinned = re.search(r"^clang-format==(\S+)", pins, re.MULTILINE)[1]
    try:
        answer = subprocess.run([clang_format, "--version"], capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError) as error:
        return f"{error}; `packaging/bootstrap test` installs {pinned}"
    found = re.search(r"version (\S+)", answer)
    return None if found and found[1] == pinned else f"{clang_format} is {answer.strip()}, not {pinned}"


def main(arguments):
    if len(arguments) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    root, clang_format = pathlib.Path(arguments[0]).resolve(), arguments[1]
    if reason := why_unusable(root, clang_format):
        print(f"format not checked: {reason}")
        return SKIPPED
    files = sorted(
        str(path.relative_to(root))
        for folder in FOLDERS
        for path in (root / folder).rglob("*")
        if path.suffix in SUFFIXES and path.is_file()
    )
    if not files:
        print(f"no sources below {root}")
        return 1
    result = subprocess.run(
        [clang_format, "--dry-run", "-Werror", "--style=file", "--fallback-style=none", *files],
        cwd=root, capture_output=True, text=True,
    )
    if result.returncode == 0:
        print(f"{len(files)} files, formatted")
        return 0
    off = sorted(set(re.findall(r"^(\S[^:\n]*):\d+:\d+: error: ", result.stderr, re.MULTILINE)))
    print("\n".join(off) if off else result.stderr)
    print(f"{len(off)} of {len(files)} files are not as {clang_format} -i would leave them")
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

#!/usr/bin/env python3
"""Holds the sources to the folder rules of docs/architecture.md.

usage: include_rules.py REPOSITORY     checks core/ and cli/; exit 1 and one line a violation
       include_rules.py --self-test    checks the checker on small trees with and without a forbidden arrow

The tables below are the rules. Whoever needs a new arrow changes them, and the page, in the same commit.
"""

import pathlib
import re
import sys
import tempfile

# A part is a folder of core/, or the half of one that only kc-engine links. First match wins; a file that
# matches none belongs to the part named as its first folder. Paths are as in an #include.
HALVES = [
    ("artifact/elf", r"artifact/elf/"),
    ("backend/run", r"backend/(run\.|[^/]+/(run/|(runner|diagnostics)\.))"),
    ("engine/program", r"engine/(engine_main|worker|executor[a-z_]*)\."),
    ("kc", r"loader/include/kc/"),
]

# What each part may include besides itself. Everything that is not here is forbidden.
LEAVES = {"base", "target", "artifact"}  # need no library but the standard one, OpenSSL and zstd
PLANNING = LEAVES | {"util", "config", "manifest"}
ALL = PLANNING | {"store", "bundle", "backend", "engine", "build", "report"}
MAY_INCLUDE = {
    "base": set(),
    "target": {"base"},
    "artifact": {"base", "target"},
    "artifact/elf": LEAVES | {"util"},
    "util": {"base"},
    "config": {"base", "util"},
    "manifest": LEAVES | {"util", "config"},
    # These do not know each other, nor the manifest, nor the settings: build passes in what they need.
    "store": LEAVES | {"util"},
    "bundle": LEAVES,
    "backend": LEAVES | {"util"},
    "backend/run": LEAVES | {"util", "backend", "artifact/elf"},
    "engine": PLANNING | {"store", "bundle", "backend"},
    "engine/program": PLANNING | {"store", "bundle", "backend", "backend/run", "artifact/elf", "engine"},
    "build": ALL - {"build", "report"},
    "report": ALL - {"report"},
    "loader": LEAVES | {"bundle", "kc"},
    "cli": ALL | {"loader", "kc"},
    "kc": set(),  # the public headers, core/loader/include/kc/
}

# Third-party libraries: what their headers are called, and the one place that includes them.
MAY_USE_UTIL = "|".join(sorted(part for part, used in MAY_INCLUDE.items() if "util" in used) + ["util"])
THIRD_PARTY = [
    ("CLI11", r"CLI/", r"cli/(kcload/)?options[^/]*"),
    ("yaml-cpp", r"yaml-cpp/", r"core/config/.*"),
    ("OpenSSL", r"openssl/", r"core/base/(crypto_library|digest)\..*|core/bundle/signature[^/]*"),
    ("zstd", r"z(std|std_errors|dict)\.h$", r"core/base/compress\..*"),
    ("libelf", r"(libelf|gelf)\.h$", r"core/artifact/elf/.*"),
    ("oneTBB", r"(tbb|oneapi)/", r"core/engine/executor_tbb\.cpp"),
    ("nlohmann-json", r"nlohmann/", r"core/util/.*"),
    ("libfmt", r"fmt/", rf"(core/)?({MAY_USE_UTIL})/.*"),
]

# What the C library and the kernel bring. The C++ library's headers are those without dot and slash.
SYSTEM = re.compile(
    r"(sys|linux|asm|netinet|arpa)/.*"
    r"|(assert|cpuid|ctype|dirent|dlfcn|elf|endian|errno|fcntl|fnmatch|ftw|getopt|glob|grp|inttypes|langinfo|limits"
    r"|link|locale|malloc|math|mntent|poll|pthread|pwd|sched|semaphore|signal|spawn|stdarg|stdbool|stddef|stdint"
    r"|stdio|stdlib|string|strings|sysexits|syslog|termios|time|ucontext|unistd|wchar|wordexp)\.h"
)

# The environment is read in core/config alone. Exceptions: path -> reason.
ENVIRONMENT = re.compile(r"\b(getenv|secure_getenv|environ|__environ)\b")
ENVIRONMENT_EXCEPTIONS: dict[str, str] = {}

# Files are reached through base::file_system() here, so that tests can stand between kc and the kernel. Names that are
# also those of methods (`open`, `read`, `link`) count only as `::open(`. Exceptions: path -> what of it, and why.
FILE_SYSTEM_PARTS = {"store", "bundle", "build"}
FILE_CALLS = re.compile(
    r"(?<![\w.>:])(?:::)?\b(openat2?|creat|pread64|pwrite64|preadv2?|pwritev2?|readv|writev|fsync|fdatasync|sync_file_range|syncfs"
    r"|l?stat64|lstat|fstat|fstatat|statx|linkat|symlinkat|symlink|renameat2?|unlinkat|unlink|rmdir|mkdirat|mkdtemp|mkstemp"
    r"|f?chmod|f?chmodat|f?chown|lchown|fchownat|truncate|ftruncate|f?allocate|posix_fallocate|futimens|utimensat|utimes?|futimes"
    r"|fdopendir|opendir|readdir(?:_r)?|scandir|nftw|flock|lockf|fcntl|fopen|fdopen|freopen|mmap|copy_file_range|sendfile"
    r"|faccessat|readlinkat|readlink|realpath)\s*\("
    r"|(?<![\w>])::(open|close|read|write|pread|pwrite|stat|access|link|rename|remove|mkdir)\s*\("
    r"|\bstd::(rename|fopen|(?:basic_)?[io]?fstream|filesystem::(?!path\b)\w+)\b"
)
FILE_CALL_EXCEPTIONS = {
    "core/store/layout.cpp": ("filesystem::canonical", "resolves the root, once, before there is a descriptor"),
}

PUBLIC = "core/loader/include"  # below it is kc/, as users include it

INCLUDE = re.compile(r'^\s*#\s*include\s*(?:<([^>]+)>|"([^"]+)")', re.MULTILINE)
COMMENTS = re.compile(r'//[^\n]*|/\*.*?\*/|("(?:\\.|[^"\\\n])*")', re.DOTALL)
LITERALS = re.compile(r'"(?:\\.|[^"\\\n])*"')
SOURCES = {".h", ".hpp", ".c", ".cc", ".cpp", ".inc"}


def part_of(path):
    """The part that an include path, such as `base/error.h`, belongs to."""
    for part, pattern in HALVES:
        if re.match(pattern, path):
            return part
    return path.split("/")[0]


def without_comments(text):
    """Comments blanked, lines kept."""
    return COMMENTS.sub(lambda match: match[1] or re.sub(r"[^\n]", " ", match[0]), text)


def include_error(root, file, part, name, quoted):
    """Why `file`, of `part`, may not include `name`; None if it may."""
    public = name.startswith("kc/")
    if not quoted and not public:
        for library, headers, place in THIRD_PARTY:
            if re.match(headers, name):
                return None if re.fullmatch(place, file) else f"{library} is not included here (<{name}>)"
        if re.fullmatch(r"[a-z0-9_]+", name) or SYSTEM.fullmatch(name):
            return None
        return f"<{name}> is neither a system header nor a library of the table in {pathlib.Path(__file__).name}"
    if public:
        base, other = PUBLIC, "kc"
    else:
        base, other = ("" if name.startswith("cli/") else "core"), part_of(name)
    if ".." in name or not (root / base / name).is_file():
        return f'"{name}" is no file below core/ or cli/, nor a public header (write the path from there)'
    if other != part and other not in MAY_INCLUDE[part]:
        return f'{part} may not include {other} ("{name}")'
    return None


def direct_file_calls(file, text):
    """Line and name of each call of the kernel's files that does not go through base::file_system()."""
    text = LITERALS.sub('""', text)
    for match in FILE_CALLS.finditer(text):
        call = next(group for group in match.groups() if group)
        if call != FILE_CALL_EXCEPTIONS.get(file, (None,))[0]:
            yield text.count("\n", 0, match.start(match.lastindex)) + 1, call


def violations(root):
    """All violations below `root`, as `file:line: text`; a tree without sources is one."""
    found, count = [], 0
    for top in ("core", "cli"):
        for path in sorted((root / top).rglob("*")):
            if path.suffix not in SOURCES or not path.is_file():
                continue
            count += 1
            file = path.relative_to(root).as_posix()
            part = part_of(file if top == "cli" else file.split("/", 1)[1])
            if part not in MAY_INCLUDE:
                found.append(f"{file}:1: folder {part} has no rule")
                continue
            text = without_comments(path.read_text(encoding="utf-8"))

            def line(match):
                return text.count("\n", 0, match.start(match.lastindex or 0)) + 1

            for match in INCLUDE.finditer(text):
                error = include_error(root, file, part, match[1] or match[2], quoted=match[2] is not None)
                if error:
                    found.append(f"{file}:{line(match)}: {error}")
            if part != "config" and file not in ENVIRONMENT_EXCEPTIONS:
                for match in ENVIRONMENT.finditer(LITERALS.sub('""', text)):
                    found.append(f"{file}:{line(match)}: {match[1]}: the environment is read in core/config only")
            if part in FILE_SYSTEM_PARTS:
                found += [f"{file}:{number}: {call}: files are reached through base::file_system() here"
                          for number, call in direct_file_calls(file, text)]
    if count == 0:
        found.append(f"{root}: no sources below core/ or cli/")
    return found


# Small trees: files with their text, and for each expected violation a piece of its line; none: allowed.
HEADERS = {
    "core/base/error.h": "#include <expected>\n#include <sys/stat.h>\n",
    "core/artifact/artifact.h": '#include "base/error.h"\n',
    "core/artifact/elf/facts.h": '#include "artifact/artifact.h"\n#include <gelf.h>\n',
    "core/util/text.h": "#include <fmt/format.h>\n",
    "core/backend/backend.h": '#include "util/text.h"\n',
    "core/backend/run.h": '#include "backend/backend.h"\n#include "artifact/elf/facts.h"\n',
    "core/store/store.h": '#include "artifact/artifact.h"\n',
    "core/engine/engine.h": '#include "store/store.h"\n#include "backend/backend.h"\n',
    "core/engine/worker.h": '#include "backend/run.h"\n',
    "core/engine/executor_tbb.cpp": '#include "engine/worker.h"\n#include <oneapi/tbb/task_arena.h>\n',
    "core/build/build.h": '#include "engine/engine.h"\n',
    "core/loader/include/kc/loader.h": "#include <stdint.h>\n",
    "core/loader/include/kc/loader.hpp": "#include <kc/loader.h>\n",
    "cli/options.cpp": '#include <CLI/CLI.hpp>\n#include "build/build.h"\n#include "cli/options.h"\n',
    "cli/options.h": "#include <kc/loader.h>\n",
}
SELF_TESTS = [
    ("what is allowed passes", {}, []),
    ("an arrow against the direction", {"core/base/a.h": '#include "util/text.h"\n'},
     ["core/base/a.h:1: base may not include util"]),
    ("the line is named", {"core/base/a.h": '/* one\ntwo */\n\n  #  include "store/store.h"\n'},
     ["core/base/a.h:4: base may not include store"]),
    ("two in braces", {"core/store/a.cpp": '#include "backend/backend.h"\n'}, ["store may not include backend"]),
    ("store and settings", {"core/config/settings.h": "", "core/store/a.cpp": '#include "config/settings.h"\n'},
     ["store may not include config"]),
    ("fmt where util is not used", {"core/artifact/a.cpp": "#include <fmt/core.h>\n"}, ["libfmt is not included here"]),
    ("the running half in kc", {"cli/a.cpp": '#include "backend/run.h"\n'}, ["cli may not include backend/run"]),
    ("libelf's half in kc", {"core/build/a.cpp": '#include "artifact/elf/facts.h"\n'},
     ["build may not include artifact/elf"]),
    ("libelf beside its folder", {"core/artifact/a.cpp": "#include <libelf.h>\n"}, ["libelf is not included here"]),
    ("CLI11 in a command of kcload", {"cli/kcload/list.cpp": "#include <CLI/CLI.hpp>\n", "cli/kcload/options.cpp": "#include <CLI/CLI.hpp>\n"},
     ["cli/kcload/list.cpp:1: CLI11 is not included here"]),
    ("CLI11 in a command", {"cli/build.cpp": "#include <CLI/CLI.hpp>\n"}, ["CLI11 is not included here"]),
    ("the engine's own half in its other half", {"core/engine/wire.h": '#include "engine/worker.h"\n'},
     ["engine may not include engine/program"]),
    ("TBB beside the executor", {"core/engine/worker.cpp": "#include <tbb/task_group.h>\n"},
     ["oneTBB is not included here"]),
    ("TBB outside the engine", {"core/base/p.cpp": "#include <tbb/parallel_for.h>\n"}, ["oneTBB is not included here"]),
    ("OpenSSL beside digest", {"core/base/files.cpp": "#include <openssl/evp.h>\n"}, ["OpenSSL is not included here"]),
    ("zstd beside compress", {"core/bundle/w.cpp": "#include <zstd.h>\n"}, ["zstd is not included here"]),
    ("a library of no rule", {"core/util/a.cpp": "#include <boost/json.hpp>\n"}, ["<boost/json.hpp> is neither"]),
    ("a folder of no rule", {"core/misc/a.cpp": ""}, ["folder misc has no rule"]),
    ("a path from elsewhere", {"core/base/a.cpp": '#include "error.h"\n'}, ['"error.h" is no file below']),
    ("a path that goes up", {"core/base/a.cpp": '#include "util/../base/error.h"\n'}, ["is no file below"]),
    ("a public header that needs the inside", {"core/loader/include/kc/a.h": '#include "base/error.h"\n'},
     ["kc may not include base"]),
    ("build's own reports", {"core/report/r.h": "", "core/build/a.cpp": '#include "report/r.h"\n'},
     ["build may not include report"]),
    ("the environment outside the settings", {"core/store/a.cpp": '#include <cstdlib>\nauto a = std::getenv("A");\n'},
     ["core/store/a.cpp:2: getenv"]),
    ("the environment in the settings", {"core/config/a.cpp": 'auto a = getenv("A");\n'}, []),
    ("files beside the interface",
     {"core/store/a.cpp": "int a = ::open(p, 0);\nint b = unlinkat(d, p, 0);\n",
      "core/build/a.cpp": "bool c = ::stat(p, &s) == 0;\nauto d = std::ofstream(p);\nif (fsync(fd) != 0) return;\n",
      "core/bundle/a.cpp": "std::filesystem::rename(a, b);\n"},
     ["core/build/a.cpp:1: stat", "core/build/a.cpp:2: ofstream", "core/build/a.cpp:3: fsync",
      "core/bundle/a.cpp:1: filesystem::rename", "core/store/a.cpp:1: open", "core/store/a.cpp:2: unlinkat"]),
    ("files through the interface and elsewhere",
     {"core/store/a.cpp": "auto a = base::file_system().unlinkat(d, p, 0);\nauto b = Layout::open(p);\nread(fd);\n"
                          "std::filesystem::path c(p);\nauto d = file->rename(p);\n",
      "core/engine/a.cpp": "int a = ::mkdir(p, 0);\n"}, []),
    ("comments and literals do not count",
     {"core/base/a.cpp": '// getenv\n/*\n#include "util/text.h"\n*/\nauto a = "getenv // \\" environ";\n'}, []),
    ("nothing to look at", None, ["no sources below"]),
]


def self_test():
    failed = 0
    for name, files, expected in SELF_TESTS:
        with tempfile.TemporaryDirectory() as folder:
            for file, text in ({**HEADERS, **files} if files is not None else {}).items():
                path = pathlib.Path(folder, file)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text, encoding="utf-8")
            found = violations(pathlib.Path(folder))
        if len(found) != len(expected) or any(want not in line for want, line in zip(expected, found)):
            failed += 1
            print(f"self-test '{name}': expected {expected}, found {found}")
    print(f"self-test: {len(SELF_TESTS)} trees, {failed} failed")
    return failed


def main(arguments):
    if arguments == ["--self-test"]:
        return 1 if self_test() else 0
    if len(arguments) != 1 or arguments[0].startswith("-"):
        print(__doc__, file=sys.stderr)
        return 2
    found = violations(pathlib.Path(arguments[0]).resolve())
    print("\n".join(found) if found else "all includes follow the rules")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

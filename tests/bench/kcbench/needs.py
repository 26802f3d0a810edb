"""What cases need besides kc. A need that is not there is reported, and the case is not run."""

import dataclasses
import os
import shutil
from collections.abc import Callable


@dataclasses.dataclass(frozen=True)
class Need:
    name: str
    missing: Callable  # of a Lab: why it is not there, or ""


def program(name, package):
    return Need(name, lambda lab: "" if shutil.which(name) else f"{name} is not installed (package {package})")


def built(name):
    return Need(name, lambda lab: "" if (lab.build / "bin" / name).exists() else f"{name} is not built in {lab.build}")


def pinned(name):
    return Need(f"pinned {name}", lambda lab: "" if lab.pinned(name) else
                f"the pinned {name} is not in {lab.build}/venv (packaging/bootstrap demo installs it)")


def _cpus_missing(lab):
    return "" if lab.cpus >= 2 else "only one CPU is allowed"


def _space_missing(lab):
    disk = os.statvfs(lab.scratch)
    return "" if disk.f_bavail * disk.f_frsize > 1 << 30 and disk.f_favail > 200_000 else (
        f"less than 1 GiB or 200,000 inodes free in {lab.scratch.parent} (TMPDIR moves it)")


NINJA = program("ninja", "ninja-build")
MAKE = program("make", "make")
CCACHE = program("ccache", "ccache")
CC = program("cc", "gcc")
ZSTD = program("zstd", "zstd")
FIND = program("find", "findutils")
XARGS = program("xargs", "findutils")
STAND_IN = built("fake_tileiras")
TILEIRAS = pinned("tileiras")
FATBINARY = pinned("fatbinary")
LOOM = Need("Loom", lambda lab: "" if lab.loom.exists() else
            f"no Loom library in {lab.build}/loom (packaging/bootstrap test makes one)")
LOOM_BARE = built("loom_bare")
LOADER_BENCH = built("loader_bench")
LOOM_CORPUS = Need("corpus", lambda lab: "" if lab.loom_wheel else f"no wheel in {lab.build}/loom/wheel")
TWO_CPUS = Need("two CPUs", _cpus_missing)
SPACE = Need("disk space", _space_missing)

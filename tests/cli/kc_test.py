"""What the tests of whole programs share: a folder of their own, kc with a built environment, stand-in compilers.

Programs come from the environment, which CTest sets: KC_BUILD (the build folder). A test that needs the pinned
tileiras or a real Loom says `not run: ...` when bootstrap has not installed it.
"""

import ctypes
import fcntl
import glob
import hashlib
import json
import os
import pathlib
import pty
import select
import shutil
import signal
import struct
import subprocess
import tempfile
import termios
import time
import unittest

BUILD = pathlib.Path(os.environ["KC_BUILD"])
SOURCE = pathlib.Path(__file__).resolve().parents[2]
KC = BUILD / "bin" / "kc"
KCLOAD = BUILD / "bin" / "kcload"
USE_LOADER = BUILD / "bin" / "use_loader"
STUBS = BUILD / "lib" / "stub"
FAKE = BUILD / "bin" / "fake_tileiras"
MAKE_BUNDLE = BUILD / "bin" / "make_bundle"
HOSTILE = BUILD / "lib" / "hostile"
DEMO = SOURCE / "manifests" / "demo" / "kernels.yaml"
DEMO_AMD = SOURCE / "manifests" / "demo_amd" / "kernels.yaml"

TILE_IR_HEADER = b"\x7fTileIR\x00" + bytes([13, 3, 0, 0])


def real_tileiras():
    """Path of the pinned tileiras, or None."""
    found = sorted(glob.glob(str(BUILD / "venv/lib/python3*/site-packages/nvidia/cu13/bin/tileiras")))
    return found[0] if found else None


def real_loom(variant="g4"):
    """Path of the library that bootstrap makes (tests/support/loom_bridge), or None."""
    path = BUILD / "loom" / variant / "libloomc.so"
    return path if path.exists() else None


def llvm_tool(name):
    """Path of llvm-readelf or the like, or None."""
    found = [shutil.which(f"llvm-{name}")] + sorted(glob.glob(f"/usr/bin/llvm-{name}-*"))
    return next((path for path in found if path), None)


# out[i] = in[i] * {factor}: right for a real Loom, and small.
LOOM_KERNEL = """\
config.def @tuner.workgroup_size = 64 : index

kernel.def export("{name}") @{name}(%n: index) {{
  %one = index.constant 1 : index
  %size = config.get @tuner.workgroup_size : index
  %last = index.sub %size, %one : index
  %reach = index.add %n, %last : index
  %groups = index.div %reach, %size : index
  kernel.launch.config workgroups(%groups, %one, %one) workgroup_size(%size, %one, %one) : index
}} launch(%n: index, %in: buffer, %out: buffer) {{
  %start = index.constant 0 : offset
  %dense = encoding.layout.strided [1] : encoding<layout>
  %from = buffer.assume.memory_space<global> %in : buffer
  %to = buffer.assume.memory_space<global> %out : buffer
  %source = buffer.view %from[%start] : buffer -> view<[%n]xi32, %dense>
  %products = buffer.view %to[%start] : buffer -> view<[%n]xi32, %dense>
  %size = config.get @tuner.workgroup_size : index
  %factor = scalar.constant {factor} : i32
  %group = kernel.workgroup.id<x> : index
  %item = kernel.workitem.id<x> : index
  %before = index.mul %group, %size : index
  %element = index.add %before, %item : index
  %is_ours = index.cmp ult, %element, %n : index
  scf.if %is_ours {{
    %value = view.load %source[%element] : view<[%n]xi32, %dense> -> i32
    %product = scalar.muli %value, %factor : i32
{more}    view.store %product, %products[%element] : i32, view<[%n]xi32, %dense>
  }}
  kernel.return
}}
"""


def loom(name, directives="", factor=3, more=""):
    """A Loom source that exports `name`, with directives for the stand-in (hostile_loom/faults.h)."""
    text = LOOM_KERNEL.format(name=name, factor=factor, more=more)
    return (f"//! {directives}\n" if directives else "") + text


def events(text):
    """What `--format=json` prints."""
    return [json.loads(line) for line in text.splitlines()]


def sealed(data):
    """A file of the store, or an archive, with the digest that its header should have (docs/store-format.md)."""
    (size,) = struct.unpack_from("<Q", data, 16)
    return bytes(data[:32]) + hashlib.sha256(data[:32] + data[64:size]).digest() + bytes(data[64:])


def tile(directives=""):
    """A source for the stand-in: the Tile IR header and what it is told to do."""
    return TILE_IR_HEADER + b"\n" + directives.encode() + b"\n"


class KcTest(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        self.root = pathlib.Path(tempfile.mkdtemp(prefix="kc-test-"))
        self.addCleanup(shutil.rmtree, self.root, ignore_errors=True)
        self.work = self.root / "work"
        self.work.mkdir()
        self.store = self.root / "store"

    # -- the stand-in compiler ------------------------------------------------------------------------------

    def install_fake(self, name="compiler", variant="1"):
        """Installs the stand-in; the same name again replaces it by rename. Returns the program's path."""
        folder = self.root / name
        subprocess.run([FAKE, "--install", folder, variant], check=True, stdout=subprocess.DEVNULL)
        return folder / "bin" / "tileiras"

    def install_hostile(self, name="loom", generation="g4", variant="1"):
        """Installs the stand-in for Loom; the same name again replaces it by rename. Another variant is another file
        that makes other code. Returns the library's path."""
        folder = self.root / name
        folder.mkdir(exist_ok=True)
        data = (HOSTILE / generation / "libloomc.so").read_bytes()
        mark = b"kc-hostile-variant="
        self.assertIn(mark + b"1", data)
        new = folder / "new"
        new.write_bytes(data.replace(mark + b"1", mark + variant.encode()))
        new.chmod(0o755)
        return new.rename(folder / "libloomc.so")

    def settle(self):
        """Waits until the files made so far are old enough for their tuples to be trusted (2 s). Their change time
        cannot be set, so there is no quicker way."""
        time.sleep(2.1)

    def install_bare(self):
        """kc and its engine in a folder of their own, beside which no compiler lies (the build folder has the pinned
        ones). Returns the program, for kc(program=...)."""
        folders = ("/usr/local/lib", "/lib64", "/usr/lib64", "/usr/lib", "/usr/lib/*-linux-gnu", "/usr/local/lib/*-linux-gnu")
        places = ["/usr/local/cuda*/bin/tileiras", *(f"{folder}/libloomc.so*" for folder in folders)]
        if found := [path for place in places for path in glob.glob(place)]:
            self.skipTest(f"not run: a compiler is where kc always looks: {found[0]}")
        prefix = self.root / "prefix"
        program, engine = prefix / "bin" / "kc", prefix / "libexec" / "kc" / "kc-engine"
        for made, original in ((program, KC), (engine, BUILD / "libexec" / "kc" / "kc-engine")):
            if made.exists():
                continue
            made.parent.mkdir(parents=True, exist_ok=True)
            try:
                os.link(original, made)  # a copy of them is large
            except OSError:
                shutil.copy(original, made)
        return program

    # -- running kc -----------------------------------------------------------------------------------------

    def environment(self, **changes):
        env = {
            "PATH": "/usr/bin:/bin",
            "HOME": str(self.root / "home"),
            "KC_STORE_DIR": str(self.store),
            "LC_ALL": "C.UTF-8",
            "TMPDIR": str(self.root),
        }
        for name in ("ASAN_OPTIONS", "UBSAN_OPTIONS", "TSAN_OPTIONS"):
            if name in os.environ:
                env[name] = os.environ[name]
        for name, value in changes.items():
            if value is None:
                env.pop(name, None)
            else:
                env[name] = str(value)
        return env

    def kc(self, *arguments, env=None, cwd=None, expect=0, timeout=120, program=KC):
        """Runs kc and checks its exit code (None: any). Returns the finished process, output as text."""
        done = subprocess.run(
            [str(program), *map(str, arguments)],
            cwd=cwd or self.work,
            env=env or self.environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=timeout,
        )
        done.out = done.stdout.decode(errors="replace")
        done.err = done.stderr.decode(errors="replace")
        if expect is not None:
            self.assertEqual(
                done.returncode, expect, f"kc {' '.join(map(str, arguments))}\n{done.out}\n{done.err}"
            )
        return done

    def kc_json(self, *arguments, **options):
        """Runs kc with --format=json; returns the events."""
        done = self.kc(*arguments, "--format=json", **options)
        return events(done.out)

    def summary(self, *arguments, **options):
        return self.kc_json(*arguments, **options)[-1]

    def bare(self, *arguments, env=None, **options):
        """kc where there is no compiler."""
        return self.kc(*arguments, program=self.install_bare(), env=env or self.environment(PATH=""), **options)

    def bare_json(self, *arguments, **options):
        return events(self.bare(*arguments, "--format=json", **options).out)

    def start(self, *arguments, env=None, cwd=None):
        return subprocess.Popen(
            [str(KC), *map(str, arguments)],
            cwd=cwd or self.work,
            env=env or self.environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def kc_on_terminal(self, *arguments, width=100, env=None, with_stderr=False, program=KC):
        """What kc, which must succeed, writes to a terminal of `width` columns."""
        # A terminal whose last writer is gone may drop what nobody has read yet, so this process stays a writer and
        # ends the output itself, behind everything that kc wrote.
        end = b"-- the end of the output --"
        master, slave = pty.openpty()
        process = None
        try:
            fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 50, width, 0, 0))
            process = subprocess.Popen([program, *map(str, arguments)], cwd=self.work, env=env or self.environment(TERM="xterm"),
                                       stdout=slave, stdin=subprocess.DEVNULL,
                                       stderr=slave if with_stderr else subprocess.DEVNULL)
            deadline = time.monotonic() + 60
            out, ended = b"", False
            while not out.endswith(end):
                self.assertLess(time.monotonic(), deadline, f"kc does not end: {out[-200:]!r}")
                if select.select([master], [], [], 0.02)[0]:
                    out += os.read(master, 65536)
                elif not ended and process.poll() is not None:
                    ended = os.write(slave, end) > 0
            self.assertEqual(process.returncode, 0)
        finally:
            if process is not None and process.poll() is None:
                process.kill()
                process.wait()
            os.close(master)
            os.close(slave)
        return out.removesuffix(end).replace(b"\r\n", b"\n").decode()

    # -- files ----------------------------------------------------------------------------------------------

    def write(self, name, content):
        path = self.work / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    def make_units(self, count, directives="", targets="[sm_90]", folder=""):
        """A manifest of `count` kernels k000, k001, ... with a source each; directives may use {i}."""
        prefix = f"{folder}/" if folder else ""
        lines = ["version: 1", f"targets: {targets}", "kernels:"]
        for i in range(count):
            self.write(f"{prefix}k{i:03}.tilebc", tile(f"@entry=kernel n={i} " + directives.format(i=i)))
            lines.append(f"  - {{ name: k{i:03}, sources: k{i:03}.tilebc, entry: kernel }}")
        return self.write(f"{prefix}kernels.yaml", "\n".join(lines) + "\n")

    def make_loom_units(self, count, directives=None, targets="[gfx1100]", folder="", per_unit=None):
        """The same with Loom kernels k000, k001, ...; `directives` (unit number -> text) are for the stand-in."""
        prefix = f"{folder}/" if folder else ""
        lines = ["version: 1", f"targets: {targets}", "kernels:"]
        for i in range(count):
            name = f"k{i:03}"
            self.write(f"{prefix}{name}.loom", loom(name, (directives or {}).get(i, ""), factor=i + 2))
            extra = f", {per_unit}" if per_unit else ""
            lines.append(f"  - {{ name: {name}, sources: {name}.loom{extra} }}")
        return self.write(f"{prefix}kernels.yaml", "\n".join(lines) + "\n")

    def make_bundle(self, name, *records, **about):
        """A bundle of made-up records (tests/support/make_bundle.cpp says what they may have). Returns its path."""
        lines = [json.dumps({"bundle": "made"} | about), *map(json.dumps, records)]
        path = self.work / name
        subprocess.run([MAKE_BUNDLE, path], input="\n".join(lines), text=True, check=True)
        return path

    def with_fake(self, **changes):
        """An environment whose tileiras is the stand-in, installed when it is not there yet."""
        program = self.root / "compiler" / "bin" / "tileiras"
        if not program.exists():
            self.install_fake()
        return self.environment(KC_TILEIRAS=program, **changes)

    def with_hostile(self, **changes):
        """An environment whose Loom is the stand-in, installed when it is not there yet."""
        library = self.root / "loom" / "libloomc.so"
        if not library.exists():
            self.install_hostile()
        return self.environment(KC_LOOM_LIBRARY=library, **changes)

    def with_loom(self, variant="g4", **changes):
        """An environment with a real Loom; without one the test says `not run`."""
        library = real_loom(variant)
        if library is None:
            self.skipTest("not run: there is no Loom (packaging/bootstrap test makes one)")
        return self.environment(KC_LOOM_LIBRARY=library, **changes)

    def with_stub(self, cuda=None, hip=None, variant="", **changes):
        """An environment whose GPU drivers are the stand-ins, told as tests/support/stub_driver/control.h says; None: no
        driver of that maker. `variant`: "_without_<symbol>" of the CUDA one."""
        folders = [STUBS / ("cuda" + variant)] * (cuda is not None) + [STUBS / "hip"] * (hip is not None)
        if cuda is None or hip is None:
            self.require_no_driver(*[name for name, told in (("cuda", cuda), ("hip", hip)) if told is None])
        return self.environment(LD_LIBRARY_PATH=":".join(map(str, folders)) or None, KC_STUB_CUDA=cuda, KC_STUB_HIP=hip,
                                **changes)

    def require_no_driver(self, *names):
        """Ends a test that is about a machine without these drivers on a machine that has them."""
        for name in names:
            for library in {"cuda": ["libcuda.so.1"], "hip": [f"libamdhip64.so.{n}" for n in (7, 6, 5)]}[name]:
                if self.can_open(library):
                    self.skipTest(f"not run: this machine has a driver: {library}")

    @staticmethod
    def can_open(library):
        try:
            ctypes.CDLL(library)
        except OSError:
            return False
        return True

    def frame_of(self, bundle, unit):
        """Where the stored bytes of the frame are that holds a unit: offset and size (docs/bundle-format.md)."""
        record = next(event for event in self.kc_json("show", bundle) if event.get("unit") == unit)
        data = bundle.read_bytes()
        (table,) = struct.unpack_from("<Q", data, 112)
        return struct.unpack_from("<QQ", data, table + 64 * record["frame"])

    # -- processes ------------------------------------------------------------------------------------------

    def descendants(self, pid):
        """All processes below `pid`: a list of (pid, start time), so that a number used again is not taken for it."""
        parents, starts = {}, {}
        for stat in glob.glob("/proc/[0-9]*/stat"):
            try:
                with open(stat) as file:
                    fields = file.read().rpartition(")")[2].split()
            except OSError:
                continue
            number = int(stat.split("/")[2])
            parents[number] = int(fields[1])
            starts[number] = fields[19]
        found, open_ = [], [pid]
        while open_:
            parent = open_.pop()
            children = [number for number, its_parent in parents.items() if its_parent == parent]
            found += [(number, starts[number]) for number in children]
            open_ += children
        return found

    def alive(self, processes):
        """Those of descendants() that have not ended; one that nobody has waited for yet has."""
        found = []
        for pid, start in processes:
            try:
                with open(f"/proc/{pid}/stat") as file:
                    fields = file.read().rpartition(")")[2].split()
            except OSError:
                continue
            if fields[19] == start and fields[0] not in ("Z", "X"):
                found.append(pid)
        return found

    def wait_until(self, condition, seconds=30):
        """Waits until condition() gives something true, which it returns."""
        deadline = time.monotonic() + seconds
        while True:
            if result := condition():
                return result
            self.assertLess(time.monotonic(), deadline, "nothing happens")
            time.sleep(0.005)

    def engine_of(self, process):
        """The number of the engine of a running kc, or None."""
        for pid, _ in self.descendants(process.pid):
            try:
                with open(f"/proc/{pid}/comm") as file:
                    if file.read().strip() == "kc-engine":
                        return pid
            except OSError:
                pass
        return None

    def digest(self, path):
        return hashlib.sha256(pathlib.Path(path).read_bytes()).hexdigest()

    def store_files(self, pattern):
        return sorted(self.store.glob(f"v1/{pattern}"))

    def replace(self, path, data):
        """Another file in the place of one of the store, which nobody may write into."""
        path.unlink()
        path.write_bytes(data)

    def damage(self, path, at=-1):
        """Changes a bit of a file of the store."""
        data = bytearray(path.read_bytes())
        data[at] ^= 1
        self.replace(path, data)

    def age(self, *paths, hours):
        """Sets back the time of last use of files."""
        then = time.time() - hours * 3600
        for path in paths:
            os.utime(path, (then, then), follow_symlinks=False)

    def set_modes(self, root, folders, files):
        """Gives the folder, and all that is in it, these modes."""
        for path in [root, *root.rglob("*")]:
            path.chmod(folders if path.is_dir() else files)

    def assert_no_temporaries(self):
        """Nothing half-done is left in the store, the output's folder or TMPDIR."""
        left = [p for p in self.store_files("tmp/*") if not p.name.startswith("failed-")]
        left += list(self.work.rglob(".*kc-*")) + list(self.root.glob("kc-*"))
        self.assertEqual(left, [])


def main():
    # As a shell would start kc: whoever runs the tests may ignore these.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE):
        signal.signal(number, signal.SIG_DFL)
    unittest.main(verbosity=2)

#!/usr/bin/env python3
"""Makes loadable libloomc.so for tests out of the official Loom compiler in a public wheel.

    make.py --wheel FILE --out DIR [VARIANT...]      all variants by default

Writes DIR/libloomcore.so (the wheel's executable, made loadable) and DIR/<variant>/libloomc.so. A variant that is
there and was made of the same files is left alone; of several at once the later wait. README.md beside this file says
what the result is good for. Needs Linux on x86-64 and a C++ compiler (${CXX:-c++}).
"""

import argparse
import fcntl
import hashlib
import io
import os
import pathlib
import platform
import re
import shlex
import struct
import subprocess
import sys
import zipfile

HERE = pathlib.Path(__file__).resolve().parent
TESTS = HERE.parents[1]
ABI = HERE.parent / "loom_abi"
PIN = TESTS.parent / "packaging" / "requirements-loom.txt"

EXECUTABLE = "hrx_solutions/_native/bin/loom-text-server"
# What the bridge calls; the executable has many more symbols.
WANTED = re.compile(
    r"(loomc_|iree_status_|iree_arena_block_pool_|loom_link_index_materializ)\w+|loom_module_register_source|"
    r"loom_source_storage_insert|loom_amdgpu_compiler_provider_set|kLowReprEnvironmentVtable\.llvm\.\d+"
)
PROBE = "loomc_compile_module"  # its first bytes tell at run time whether the core is the right file

# variant: generation, structure type of the processor mode extension (0: none)
VARIANTS = {"g4": (4, 0), "g4-hrx": (4, 44), "g3": (3, 0), "g3-hrx": (3, 42), "g2": (2, 0), "g2-hrx": (2, 41)}
FLAGS = "-std=c++23 -O2 -Wall -Wextra -fPIC -fvisibility=hidden -pthread".split()
SOURCES = [HERE / name for name in ("core.cpp", "glue.cpp", "objects.cpp", "pipeline.cpp", "processor_mode.cpp")]


class Failure(Exception):
    """Ends the program with a message for the user."""


def sha256(data):
    return hashlib.sha256(data).hexdigest()


# -- the wheel ------------------------------------------------------------------------------------------------


def read_executable(wheel):
    digest = re.search(r"--hash=sha256:([0-9a-f]{64})", PIN.read_text())[1]
    try:
        data = wheel.read_bytes()
    except OSError as error:
        raise Failure(f"cannot read the wheel: {error}") from None
    if sha256(data) != digest:
        raise Failure(f"{wheel}: SHA-256 is {sha256(data)}, expected {digest} ({PIN.name})")
    return bytearray(zipfile.ZipFile(io.BytesIO(data)).read(EXECUTABLE))


# -- ELF ------------------------------------------------------------------------------------------------------


def program_headers(elf):
    """(offset, type, file offset, address, file size) of each."""
    (table,) = struct.unpack_from("<Q", elf, 32)
    (count,) = struct.unpack_from("<H", elf, 56)
    for i in range(count):
        kind, _, offset, address, _, size = struct.unpack_from("<IIQQQQ", elf, table + 56 * i)
        yield kind, offset, address, size


def clear_pie_flag(elf):
    """Clears DF_1_PIE, the only thing for which the dynamic loader refuses the executable in dlopen."""
    pt_dynamic, dt_flags_1, df_1_pie = 2, 0x6FFFFFFB, 0x08000000
    for kind, offset, _, size in program_headers(elf):
        if kind != pt_dynamic:
            continue
        for entry in range(offset, offset + size, 16):
            tag, value = struct.unpack_from("<QQ", elf, entry)
            if tag == dt_flags_1:
                struct.pack_into("<Q", elf, entry + 8, value & ~df_1_pie)
                return
    raise Failure("the executable has no DT_FLAGS_1 entry")


def read_symbols(elf):
    """Name -> address of the symbols in .symtab that the bridge may want."""
    sht_symtab = 2
    (table,) = struct.unpack_from("<Q", elf, 40)
    (count,) = struct.unpack_from("<H", elf, 60)
    sections = [struct.unpack_from("<IIQQQQIIQQ", elf, table + 64 * i) for i in range(count)]
    symbols = {}
    for _, kind, _, _, offset, size, link, *_ in sections:
        if kind != sht_symtab:
            continue
        strings = sections[link][4]
        for name, _, _, home, value, _ in struct.iter_unpack("<IBBHQQ", elf[offset : offset + size]):
            if not home or not name:
                continue
            text = elf[strings + name : elf.index(0, strings + name)].decode()
            if WANTED.fullmatch(text):
                symbols[text.partition(".")[0]] = value
    if PROBE not in symbols:
        raise Failure("the executable has no symbol table with the functions of Loom")
    return symbols


def file_offset(elf, address):
    pt_load = 1
    for kind, offset, start, size in program_headers(elf):
        if kind == pt_load and start <= address < start + size:
            return address - start + offset
    raise Failure(f"address {address:#x} is not in the file")


def symbols_header(elf):
    symbols = read_symbols(elf)
    probe = file_offset(elf, symbols[PROBE])
    code = ", ".join(f"{byte:#04x}" for byte in elf[probe : probe + 32])
    lines = [
        "// Written by make.py: addresses in libloomcore.so.",
        "#pragma once",
        "enum : unsigned long {",
        *(f"  kAddress_{name} = {value:#x}ul," for name, value in sorted(symbols.items())),
        "};",
        f"static const unsigned char kProbe[32] = {{{code}}};",
    ]
    return "\n".join(lines) + "\n"


# -- making ---------------------------------------------------------------------------------------------------


def write(path, data):
    """Replaces the file in one step; an equal one is left alone."""
    if path.exists() and path.read_bytes() == data:
        return
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    temporary.write_bytes(data)
    temporary.rename(path)


def compiler():
    return shlex.split(os.environ.get("CXX", "")) or ["c++"]


def run(command, what):
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
    except FileNotFoundError:
        raise Failure(f"there is no '{command[0]}': install a C++ compiler or set CXX") from None
    if done.returncode:
        raise Failure(f"{what} (exit {done.returncode}):\n{done.stdout.strip()}")
    sys.stderr.write(done.stdout)  # warnings


def make_core(out, wheel):
    elf = read_executable(wheel)
    clear_pie_flag(elf)
    write(out / "libloomcore.so", bytes(elf))
    write(out / "core_symbols.h", symbols_header(elf).encode())


def make_objects(out):
    objects = []
    for source in SOURCES:
        objects.append(out / f"{source.stem}.o")
        command = [*compiler(), *FLAGS, f"-I{out}", f"-I{TESTS}", "-c", source, "-o", objects[-1]]
        run(command, f"{source.name} does not compile")
    return objects


def make_variant(out, variant, objects):
    generation, processor_mode = VARIANTS[variant]
    folder = out / variant
    folder.mkdir(exist_ok=True)
    library = folder / "libloomc.so"
    temporary = folder / f".libloomc.so.{os.getpid()}"
    defines = [f"-DLOOM_GENERATION={generation}", f"-DLOOM_PROCESSOR_MODE={processor_mode}"]
    exports = f"-Wl,--version-script={ABI / 'exports' / variant}.map"
    sources = [ABI / "variant.cpp", *objects]
    try:
        run(
            [*compiler(), *FLAGS, *defines, f"-I{TESTS}", "-shared", exports, *sources, "-o", temporary, "-ldl"],
            f"{variant} does not link",
        )
        # In a process of its own: a broken library must not take this one down.
        arguments = [temporary, str(generation), str(processor_mode)]
        run([sys.executable, "-B", HERE / "self_test.py", *arguments], f"the library made for {variant} does not work")
        temporary.rename(library)
    finally:
        temporary.unlink(missing_ok=True)


def inputs_digest():
    """Changes whenever the variants have to be made again."""
    files = [PIN, pathlib.Path(__file__), HERE / "self_test.py", *HERE.glob("*.h"), *HERE.glob("*.cpp")]
    files += [*ABI.glob("*.*"), *ABI.glob("exports/*")]
    parts = [" ".join(compiler()).encode()] + [file.read_bytes() for file in sorted(files)]
    return sha256(b"".join(sha256(part).encode() for part in parts))


def make(out, wheel, variants):
    """The variants that were made; the others were up to date."""
    out.mkdir(parents=True, exist_ok=True)
    with open(out / ".lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        digest = inputs_digest()

        def is_up_to_date(variant):
            stamp = out / variant / "inputs.sha256"
            files = [out / "libloomcore.so", out / variant / "libloomc.so"]
            return stamp.exists() and stamp.read_text().strip() == digest and all(file.exists() for file in files)

        missing = [variant for variant in variants if not is_up_to_date(variant)]
        if missing:
            make_core(out, wheel)
            objects = make_objects(out)
        for variant in missing:
            make_variant(out, variant, objects)
            write(out / variant / "inputs.sha256", f"{digest}\n".encode())
    return missing


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--wheel", type=pathlib.Path, required=True, help=f"the file that {PIN.name} pins")
    parser.add_argument("--out", type=pathlib.Path, required=True, help="folder to write to")
    parser.add_argument("variants", nargs="*", metavar="VARIANT", help=" ".join(VARIANTS))
    arguments = parser.parse_args()
    if unknown := [name for name in arguments.variants if name not in VARIANTS]:
        parser.error(f"unknown variant: {unknown[0]}; there are {' '.join(VARIANTS)}")
    if sys.platform != "linux" or platform.machine() != "x86_64":
        raise Failure("the compiler in the wheel is for Linux on x86-64 only")
    variants = arguments.variants or list(VARIANTS)
    out = arguments.out.absolute()
    made = make(out, arguments.wheel, variants)
    for variant in variants:
        print(f"{out / variant / 'libloomc.so'}: {'made' if variant in made else 'up to date'}")


if __name__ == "__main__":
    try:
        main()
    except Failure as failure:
        sys.exit(f"make.py: {failure}")

#!/usr/bin/env python3
"""Makes store/, kc.lock and units.txt beside this file anew, from the stand-in compilers of a build folder:

    KC_BUILD=build/debug tests/golden/store/make.py

Compilers of two builds are never the same bytes, so what the stand-ins made is put under the keys that a compiler of
fixed digests would have given it, those in kc.lock: key fields, keys and names are rewritten (docs/store-format.md), and
what tells machine, user and time is taken out. One entry and its record are made to look imported.
"""

import hashlib
import pathlib
import shutil
import struct
import sys
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "cli"))

from kc_test import KcTest, sealed  # noqa: E402

ROLES = {"tileiras": ("tileiras", "ptxas", "libnvvm", "libdevice"), "loom": ("libloomc", "beside:libloomc-core.so", "libm")}
CONTENT, REQUEST = b"kc-content-v1\0", b"kc-request-v1\0"
# Fields of keys by name (core/backend/content_key.h). A value or content is that of the field before it.
TAGS = {"backend": 1, "adapter_revision": 2, "compiler": 3, "host": 4, "target": 5, "entry": 6, "module": 13}
PAIRS = {"option": 8, "config": 17, "source": 9, "library": 10, "depends": 12}
NAMES = {"option": 7, "config": 16, "source": 14, "library": 15, "depends": 11}
TEXTS = {"backend", "host", "target", "entry", "option", "config", "library"}
IMPORTED = "shared@gfx1100"
SIGNER = "00112233445566778899aabbccddeeff"


def hashed(domain, fields):
    return hashlib.sha256(domain + b"".join(bytes([tag]) + struct.pack("<Q", len(value)) + value for tag, value in fields)).digest()


def file_digest(backend, role):
    return hashlib.sha256(f"golden {backend} {role}".encode()).digest()


def identity(backend):
    fields = [(1, backend.encode())]
    for role in ROLES[backend]:
        fields += [(2, role.encode()), (3, file_digest(backend, role))]
    return hashed(b"kc-compiler-v1\0", fields)


def key_of(domain, fields):
    """The key that is made of the named fields of an entry or a record."""
    out, before = [], None
    for name, value in fields:
        if name in ("value", "content"):
            is_text, tag = name == "value", PAIRS[before]
        elif name == "source" and domain == CONTENT:  # its digest alone
            is_text, tag = False, 9
        else:
            is_text, tag = name in TEXTS or name in NAMES, NAMES.get(name) or TAGS[name]
        out.append((tag, value if is_text else bytes.fromhex(value.decode())))
        before = name
    return hashed(domain, out)


class Fields:
    """The texts behind the fixed part of a header."""

    def __init__(self, data, at):
        self.data, self.at = data, at

    def u32(self):
        (value,) = struct.unpack_from("<I", self.data, self.at)
        self.at += 4
        return value

    def text(self):
        size = self.u32()
        self.at += size
        return self.data[self.at - size : self.at]

    def pairs(self):
        return [(self.text().decode(), self.text()) for _ in range(self.u32())]


def text(value):
    return struct.pack("<I", len(value)) + value


def pairs(fields):
    return struct.pack("<I", len(fields)) + b"".join(text(name.encode()) + text(value) for name, value in fields)


def with_identity(fields):
    values = dict(fields)
    fixed = identity(values["backend"].decode()).hex().encode()
    return [(name, fixed if name == "compiler" else value) for name, value in fields]


def file_of(head, payload):
    struct.pack_into("<Q", head, 16, len(head))
    return sealed(head + payload)


def fixed_entry(whole):
    """The entry as a compiler of fixed digests would have made it, and its key."""
    (size,) = struct.unpack_from("<Q", whole, 16)
    head, payload = bytearray(whole[:232]), whole[size:]
    fields = Fields(whole[:size], 232)
    backend, target, entry, unit, compiler, version = (fields.text() for _ in range(6))
    for _ in range(4):
        fields.text()  # kc, host, user, signer
    named = fields.pairs()
    assert fields.at == size and key_of(CONTENT, named) == whole[64:96], unit
    named = with_identity(named)
    key = key_of(CONTENT, named)
    is_imported = unit.decode() == IMPORTED
    head[64:96] = key
    struct.pack_into("<dQqB", head, 200, 0.25, 1 << 20, 0, is_imported)
    origin = (b"", b"", b"", SIGNER.encode()) if is_imported else (b"0.1.0", b"", b"", b"")
    for value in (backend, target, entry, unit, compiler, version, *origin):
        head += text(value)
    return key, file_of(head + pairs(named), payload)


def fixed_record(whole, contents):
    fields = Fields(whole, 136)
    unit, named = fields.text(), fields.pairs()
    assert fields.at == len(whole) and key_of(REQUEST, named) == whole[64:96], unit
    named = with_identity(named)
    key = key_of(REQUEST, named)
    head = bytearray(whole[:136])
    head[64:96], head[96:128] = key, contents[whole[96:128]]
    struct.pack_into("<q", head, 128, 0)
    head += text(unit)
    if unit.decode() == IMPORTED:
        struct.pack_into("<I", head, 12, 1)
        head += text(SIGNER.encode())
    return key, file_of(head + pairs(named), b"")


def lock_text(host, adapters):
    out = ["# Written by make.py: compilers that nobody has.", "version: 1", "compilers:"]
    for backend in sorted(ROLES):
        out += [f"  - backend: {backend}", f"    host: {host}", "    keys: [kc-compiler-v1, kc-content-v1, kc-request-v1]",
                f"    adapter: {adapters[backend]}", f"    identity: {identity(backend).hex()}", "    files:"]
        out += [f'      - {{ role: "{role}", digest: {file_digest(backend, role).hex()} }}' for role in ROLES[backend]]
    return "\n".join(out) + "\n"


class Make(KcTest):
    def runTest(self):
        shutil.copytree(HERE, self.work, dirs_exist_ok=True, ignore=shutil.ignore_patterns("store", "make.py", "kc.lock"))
        self.with_fake()
        self.install_hostile()
        env = self.with_fake(KC_LOOM_LIBRARY=self.root / "loom" / "libloomc.so")
        built = self.kc_json("build", env=env)[:-1]
        files = self.kc_json("extract", "golden_store.kcb", "--all", self.root / "code", env=env)
        digests = {e["unit"]: e["digest"] for e in files if e["event"] == "file"}

        made, contents, adapters = HERE / "store", {}, {}
        shutil.rmtree(made, ignore_errors=True)

        def write(kind, key, data):
            path = made / "v1" / kind / key.hex()[:2] / f"{key.hex()}.kc{kind}"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)

        for path in self.store_files("e/*/*.kce"):
            whole = path.read_bytes()
            key, data = fixed_entry(whole)
            contents[whole[64:96]] = key
            write("e", key, data)
        requests = {}
        for path in self.store_files("r/*/*.kcr"):
            whole = path.read_bytes()
            key, data = fixed_record(whole, contents)
            requests[whole[64:96]] = key
            write("r", key, data)
        self.kc("lock", env=env)
        for line in (self.work / "kc.lock").read_text().splitlines():
            name, _, value = line.strip().lstrip("- ").partition(": ")
            if name == "backend":
                backend = value
            elif name == "adapter":
                adapters[backend] = value
            elif name == "host":
                host = value
        (HERE / "kc.lock").write_text(lock_text(host, adapters))
        lines = ["# unit, request key, content key, SHA-256 of the code object; host " + host]
        for event in built:
            request = requests[bytes.fromhex(event["request_key"])].hex() if event["request_key"] else "-"
            content = contents[bytes.fromhex(event["key"])].hex()
            lines.append(f"{event['unit']} {request} {content} {digests.get(event['unit'], 'unsupported')}")
        (HERE / "units.txt").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    sys.exit(not unittest.TextTestRunner().run(Make()).wasSuccessful())

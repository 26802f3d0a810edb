"""Looking through a large store."""

import hashlib
import os
import struct

from kcbench.case import Case, at_most
from kcbench.needs import FIND, SPACE, STAND_IN

ENTRIES = 100_000


def large_store(lab):
    """A store of copies of one entry under other keys. A collection looks at names and tuples, never into entries."""
    _, built = lab.built_units(1)
    content = next(built.glob("v1/e/*/*.kce")).read_bytes()
    store = lab.folder("large-store")
    lab.must([lab.kc, "build"], lab.environment(store), lab.built_units(1)[0])
    entries = store / "v1" / "e"
    for shard in range(256):
        (entries / f"{shard:02x}").mkdir(mode=0o700, exist_ok=True)
    have = sum(1 for _ in entries.glob("*/*.kce"))
    for i in range(ENTRIES - have):
        key = hashlib.sha256(b"%d" % i).hexdigest()
        file = os.open(entries / key[:2] / f"{key}.kce", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o444)
        os.write(file, content)
        os.close(file)
    return store


def pin(store):
    """Pins all entries (docs/store-format.md: Pin)."""
    keys = sorted(bytes.fromhex(path.stem) for path in (store / "v1" / "e").glob("*/*.kce"))
    payload = struct.pack("<qI", 0, 0) + struct.pack("<I", len(keys)) + b"".join(keys) + struct.pack("<I", 0)
    name = "all"
    fields = hashlib.sha256(name.encode()).digest() + hashlib.sha256(payload).digest()
    head = b"KCPIN\0\0\0" + struct.pack("<IIQQ", 1, 0, 128, len(payload))
    roots = store / "v1" / "roots"
    roots.mkdir(mode=0o700, exist_ok=True)
    (roots / name).write_bytes(head + hashlib.sha256(head + fields).digest() + fields + payload)
    (roots / name).chmod(0o600)


def scan(lab, is_pinned=False):
    store = large_store(lab)
    if is_pinned:
        pin(store)
    said = lab.must([lab.kc, "gc", "--dry-run", "--format=json"], lab.environment(store)).decode()
    if f'"entries_before":{ENTRIES},' not in said:
        raise RuntimeError(f"kc gc did not see {ENTRIES} entries: {said}")
    if f'"entries_kept":{ENTRIES if is_pinned else 0},' not in said:
        raise RuntimeError(f"kc gc does not keep what is pinned: {said}")
    find = [lab.tool("find"), store / "v1" / "e", "-type", "f", "-printf", "%s %T@\\n"]
    return lab.compare(lambda: lab.seconds([lab.kc, "gc", "--dry-run"], lab.environment(store)),
                       lambda: lab.seconds(find, lab.environment()))


CASES = [Case("gc", "`kc gc --dry-run`, 100,000 entries", "`find -type f -printf '%s %T@\\n'` over the same folders",
              at_most(3.0), (STAND_IN, FIND, SPACE), scan),
         Case("gc-pinned", "the same with a pin that names all of them", "the same `find`",
              at_most(3.0), (STAND_IN, FIND, SPACE), lambda lab: scan(lab, is_pinned=True))]

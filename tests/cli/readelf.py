"""What llvm-readelf says of AMD code objects, in the words of kc's facts."""

import re
import subprocess

# Of e_flags, bits 0 to 7; the processors that tests compile for.
PROCESSORS = {0x4C: "gfx942", 0x4F: "gfx950", 0x41: "gfx1100", 0x4A: "gfx1151", 0x4E: "gfx1201",
              0x54: "gfx11-generic", 0x59: "gfx12-generic", 0x5F: "gfx9-4-generic"}


def plain(text):
    """A scalar of the YAML that llvm-readelf prints: number, or text with or without quotes or a tag."""
    text = text.strip().removeprefix("!str ").strip("'\"")
    return int(text) if re.fullmatch(r"\d+", text) else text


def read_yaml(lines):
    """Maps, lists and scalars by their indentation: all that llvm-readelf writes of metadata. Takes what it reads."""
    def depth(line):
        return len(line) - len(line.lstrip())

    level = depth(lines[0])
    if lines[0].lstrip().startswith("- "):
        items = []
        while lines and depth(lines[0]) == level and lines[0].lstrip().startswith("- "):
            rest = lines[0].lstrip()[2:]
            if re.match(r"\.?[\w.]+:(\s|$)", rest.lstrip()):
                # The item is a map, whose first key stands behind the dash.
                lines[0] = " " * (level + 2) + rest.lstrip()
                items.append(read_yaml(lines))
            else:
                items.append(plain(rest))
                lines.pop(0)
        return items
    found = {}
    while lines and depth(lines[0]) == level and not lines[0].lstrip().startswith("- "):
        key, _, value = lines.pop(0).strip().partition(":")
        if value.strip():
            found[key] = plain(value)
        elif lines and (depth(lines[0]) > level or lines[0].lstrip().startswith("- ")):
            found[key] = read_yaml(lines)
        else:
            found[key] = None
    return found


def feature(name, state):
    return {2: f":{name}-", 3: f":{name}+"}.get(state, "")


def facts_of_kernel(kernel):
    arguments = [a for a in kernel.get(".args") or [] if not a[".value_kind"].startswith("hidden_")]
    spills = [kernel[key] for key in (".vgpr_spill_count", ".sgpr_spill_count") if key in kernel]
    return {
        "symbol": kernel[".name"],
        "registers": kernel[".vgpr_count"],
        "scalar_registers": kernel[".sgpr_count"],
        "local_memory": kernel[".private_segment_fixed_size"],
        "spills": sum(spills) if spills else None,
        "shared_memory": kernel[".group_segment_fixed_size"],
        "argument_bytes": kernel[".kernarg_segment_size"],
        "arguments": sorted(({"offset": a[".offset"], "size": a[".size"]} for a in arguments),
                            key=lambda a: a["offset"]),
        "required_block": kernel.get(".reqd_workgroup_size", [0, 0, 0]),
        "max_threads": kernel[".max_flat_workgroup_size"],
        "wave_size": kernel[".wavefront_size"],
    }


def facts_of(text):
    """The facts in what llvm-readelf prints of one file: target in the header and in the metadata, exported symbols, and
    the facts of each kernel."""
    flags = int(re.search(r"Flags:\s+0x([0-9A-Fa-f]+)", text)[1], 16)
    notes = re.search(r"^\s*---\n(.*?)^\.\.\.$", text, re.M | re.S)[1]
    metadata = read_yaml(notes.splitlines())
    return {
        "target": PROCESSORS[flags & 0xFF] + feature("sramecc", flags >> 10 & 3) + feature("xnack", flags >> 8 & 3),
        "stated_target": metadata["amdhsa.target"].removeprefix("amdgcn-amd-amdhsa--"),
        "symbols": set(re.findall(r"(?:FUNC|OBJECT)\s+GLOBAL\s+PROTECTED\s+\d+ (\S+)", text)),
        "kernels": {kernel[".name"]: facts_of_kernel(kernel) for kernel in metadata["amdhsa.kernels"]},
    }


def read(tool, paths):
    """The facts of each file, by its path."""
    found = {}
    paths = [str(path) for path in paths]
    for begin in range(0, len(paths), 100):  # a command line has an end
        some = paths[begin:begin + 100]
        done = subprocess.run([tool, "-h", "--notes", "--dyn-symbols", *some], capture_output=True, text=True, check=True)
        parts = re.split(r"^File: (.+)$", done.stdout, flags=re.M)
        if len(some) == 1:
            parts = ["", some[0], done.stdout]
        assert parts[1::2] == some, (parts[1::2], some)
        found |= {path: facts_of(text) for path, text in zip(some, parts[2::2])}
    return found

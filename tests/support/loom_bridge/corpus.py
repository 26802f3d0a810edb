#!/usr/bin/env python3
"""Lays out a real corpus for tests and benchmarks: the Loom sources of an LLM pipeline that the pinned wheel carries
besides its compiler, with a manifest for them.

    corpus.py --wheel FILE --out DIR [TARGET...]     gfx1100 gfx1151 gfx1201 by default

Writes DIR/kernels.yaml, DIR/sources.txt and the 56 sources below DIR/llm. None of them enters the project.
"""

import argparse
import pathlib
import zipfile

TARGETS = ("gfx1100", "gfx1151", "gfx1201")
SOURCES = "hrx_solutions/loom-pipeline/"  # in the wheel

MANIFEST = """\
# {count} files of an LLM pipeline; every kernel that they export.
version: 1
name: corpus
targets: [{targets}]
settings: {{ timeout: 5m }}
defaults:
  # What has no default in the sources. A kernel takes the keys that its module declares.
  config:
    ggml.linear_q4k_q8_1_x4.token_capacity: 128
    ggml.linear_q5k_q8_1_x4.token_capacity: 128
    ggml.linear_q6k_q8_1_x4.token_capacity: 128
    ggml.linear_q8_0_q8_1_x4.token_capacity: 128
    ggml.linear_q8_0_q8_1_x4.output_capacity: 5120
    ggml.quantize_q8_1_x4.group_capacity: 17408
    qwen38.attention.cache_capacity: 4096
    qwen38.attention.pool_capacity: 8192
kernels:
  - name: "{{entry}}"
    sources: ["@sources.txt"]
    entries: exported
    unsupported: skip
"""


def lay_out(wheel, folder, targets=TARGETS):
    """The path of the manifest."""
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    names = []
    with zipfile.ZipFile(wheel) as archive:
        for name in sorted(archive.namelist()):
            if not name.startswith(SOURCES) or not name.endswith(".loom"):
                continue
            names.append(name.removeprefix(SOURCES))
            path = folder / names[-1]
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(archive.read(name))
    (folder / "sources.txt").write_text("".join(f"{name}\n" for name in names))
    manifest = folder / "kernels.yaml"
    manifest.write_text(MANIFEST.format(count=len(names), targets=", ".join(targets)))
    return manifest


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--wheel", type=pathlib.Path, required=True)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("targets", nargs="*", metavar="TARGET")
    arguments = parser.parse_args()
    print(lay_out(arguments.wheel, arguments.out, arguments.targets or TARGETS))


if __name__ == "__main__":
    main()

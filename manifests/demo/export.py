#!/usr/bin/env python3
"""Export the demo's kernels to Tile IR bytecode, one file a specialization.

    export.py           write bytecode/*.tilebc, leave alone what is right already, and remove
                        files that are no longer exported
    export.py --check   write nothing; exit 1 and name the files that differ

Needs the package cuda-tile, and no GPU. The bytes depend on the text of kernels/ and on the
version of cuda-tile only: not on the folder, the environment or the time.
"""

import argparse
import importlib.metadata
import io
import itertools
import linecache
import os
import sys
from pathlib import Path

DEMO = Path(__file__).resolve().parent
BYTECODE_VERSION = "13.3"  # the oldest that may name no architecture, and that sm_90 needs
CUDA_TILE_VERSION = "1.7.0"  # made the committed files; another may write other bytes

# These change the bytecode, and are read when cuda.tile is imported.
for name in ("CUDA_TILE_TESTING_DISABLE_DIV", "CUDA_TILE_TESTING_DISABLE_TOKEN_ORDER"):
    os.environ.pop(name, None)

try:
    import cuda.tile as ct
    from cuda.tile import compilation as tc
except ImportError as error:
    sys.exit(f"export.py: cannot import cuda.tile ({error}); "
             f"try: pip install cuda-tile=={CUDA_TILE_VERSION}")

# What the manifest calls an element type.
DTYPES = {"f32": ct.float32, "f16": ct.float16, "bf16": ct.bfloat16, "e4m3": ct.float8_e4m3fn}


def vector(dtype):
    """A contiguous 1-D array that overlaps no other argument."""
    return tc.ArrayConstraint(dtype, 1, index_dtype=ct.int32, stride_lower_bound_incl=0,
                              alias_groups=(), may_alias_internally=False, stride_constant=(1,),
                              base_addr_divisible_by=16)


def matrix(dtype):
    """A row-major 2-D array whose rows begin at multiples of 16 bytes."""
    return tc.ArrayConstraint(dtype, 2, index_dtype=ct.int32, stride_lower_bound_incl=0,
                              alias_groups=(), may_alias_internally=False,
                              stride_constant=(None, 1),
                              stride_divisible_by=(128 // dtype.bitwidth, 1),
                              base_addr_divisible_by=16)


def load_kernel(name):
    """Load kernel `name` from kernels/<name>.py.

    The bytecode holds the file name of the code object, so that is kept relative; cuda.tile
    reads the text back through inspect, which finds it in linecache.
    """
    identifier = f"kernels/{name}.py"
    text = (DEMO / identifier).read_bytes().decode()
    linecache.cache[identifier] = (len(text), None, text.splitlines(keepends=True), identifier)
    namespace = {"__name__": name}
    exec(compile(text, identifier, "exec", dont_inherit=True), namespace)
    return namespace[name]


def bytecode(name, *entries):
    """Export kernel `name` with one (symbol, parameters) an entry."""
    signatures = [tc.KernelSignature(parameters, tc.CallingConvention.cutile_python_v2(),
                                     symbol=symbol) for symbol, parameters in entries]
    out = io.BytesIO()
    tc.export_kernel(load_kernel(name), signatures, out, output_format="tileir_bytecode",
                     bytecode_version=BYTECODE_VERSION)
    return out.getvalue()


def specializations():
    """Yield (file name, bytes) of everything that kernels.yaml names."""
    for t, tile in itertools.product(("f32", "f16"), (256, 1024)):
        array = vector(DTYPES[t])
        yield f"vec_add_{t}_{tile}", bytecode("vec_add", ("vec_add", [array, array, array, tile]))

    matmuls = [tile for tile in itertools.product(("f16", "bf16"), (64, 128), (64, 128), (32, 64))
               if tile[1:] != (128, 128, 64)]
    matmuls += [("f16", 32, 32, 64), ("f32", 32, 32, 32)]
    matmuls += [("e4m3", 64, 64, 64), ("e4m3", 64, 128, 64)]
    for t, tm, tn, tk in matmuls:
        a, c = matrix(DTYPES[t]), matrix(ct.float32)
        yield (f"matmul_{t}_{tm}x{tn}x{tk}",
               bytecode("matmul", ("matmul", [a, a, c, tm, tn, tk])))

    for t, w in itertools.product(("f32", "f16"), (1024,)):
        x = matrix(DTYPES[t])
        yield f"softmax_{t}_{w}", bytecode("softmax", ("softmax", [x, x, w]))

    for t, w in itertools.product(("f32", "bf16"), (512,)):
        x, g = matrix(DTYPES[t]), vector(ct.float32)
        yield (f"layer_norm_{t}_{w}",
               bytecode("layer_norm", ("layer_norm",
                                       [x, g, g, x, tc.ScalarConstraint(ct.float32), w])))

    for t in ("f32", "f16"):
        x, s = matrix(DTYPES[t]), vector(ct.float32)
        yield (f"row_sum_{t}",
               bytecode("row_sum", *((f"row_sum_{w}", [x, s, w]) for w in (512, 2048))))


def write(path, data):
    """Replace `path` in one step."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        temporary.write_bytes(data)
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def main():
    parser = argparse.ArgumentParser(description="Export the demo's kernels to Tile IR bytecode.")
    parser.add_argument("--check", action="store_true",
                        help="write nothing; exit 1 and name the files that differ")
    check = parser.parse_args().check

    version = importlib.metadata.version("cuda-tile")
    if version != CUDA_TILE_VERSION:
        print(f"export.py: cuda-tile is {version}, the committed files are from "
              f"{CUDA_TILE_VERSION}: bytes may differ", file=sys.stderr)

    folder = DEMO / "bytecode"
    present = {path.name for path in folder.glob("*.tilebc")}
    wanted = {f"{name}.tilebc": data for name, data in specializations()}
    differ = sorted(name for name, data in wanted.items()
                    if name not in present or (folder / name).read_bytes() != data)
    stale = sorted(present - wanted.keys())

    if not check:
        folder.mkdir(exist_ok=True)
        for name in differ:
            write(folder / name, wanted[name])
            print(f"wrote bytecode/{name}")
        for name in stale:
            (folder / name).unlink()
            print(f"removed bytecode/{name}")
        return 0
    for name in differ:
        print(f"bytecode/{name}: {'differs' if name in present else 'missing'}")
    for name in stale:
        print(f"bytecode/{name}: not exported any more")
    return 1 if differ or stale else 0


if __name__ == "__main__":
    sys.exit(main())

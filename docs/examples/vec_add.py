#!/usr/bin/env python3
"""Opens a bundle, loads a kernel of it, launches it and checks its numbers: libkcload and the CUDA driver API over ctypes,
with nothing installed. The kernel is vec_add of manifests/demo.

    python3 vec_add.py demo.kcb [path of libkcload.so.1]

Exit codes: 0 the numbers are right; 1 something failed; 77 there is no device, so nothing was run.
"""

import array
import ctypes
import sys

KC_CUDA = 1
KC_ERROR_NO_DRIVER, KC_ERROR_NO_DEVICE = 10, 11
TILE, COUNT = 1024, 30_011  # not a multiple of the tile


class DeviceInfo(ctypes.Structure):
    """kc_device_info as far as it is needed here; structs that the library returns only grow at their end."""

    _fields_ = [("api", ctypes.c_int), ("ordinal", ctypes.c_int), ("name", ctypes.c_char_p), ("target", ctypes.c_char_p),
                ("driver_version", ctypes.c_int), ("driver_text", ctypes.c_char_p), ("library", ctypes.c_char_p)]


class KcError(Exception):
    def __init__(self, status, text):
        super().__init__(text)
        self.status = status


class Loader:
    """The functions of kc/loader.h that are called here. Handles are void pointers."""

    def __init__(self, path):
        self.lib = lib = ctypes.CDLL(path)
        handle, text, out = ctypes.c_void_p, ctypes.c_char_p, ctypes.POINTER(ctypes.c_void_p)
        for name, result, arguments in [
            ("kc_error_message", text, [handle]), ("kc_error_free", None, [handle]),
            ("kc_open", ctypes.c_int, [text, handle, out, out]), ("kc_close", None, [handle]),
            ("kc_device_get", ctypes.c_int, [ctypes.c_int, ctypes.c_int, out, out]),
            ("kc_device_get_info", ctypes.POINTER(DeviceInfo), [handle]),
            ("kc_load", ctypes.c_int, [handle, text, text, handle, handle, out, out]),
            ("kc_kernel_function", handle, [handle]), ("kc_kernel_release", None, [handle]),
        ]:
            function = getattr(lib, name)
            function.restype, function.argtypes = result, arguments

    def get(self, name, *arguments):
        """Calls a function that gives a handle; raises KcError with the library's explanation."""
        result, error = ctypes.c_void_p(), ctypes.c_void_p()
        status = getattr(self.lib, name)(*arguments, ctypes.byref(result), ctypes.byref(error))
        if status != 0:
            message = self.lib.kc_error_message(error).decode()
            self.lib.kc_error_free(error)
            raise KcError(status, message)
        return result


class Cuda:
    def __init__(self, library):
        self.lib = ctypes.CDLL(library)

    def __call__(self, name, *arguments):
        result = getattr(self.lib, name)(*arguments)
        if result != 0:
            raise RuntimeError(f"{name}: CUDA error {result}")


def add(cuda, function, ordinal, a, b):
    """a + b on the device, whose primary context is the one that kc_load() loads into."""
    context = ctypes.c_void_p()
    cuda("cuDevicePrimaryCtxRetain", ctypes.byref(context), ordinal)
    cuda("cuCtxSetCurrent", context)
    size = ctypes.c_size_t(len(a) * a.itemsize)
    memory = [ctypes.c_uint64() for _ in range(3)]
    for one in memory:
        cuda("cuMemAlloc_v2", ctypes.byref(one), size)
    for one, data in zip(memory, (a, b)):
        cuda("cuMemcpyHtoD_v2", one, ctypes.c_void_p(data.buffer_info()[0]), size)

    # An array of a tile kernel is a pointer, its lengths and its strides; the block is (1, 1, 1).
    values = [value for one in memory for value in (one, ctypes.c_int32(len(a)), ctypes.c_int32(1))]
    arguments = (ctypes.c_void_p * len(values))(*(ctypes.addressof(value) for value in values))
    cuda("cuLaunchKernel", function, (len(a) + TILE - 1) // TILE, 1, 1, 1, 1, 1, 0, None, arguments, None)
    cuda("cuCtxSynchronize")

    out = array.array("f", bytes(size.value))
    cuda("cuMemcpyDtoH_v2", ctypes.c_void_p(out.buffer_info()[0]), memory[2], size)
    for one in memory:
        cuda("cuMemFree_v2", one)
    cuda("cuDevicePrimaryCtxRelease_v2", ordinal)
    return out


def main(path, library="libkcload.so.1"):
    kc = Loader(library)
    bundle = kernel = None
    try:
        bundle = kc.get("kc_open", path.encode(), None)
        try:
            device = kc.get("kc_device_get", KC_CUDA, 0)
        except KcError as error:
            if error.status not in (KC_ERROR_NO_DRIVER, KC_ERROR_NO_DEVICE):
                raise
            print("not run: no device")
            return 77
        info = kc.lib.kc_device_get_info(device).contents
        kernel = kc.get("kc_load", bundle, b"vec_add", b"T=f32,TILE=1024", device, None)
        function = ctypes.c_void_p(kc.lib.kc_kernel_function(kernel))
        a = array.array("f", (0.5 * (i % 1000) for i in range(COUNT)))
        b = array.array("f", (3.0 - i % 321 for i in range(COUNT)))
        out = add(Cuda(info.library.decode()), function, info.ordinal, a, b)
        expected = array.array("f", (x + y for x, y in zip(a, b)))
        if out != expected:
            print("the numbers are wrong", file=sys.stderr)
            return 1
        print(f"ok: vec_add on {info.name.decode()}")
        return 0
    except (KcError, RuntimeError, OSError) as error:
        print(error, file=sys.stderr)
        return 1
    finally:
        kc.lib.kc_kernel_release(kernel)
        kc.lib.kc_close(bundle)


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))

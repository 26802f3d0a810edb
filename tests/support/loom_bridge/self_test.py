"""self_test.py LIBRARY GENERATION PROCESSOR_MODE: loads a library that make.py has made and lets the genuine code
answer for a good and a bad target and for a broken source. Ends with a message when something is not as it should be.
"""

import ctypes
import struct
import sys

INVALID_ARGUMENT = 3
CODE_BITS = 31


class Allocator(ctypes.Structure):
    _fields_ = [("self", ctypes.c_void_p), ("control", ctypes.c_void_p)]


def expect(condition, what):
    if not condition:
        sys.exit(what)


def options(kind, body):
    """An option struct without extensions."""
    return ctypes.create_string_buffer(struct.pack("<QQQ", kind, 24 + len(body), 0) + body)


class Library:
    def __init__(self, path):
        self.library = ctypes.CDLL(path)
        self.library.loomc_allocator_system.restype = Allocator
        self.allocator = self.library.loomc_allocator_system()

    def has(self, name):
        return hasattr(self.library, name)

    def call(self, name, *arguments):
        """The status code, or what else a function gives as a number."""
        function = getattr(self.library, name)
        function.restype = ctypes.c_size_t
        return function(*arguments) & CODE_BITS

    def create(self, name, *arguments):
        handle = ctypes.c_void_p()
        code = self.call(name, *arguments, ctypes.byref(handle))
        expect(code == 0 and handle, f"{name}: status {code}")
        return handle

    def profile_code(self, environment, target):
        name = ctypes.create_string_buffer(target)
        body = struct.pack("<QQQQQ", 0, 0, ctypes.addressof(name), len(target), 0)
        handle = ctypes.c_void_p()
        arguments = (environment, options(28, body), self.allocator, ctypes.byref(handle))
        code = self.call("loomc_target_profile_create_amdgpu", *arguments)
        if code == 0:
            self.library.loomc_target_profile_release(handle)
        return code

    def first_diagnostic(self, result):
        expect(self.call("loomc_result_diagnostic_count", result) == 1, "no diagnostic for a broken source")
        self.library.loomc_result_diagnostic_at.restype = ctypes.c_void_p
        row = ctypes.string_at(self.library.loomc_result_diagnostic_at(result, ctypes.c_size_t(0)), 24)
        data, size = struct.unpack("<QQ", row[8:])
        return ctypes.string_at(data, size)


def main(path, generation, processor_mode):
    lib = Library(path)
    expect(lib.has("loomc_compile_artifact") == (generation == 4), "loomc_compile_artifact: wrong generation")
    expect(lib.has("loomc_module_import_cxx") == (generation == 3), "loomc_module_import_cxx: wrong generation")
    expect(lib.has("loomc_hrx_diagnostic_size") == (processor_mode != 0), "processor mode: wrong variant")

    environment = lib.create("loomc_target_environment_create_amdgpu", lib.allocator)
    expect(lib.profile_code(environment, b"gfx1100") == 0, "gfx1100 is not known")
    expect(lib.profile_code(environment, b"gfx0") == INVALID_ARGUMENT, "the target gfx0 is accepted")

    target = options(12, struct.pack("<Q", environment.value))
    context_options = struct.pack("<QQQQ", 3, 32, ctypes.addressof(target), 0)
    context = lib.create("loomc_context_create", context_options, lib.allocator)
    text = ctypes.create_string_buffer(b"bogus@\n")
    body = struct.pack("<QQQQQQQQ", 1, 0, 0, ctypes.addressof(text), 7, 1, 0, 0)
    source = lib.create("loomc_source_create", options(1, body), lib.allocator)
    builder = lib.create("loomc_link_index_builder_create", context, None, lib.allocator)
    expect(lib.call("loomc_link_index_builder_add_source", builder, source, None, None) == 0, "add_source failed")
    index, result = ctypes.c_void_p(), ctypes.c_void_p()
    code = lib.call("loomc_link_index_builder_finish", builder, ctypes.byref(index), ctypes.byref(result))
    expect(code == 0, f"loomc_link_index_builder_finish: status {code}")
    expect(lib.first_diagnostic(result).startswith(b"PARSE/"), "not a parse diagnostic")

    for name, handle in (
        ("result", result),
        ("link_index", index),
        ("link_index_builder", builder),
        ("source", source),
        ("context", context),
        ("target_environment", environment),
    ):
        getattr(lib.library, f"loomc_{name}_release")(handle)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))

#!/usr/bin/env python3
"""What `cmake --install` lays down: programs of others find the loader by pkg-config and by find_package, and what it brings
along is what docs/loader.md says."""

import os
import re
import shutil
import subprocess
import tempfile
import pathlib

from kc_test import BUILD, SOURCE, KcTest, main

CONSUMER_C = """\
#include <kc/loader.h>
#include <stdio.h>
int main(int argc, char** argv) {
  kc_error* error = NULL;
  kc_bundle* bundle = NULL;
  if (argc != 2) return 2;
  if (kc_open(argv[1], NULL, &bundle, &error) != KC_OK) {
    fprintf(stderr, "%s\\n", kc_error_message(error));
    kc_error_free(error);
    return 1;
  }
  printf("%s %zu\\n", kc_loader_version(), kc_entry_count(bundle));
  kc_close(bundle);
  return 0;
}
"""
CONSUMER_CPP = """\
#include <cstdio>
#include <kc/loader.hpp>
int main(int argc, char** argv) try {
  if (argc != 2) return 2;
  const kcload::Bundle bundle = kcload::Bundle::open(argv[1]);
  std::size_t count = 0;
  for (const kcload::Entry& entry : bundle) count += entry.kernel().empty() ? 0 : 1;
  std::printf("%s %zu\\n", kc_loader_version(), count);
  return 0;
} catch (const kcload::Error& error) {
  std::fprintf(stderr, "%s\\n", error.what());
  return 1;
}
"""
# A plugin system: the library is loaded, used by two threads and unloaded, and the memory runs out in between.
PLUGIN_C = """\
#define _GNU_SOURCE
#include <dlfcn.h>
#include <kc/loader.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#define CALL(function) ((__typeof__(&function))dlsym(library, #function))
static void* library;
static const char* path;
static void* use(void* failed) {
  kc_bundle* bundle = NULL;
  const kc_device* device = NULL;
  kc_kernel* kernel = NULL;
  *(int*)failed = CALL(kc_open)(path, NULL, &bundle, NULL) != KC_OK || CALL(kc_verify)(bundle, NULL) != KC_OK ||
                  CALL(kc_device_get)(KC_CUDA, 0, &device, NULL) != KC_OK ||
                  CALL(kc_load)(bundle, "k000", NULL, device, NULL, &kernel, NULL) != KC_OK;
  CALL(kc_kernel_release)(kernel);
  CALL(kc_close)(bundle);
  return NULL;
}
static int is_mapped(void) {
  char line[4096];
  int found = 0;
  FILE* maps = fopen("/proc/self/maps", "r");
  while (fgets(line, sizeof line, maps)) found |= strstr(line, "libkcload") != NULL;
  fclose(maps);
  return found;
}
int main(int argc, char** argv) {
  if (argc != 3) return 2;
  path = argv[2];
  for (int i = 0; i < 20; ++i) {
    library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    if (!library) return fprintf(stderr, "%s\\n", dlerror()), 3;
    int failed[2] = {1, 1};
    pthread_t thread;
    pthread_create(&thread, NULL, use, &failed[0]);
    use(&failed[1]);
    pthread_join(thread, NULL);
    if (failed[0] || failed[1]) return 4;
#ifdef WITH_LIMIT
    struct rlimit before, none = {0, 0};
    getrlimit(RLIMIT_AS, &before);
    none.rlim_max = before.rlim_max;
    kc_bundle* bundle = NULL;
    setrlimit(RLIMIT_AS, &none);
    while (malloc(100000)) continue;
    while (malloc(16)) continue;
    const kc_status status = CALL(kc_open)(path, NULL, &bundle, NULL);
    setrlimit(RLIMIT_AS, &before);
    if (status != KC_ERROR_MEMORY) return fprintf(stderr, "status %d\\n", status), 5;
#endif
    CALL(kc_unload_all)();
    dlclose(library);
    if (is_mapped()) return fprintf(stderr, "still there\\n"), 6;
  }
  return 0;
}
"""
# Both forms of each function, and what must not compile.
EVERYTHING_CPP = """\
#include <kc/loader.hpp>
#include <type_traits>
static_assert(!std::is_copy_constructible_v<kcload::Bundle> && std::is_nothrow_move_constructible_v<kcload::Bundle>);
static_assert(!std::is_copy_constructible_v<kcload::Entry> && std::is_nothrow_move_constructible_v<kcload::Entry>);
static_assert(!std::is_copy_constructible_v<kcload::Kernel> && std::is_nothrow_move_constructible_v<kcload::Kernel>);
static_assert(std::is_nothrow_copy_constructible_v<kcload::Error> && std::is_base_of_v<std::exception, kcload::Error>);
bool all(const kcload::Bundle& bundle, const kcload::Device& device, kcload::Error& e) {
  kcload::Bundle a = kcload::Bundle::open("", {}, e), b = kcload::Bundle::open_fd(0, {}, e);
  kcload::Bundle c = kcload::Bundle::open_memory("", 0, {}, e), d = kcload::Bundle::join({&a, &b}, e);
  kcload::Entry f = bundle.entry(0, e), g = bundle.find("", std::nullopt, "", e);
  kcload::Kernel h = bundle.load("", "", device, {}, e), i = f.load(device, {}, e);
  f = std::move(g);
  kcload::EntryView view = i.entry();
  return !a && !c && !d && bundle.verify(e) && f.fit("", e) == KC_FIT_NONE && f.read(e).empty() && h.function() == nullptr &&
         view.when() && view.metadata("") && bundle.file().entry_count == bundle.entry_count() &&
         kcload::Device::all(KC_HIP, e).empty() && kcload::Device::count(KC_HIP, e) == 0 && e.driver_code() == 0;
}
#if KCLOAD_HAS_EXCEPTIONS
bool throwing(const kcload::Bundle& bundle, const kcload::Device& device) {
  kcload::Bundle a = kcload::Bundle::open(""), b = kcload::Bundle::open_fd(0), c = kcload::Bundle::open_memory("", 0);
  kcload::Bundle d = kcload::Bundle::join({&a, &b, &c});
  d.verify();
  kcload::Entry f = bundle.entry(0), g = bundle.find("", {}, "");
  return bundle.load("", {}, device).function() == f.load(device).function() && g.fit("") == KC_FIT_NONE && f.read().empty() &&
         kcload::Device::all(KC_CUDA).empty() && kcload::Device::count(KC_CUDA) == 0 && !kcload::Device::get(KC_CUDA, 0);
}
#endif
"""
STRICT = ["-Wall", "-Wextra", "-Wpedantic", "-Werror"]


def cache(name):
    match = re.search(rf"^{name}:\w+=(.*)$", (BUILD / "CMakeCache.txt").read_text(), re.MULTILINE)
    return match[1] if match else ""


SANITIZE = {"address": ["-fsanitize=address,undefined"], "thread": ["-fsanitize=thread"]}.get(cache("KC_SANITIZE"), [])
GENERATOR = cache("CMAKE_GENERATOR")  # the default one may lack its program
CXX = cache("CMAKE_CXX_COMPILER")
CC = cache("CMAKE_C_COMPILER") or "cc"


class Installed(KcTest):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="kc-install-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)
        first = cls.folder / "first"
        done = subprocess.run(["cmake", "--install", BUILD, "--prefix", first], capture_output=True, text=True)
        if done.returncode != 0:
            raise AssertionError(done.stderr)
        # An installation may be moved.
        cls.prefix = cls.folder / "moved"
        first.rename(cls.prefix)
        (cls.pc,) = cls.prefix.rglob("kcload.pc")
        cls.lib = cls.pc.parent.parent

    def setUp(self):
        super().setUp()
        self.bundle = self.make_bundle("b.kcb", {"kernel": "k"}, {"kernel": "l"})
        self.write("consumer.c", CONSUMER_C)
        self.write("consumer.cpp", CONSUMER_CPP)

    def run_tool(self, *command, expect=0, **changes):
        env = {"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8", "HOME": str(self.root)} | changes
        done = subprocess.run([str(part) for part in command], cwd=self.work, env=env, capture_output=True, text=True,
                              timeout=300)
        self.assertEqual(done.returncode, expect, f"{command}\n{done.stdout}{done.stderr}")
        return done

    def pkg_config(self, *arguments, folder=None):
        return self.run_tool("pkg-config", *arguments, "kcload",
                             PKG_CONFIG_PATH=str(folder or self.pc.parent)).stdout.split()

    def assert_opens(self, program, library_path=None):
        changes = {"LD_LIBRARY_PATH": str(library_path)} if library_path else {}
        out = self.run_tool(program, "b.kcb", **changes).stdout
        self.assertRegex(out, r"^\d+\.\d+\.\d+ 2\n$")
        error = self.run_tool(program, "none.kcb", expect=1, **changes).stderr
        self.assertIn("none.kcb", error)

    # -- the files ------------------------------------------------------------------------------------------

    def test_everything_is_where_the_guide_says(self):
        lib = self.lib.relative_to(self.prefix)
        for name in ("bin/kcload", "include/kc/loader.h", "include/kc/loader.hpp", lib / "libkcload.so", lib / "libkcload.so.1",
                     lib / "libkcload.a", lib / "pkgconfig/kcload.pc", lib / "cmake/kcload/kcloadConfig.cmake",
                     lib / "cmake/kcload/kcloadConfigVersion.cmake"):
            self.assertTrue((self.prefix / name).exists(), name)
        self.assertEqual(sorted(path.name for path in (self.prefix / "include").rglob("*") if path.is_file()),
                         ["loader.h", "loader.hpp"])
        self.assertIn("k ", self.run_tool(self.prefix / "bin" / "kcload", "list", "b.kcb").stdout)
        for path in (self.pc, self.lib / "cmake/kcload/kcloadConfig.cmake"):
            text = path.read_text()
            self.assertNotIn(str(SOURCE), text)
            self.assertNotIn(str(BUILD), text)

    def test_the_library_needs_and_shows_nothing_else(self):
        library = self.lib / "libkcload.so.1"
        dynamic = self.run_tool("readelf", "-dW", library).stdout
        needed = re.findall(r"NEEDED.*\[([^\]]+)\]", dynamic)
        sanitizers = re.compile(r"lib(asan|ubsan|tsan)\.so")
        allowed = re.compile(r"lib(c|m|crypto|zstd)\.so\.\d+$")
        self.assertEqual([name for name in needed if not allowed.match(name) and not (SANITIZE and sanitizers.match(name))], [])
        self.assertIn("libcrypto.so.3", needed)
        self.assertRegex(dynamic, r"SONAME.*\[libkcload\.so\.1\]")
        for bad in ("TEXTREL", "RPATH", "RUNPATH"):
            self.assertNotIn(bad, dynamic)
        symbols = self.run_tool("nm", "-D", "--defined-only", "--with-symbol-versions", library).stdout
        names = [line.split()[-1] for line in symbols.splitlines()]
        self.assertEqual([name for name in names if not re.fullmatch(r"kc_[a-z_]+@@KCLOAD_1|KCLOAD_1(@@KCLOAD_1)?", name)], [])
        # All that the header declares is there, and nothing more.
        header = re.sub(r"/\*.*?\*/", "", (self.prefix / "include/kc/loader.h").read_text(), flags=re.DOTALL)
        declared = set(re.findall(r"KC_API\s[^;(]*?\b(kc_\w+)\(", header))
        self.assertGreater(len(declared), 25)
        self.assertEqual({name.split("@")[0] for name in names if name.startswith("kc_")}, declared)

    def test_the_library_can_be_unloaded_and_its_exceptions_stay_inside(self):
        self.write("plugin.c", PLUGIN_C)
        self.make_units(1)
        self.kc("build", "-o", "code.kcb", env=self.with_fake())
        limit = [] if SANITIZE else ["-DWITH_LIMIT"]  # sanitizers need address space
        self.run_tool(CC, "-std=gnu11", *SANITIZE, *limit, f"-I{self.prefix / 'include'}", "plugin.c", "-o", "plugin", "-ldl",
                      "-pthread")
        driver = self.with_stub("device 9.0 NVIDIA H200", hip="device none")
        self.run_tool(self.work / "plugin", self.lib / "libkcload.so.1", "code.kcb", ASAN_OPTIONS="detect_leaks=0",
                      **{name: driver[name] for name in ("LD_LIBRARY_PATH", "KC_STUB_CUDA")})

    def test_the_headers_compile_strictly_and_alone(self):
        include = f"-I{self.prefix / 'include'}"
        for standard in ("c11", "c17"):
            self.write("alone.c", "#include <kc/loader.h>\nkc_policy policy = KC_POLICY_INIT;\n"
                       "kc_load_options options = KC_LOAD_OPTIONS_INIT;\nint main(void) { return (int)policy.key_count; }\n")
            self.run_tool(CC, f"-std={standard}", *STRICT, "-Wshadow", include, "-fsyntax-only", "alone.c")
        self.write("everything.cpp", EVERYTHING_CPP)
        for standard in ("c++17", "c++20", "c++23"):
            for extra in ([], ["-fno-exceptions", "-fno-rtti"]):
                self.run_tool(CXX, f"-std={standard}", *STRICT, "-Wshadow", "-Wconversion", "-Wold-style-cast", *extra, include,
                              "-fsyntax-only", "everything.cpp")
        self.write("plain.cpp", "#include <kc/loader.h>\nkc_policy policy = KC_POLICY_INIT;\n")
        self.run_tool(CXX, "-std=c++17", *STRICT, include, "-fsyntax-only", "plain.cpp")
        self.write("copies.cpp", "#include <kc/loader.hpp>\nkcload::Bundle twice(const kcload::Bundle& b) { return b; }\n")
        self.run_tool(CXX, "-std=c++17", include, "-fsyntax-only", "copies.cpp", expect=1)

    # -- programs of others ---------------------------------------------------------------------------------

    def test_pkg_config_links_the_shared_library(self):
        flags = self.pkg_config("--cflags", "--libs")
        self.assertNotIn("-lcrypto", flags)
        for compiler, source, standard in ((CC, "consumer.c", "c11"), (CXX, "consumer.cpp", "c++17")):
            self.run_tool(compiler, f"-std={standard}", *STRICT, *SANITIZE, source, *flags, "-o", "consumer")
            self.assert_opens(self.work / "consumer", self.lib)
        self.assertIn("libkcload.so.1", self.run_tool("readelf", "-d", "consumer").stdout)
        self.assertRegex(self.run_tool("pkg-config", "--modversion", "kcload", PKG_CONFIG_PATH=str(self.pc.parent)).stdout,
                         r"^1\.\d+\.\d+\n$")

    def test_pkg_config_links_the_archive(self):
        # Where both are the linker takes the shared one; a system that wants the archive has that alone.
        static = self.root / "static"
        shutil.copytree(self.prefix / "include", static / "include")
        folder = static / self.lib.relative_to(self.prefix)
        (folder / "pkgconfig").mkdir(parents=True)
        shutil.copy(self.lib / "libkcload.a", folder)
        shutil.copy(self.pc, folder / "pkgconfig")
        flags = self.pkg_config("--cflags", "--libs", "--static", folder=folder / "pkgconfig")
        for compiler, source, standard in ((CC, "consumer.c", "c11"), (CXX, "consumer.cpp", "c++17")):
            self.run_tool(compiler, f"-std={standard}", *STRICT, *SANITIZE, source, *flags, "-o", "consumer")
            self.assertNotIn("libkcload", self.run_tool("readelf", "-d", "consumer").stdout)
            self.assert_opens(self.work / "consumer")

    def test_find_package_gives_both_libraries_to_a_project_in_c(self):
        self.write("project/CMakeLists.txt", """\
cmake_minimum_required(VERSION 3.20)
project(consumer C)
find_package(kcload 1.0 REQUIRED COMPONENTS shared static)
add_executable(shared ../consumer.c)
target_link_libraries(shared PRIVATE kcload::kcload)
add_executable(static ../consumer.c)
target_link_libraries(static PRIVATE kcload::kcload_static)
""")
        flags = [f"-DCMAKE_C_FLAGS={' '.join(SANITIZE + STRICT)}", f"-DCMAKE_PREFIX_PATH={self.prefix}",
                 f"-DCMAKE_C_COMPILER={CC}"]
        self.run_tool("cmake", "-S", "project", "-B", "made", "-G", GENERATOR, *flags)
        self.run_tool("cmake", "--build", "made")
        self.assertIn("libkcload.so.1", self.run_tool("readelf", "-d", "made/shared").stdout)
        self.assertNotIn("libkcload", self.run_tool("readelf", "-d", "made/static").stdout)
        for program in ("shared", "static"):
            self.assert_opens(self.work / "made" / program)  # CMake has written where it is

    def test_find_package_refuses_what_it_does_not_have(self):
        for wanted, part in (("2.0", "1."), ("1.0 REQUIRED COMPONENTS rust", "rust")):
            self.write("project/CMakeLists.txt", "cmake_minimum_required(VERSION 3.20)\nproject(consumer NONE)\n"
                       f"find_package(kcload {wanted if 'REQUIRED' in wanted else wanted + ' REQUIRED'})\n")
            done = self.run_tool("cmake", "-S", "project", "-B", f"made{wanted[0]}", "-G", GENERATOR,
                                 f"-DCMAKE_PREFIX_PATH={self.prefix}", expect=1)
            self.assertIn(part, done.stderr)


if __name__ == "__main__":
    main()

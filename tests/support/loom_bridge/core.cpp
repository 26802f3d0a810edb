#include "support/loom_bridge/core.h"

#include <dlfcn.h>
#include <limits.h>
#include <link.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string>

#include "core_symbols.h"  // written by make.py: enum { kAddress_NAME }, kProbe

namespace kc::test::bridge {
namespace {

Core g_core;
bool g_is_loaded = false;

// libloomcore.so lies beside this library or one folder above it.
void* open_core() {
  Dl_info self;
  char path[PATH_MAX];
  if (dladdr(reinterpret_cast<void*>(&open_core), &self) == 0 || realpath(self.dli_fname, path) == nullptr) {
    std::fprintf(stderr, "libloomc: cannot find the file this library was loaded from\n");
    return nullptr;
  }
  const std::string library = path;
  const std::string folder = library.substr(0, library.rfind('/'));
  for (const char* place : {"/libloomcore.so", "/../libloomcore.so"}) {
    void* handle = dlopen((folder + place).c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (handle != nullptr) return handle;
  }
  std::fprintf(stderr, "libloomc: %s\n", dlerror());
  return nullptr;
}

void load_once() {
  void* handle = open_core();
  link_map* map = nullptr;
  if (handle == nullptr || dlinfo(handle, RTLD_DI_LINKMAP, &map) != 0) return;
  const uintptr_t base = map->l_addr;
  if (std::memcmp(reinterpret_cast<void*>(base + kAddress_loomc_compile_module), kProbe, sizeof kProbe) !=
      0) {
    std::fprintf(stderr, "libloomc: libloomcore.so is not the file this library was made for\n");
    return;
  }
#define KC_CORE_ADDRESS(result, name, ...) \
  g_core.name = reinterpret_cast<result (*)(__VA_ARGS__)>(base + kAddress_##name);
  KC_CORE_FUNCTIONS(KC_CORE_ADDRESS)
#undef KC_CORE_ADDRESS
  g_core.amdgpu_providers = reinterpret_cast<Handle>(base + kAddress_loom_amdgpu_compiler_provider_set);
  g_core.low_table = reinterpret_cast<Handle>(base + kAddress_kLowReprEnvironmentVtable);
  g_is_loaded = true;
}

// With the library, so that dlopen costs what it costs with a whole one and no file is opened later.
[[gnu::constructor]] void load_with_library() {
  load_core();
}

}  // namespace

const Core& core() {
  return g_core;
}

bool load_core() {
  static std::once_flag once;
  std::call_once(once, load_once);
  return g_is_loaded;
}

}  // namespace kc::test::bridge

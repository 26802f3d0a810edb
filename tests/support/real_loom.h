// Real Loom libraries for tests, and kernels to compile with them. KC_TEST_LOOM names a folder with
// <variant>/libloomc.so; without it such tests say that they were not run.
#pragma once

#include <doctest/doctest.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "backend/run.h"
#include "backend/search_tools.h"
#include "base/bytes.h"
#include "target/target.h"

namespace kc::test {

/// Path of the library of a variant (`g4`, `g3-hrx`), empty, with a message, when there is none to test with.
inline std::string real_loom(std::string_view variant) {
  const char* folder = std::getenv("KC_TEST_LOOM");
  std::string path =
      folder == nullptr ? "" : std::string(folder) + "/" + std::string(variant) + "/libloomc.so";
  if (!path.empty() && std::filesystem::is_regular_file(path)) return path;
  MESSAGE("not run: KC_TEST_LOOM names no folder with "
          << variant << "/libloomc.so (packaging/bootstrap test makes it)");
  return {};
}

inline backend::Compiler loom_compiler(const std::string& library) {
  backend::SearchVariables variables;
  variables.kc_loom_library = library;
  auto compiler = backend::find_compiler("loom", variables, {});
  REQUIRE_MESSAGE(compiler, (compiler ? "" : compiler.error().text()));
  return *compiler;
}

inline std::unique_ptr<backend::Runner> loom_runner(const std::string& library) {
  auto runner = backend::open_runner(loom_compiler(library));
  REQUIRE_MESSAGE(runner, (runner ? "" : runner.error().text()));
  return std::move(*runner);
}

/// A source set with the next number. A name that begins with `lib` is a library's.
inline std::shared_ptr<const backend::SourceSet> loom_sources(
    const std::vector<std::pair<std::string, std::string>>& files) {
  static uint32_t last = 0;
  auto out = std::make_shared<backend::SourceSet>();
  out->id = ++last;
  for (const auto& [name, text] : files) {
    const auto role = name.starts_with("lib") ? backend::Role::kLibrary : backend::Role::kSource;
    out->files.push_back({name, role, base::Bytes(text.begin(), text.end())});
  }
  return out;
}

inline backend::CompileRequest loom_request(std::shared_ptr<const backend::SourceSet> sources,
                                            std::string entry, std::string_view target,
                                            backend::Pairs config = {}, backend::Pairs options = {}) {
  backend::CompileRequest out;
  out.sources = std::move(sources);
  out.entry = std::move(entry);
  const auto parsed = target::parse_target(target);
  REQUIRE_MESSAGE(parsed, target);
  out.target = *parsed;
  out.config = std::move(config);
  out.options = std::move(options);
  return out;
}

// c[i] = a[i] - b[i] over n f32. The block has no default, from 32 to 512 in steps of 32; its exported name
// is not its symbol.
inline constexpr std::string_view kSubtract = R"loom(// One element a work item.
config.decl @block.size : %size: index where [range(%size, 32, 512), mul(%size, 32)]  // chosen outside

kernel.def export("subtract_f32") @subtract(%n: index) {
  %one = index.constant 1 : index
  %size = config.get @block.size : index
  %last = index.sub %size, %one : index
  %reach = index.add %n, %last : index
  %groups = index.div %reach, %size : index
  kernel.launch.config workgroups(%groups, %one, %one) workgroup_size(%size, %one, %one) : index
} launch(%n: index, %a: buffer, %b: buffer, %c: buffer) {
  %dense = encoding.layout.strided [1] : encoding<layout>
  %start = index.constant 0 : offset
  %size = config.get @block.size : index
  %group = kernel.workgroup.id<x> : index
  %item = kernel.workitem.id<x> : index
  %at = index.madd %group, %size, %item : index
  %is_ours = index.cmp ult, %at, %n : index
  %am = buffer.assume.memory_space<global> %a : buffer
  %bm = buffer.assume.memory_space<global> %b : buffer
  %cm = buffer.assume.memory_space<global> %c : buffer
  %av = buffer.view %am[%start] : buffer -> view<[%n]xf32, %dense>
  %bv = buffer.view %bm[%start] : buffer -> view<[%n]xf32, %dense>
  %cv = buffer.view %cm[%start] : buffer -> view<[%n]xf32, %dense>
  scf.if %is_ours {
    %x = view.load %av[%at] : view<[%n]xf32, %dense> -> f32
    %y = view.load %bv[%at] : view<[%n]xf32, %dense> -> f32
    %z = scalar.subf %x, %y : f32
    view.store %z, %cv[%at] : f32, view<[%n]xf32, %dense>
  }
  kernel.return
}
)loom";

// out[i] = shifted(in[i]) over n i32 in blocks of 64; `shifted` is another file's. `shift.unread` is declared
// and never read.
inline constexpr std::string_view kShiftRoot = R"loom(config.def @shift.unread = 1 : i32
func.decl @shifted(%value: i32) -> (i32)

kernel.def export("shift_i32") @shift_i32(%n: index) {
  %one = index.constant 1 : index
  %size = index.constant 64 : index
  %last = index.sub %size, %one : index
  %reach = index.add %n, %last : index
  %groups = index.div %reach, %size : index
  kernel.launch.config workgroups(%groups, %one, %one) workgroup_size(%size, %one, %one) : index
} launch(%n: index, %in: buffer, %out: buffer) {
  %dense = encoding.layout.strided [1] : encoding<layout>
  %start = index.constant 0 : offset
  %size = index.constant 64 : index
  %group = kernel.workgroup.id<x> : index
  %item = kernel.workitem.id<x> : index
  %at = index.madd %group, %size, %item : index
  %is_ours = index.cmp ult, %at, %n : index
  %im = buffer.assume.memory_space<global> %in : buffer
  %om = buffer.assume.memory_space<global> %out : buffer
  %iv = buffer.view %im[%start] : buffer -> view<[%n]xi32, %dense>
  %ov = buffer.view %om[%start] : buffer -> view<[%n]xi32, %dense>
  scf.if %is_ours {
    %x = view.load %iv[%at] : view<[%n]xi32, %dense> -> i32
    %y = func.call @shifted(%x) : (i32) -> (i32)
    view.store %y, %ov[%at] : i32, view<[%n]xi32, %dense>
  }
  kernel.return
}
)loom";

// shifted(v) = v + shift.by, which is 5 by default.
inline constexpr std::string_view kShiftLibrary = R"loom(config.def @shift.by = 5 : i32

func.def public inline @shifted(%value: i32) -> (i32) {
  %by = config.get @shift.by : i32
  %result = scalar.addi %value, %by : i32
  func.return %result : i32
}
)loom";

// Nothing above reaches it.
inline constexpr std::string_view kUnusedLibrary = R"loom(
func.def public inline @doubled(%value: i32) -> (i32) {
  %result = scalar.addi %value, %value : i32
  func.return %result : i32
}
)loom";

}  // namespace kc::test

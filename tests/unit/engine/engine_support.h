// Messages with every field set, and what is needed to compare them.
#pragma once

#include <doctest/doctest.h>

#include <string>
#include <string_view>
#include <vector>

#include "backend/backend.h"
#include "engine/wire.h"
#include "support/fake_install.h"
#include "support/temp_folder.h"

namespace kc::test {

inline base::Digest digest_of(std::string_view text) {
  return base::sha256(text);
}

/// A compiler as kc would find it: installed below `root` from the file `program`.
inline backend::Compiler install_compiler(const std::string& program, const std::string& root) {
  const auto installed = install_fake_tileiras(program, root);
  REQUIRE_MESSAGE(installed, (installed ? std::string() : installed.error().text()));
  backend::SearchVariables variables;
  variables.kc_tileiras = *installed;
  auto compiler = backend::find_compiler("tileiras", variables, {});
  REQUIRE_MESSAGE(compiler, (compiler ? std::string() : compiler.error().text()));
  return std::move(*compiler);
}

inline artifact::Artifact sample_artifact() {
  artifact::Artifact out;
  out.code = {1, 2, 3, 0, 255};
  out.facts.found_target = "sm_90a";
  out.facts.toolkit = "13.4";
  artifact::KernelFacts kernel;
  kernel.symbol = "kernel";
  kernel.registers = 40;
  kernel.local_memory = 16;
  kernel.spills = 3;
  kernel.shared_memory = 1024;
  kernel.argument_bytes = 16;
  kernel.arguments = {{0, 8}, {8, 4}};
  kernel.required_block = {128, 2, 1};
  kernel.max_threads = 256;
  kernel.wave_size = 32;
  out.facts.kernels = {kernel};
  out.diagnostics = {{artifact::Severity::kWarning, "W1", "slow", "a.tilebc", 3, 4}};
  out.report = {7, 8};
  out.compiler = "tileiras";
  out.compiler_version = "13.4.92";
  return out;
}

inline engine::Setup sample_setup(const std::vector<backend::Compiler>& compilers) {
  engine::Setup out;
  out.compilers = compilers;
  out.store_directory = "/a/store";
  out.read_only_directories = {"/b/store", "/c/store"};
  out.store_mode = store::Mode::kRefresh;
  out.work_folder = "/a/work";
  out.slots = 7;
  return out;
}

inline engine::Job sample_job() {
  engine::Job out;
  out.id = 11;
  out.backend = "tileiras";
  out.unit = "matmul:T=64@sm_90";
  out.key = digest_of("key");
  out.entry = "matmul";
  out.target = "sm_90";
  out.options = {{"debug", "false"}, {"opt", "2"}};
  out.config = {{"T", "64"}};
  out.sources = 21;
  out.timeout = std::chrono::milliseconds(1500);
  out.ignore_lock = true;
  out.waited = true;
  return out;
}

inline engine::Sources sample_sources() {
  engine::Sources out;
  out.set = 21;
  out.files = {{"a.loom", backend::Role::kSource, {1, 2, 3}}, {"b.loom", backend::Role::kLibrary, {}}};
  return out;
}

inline engine::Done sample_done() {
  engine::Done out;
  out.id = 12;
  out.state = engine::JobState::kTimeout;
  out.module = digest_of("module");
  out.content_key = digest_of("content");
  out.artifact = sample_artifact();
  out.message = "took too long";
  out.hint = "wait longer";
  out.output = "printed\n";
  out.seconds = 1.25;
  out.peak_bytes = 1ULL << 33;
  out.signers = {std::string(64, 'a'), ""};
  out.holds_key = true;
  return out;
}

/// One of each kind; a Setup without compilers, whose identities would need an installation.
inline std::vector<engine::Message> sample_messages() {
  return {engine::Greeting{5, "0.1.0+abc"},
          sample_setup({}),
          sample_sources(),
          engine::Forget{22},
          sample_job(),
          engine::Started{13},
          engine::Group{14, 4711, false},
          sample_done(),
          engine::Release{15}};
}

}  // namespace kc::test

// The arguments of commands that kc and kcload both have.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace kc::cli {

/// Whose signatures count.
struct KeyArguments {
  std::vector<std::string> keys;      // --key, files of public keys
  std::optional<std::string> folder;  // --key-dir
  bool trust_unsigned = false;        // --trust-unsigned
};

/// A bundle and what it must be.
struct PolicyArguments {
  std::string bundle;
  KeyArguments keys;
  std::optional<std::string> name;
  std::optional<uint64_t> min_release;
  bool allow_partial = false;
};

struct LoadArguments {
  PolicyArguments policy;
  std::vector<std::string> devices;  // --device, as written; empty: all
};

struct CheckArguments {
  PolicyArguments policy;
  std::vector<std::string> devices;  // --device, names of architectures
  std::optional<uint32_t> driver;    // --driver, a branch of NVIDIA's
};

}  // namespace kc::cli

// How a program speaks: what kc and kcload both take on every command line.
#pragma once

#include <cstdint>
#include <string>

#include "config/terminal.h"

namespace kc::cli {

enum class Format : uint8_t { kText, kJson };

struct Manner {
  std::string program = "kc";  // what its messages begin with
  std::string directory;       // -C, already changed into
  int verbosity = 0;           // -1 with -q, 1 with -v
  std::string color = "auto";
  std::string progress = "auto";
  Format format = Format::kText;
  config::Terminal terminal;
};

}  // namespace kc::cli

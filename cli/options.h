// The command line. CLI11 is included in options.cpp only.
#pragma once

#include <functional>
#include <string>

#include "cli/command.h"

namespace kc::cli {

struct Parsed {
  Common common;
  std::function<int(const Common&, Console&)> command;  // empty: print `text` and end with `code`
  std::string text;                                     // help, version (code 0) or what is wrong (code 2)
  int code = 0;
};

Parsed parse(int argc, char** argv);

}  // namespace kc::cli

// The command line of kcload. CLI11 is included in options.cpp only.
#pragma once

#include <functional>
#include <string>

#include "cli/manner.h"

namespace kc::cli {

class Console;

struct LoaderParsed {
  Manner manner;
  std::function<int(Console&)> command;  // empty: print `text` and end with `code`
  std::string text;                      // help, version (code 0) or what is wrong (code 2)
  int code = 0;
};

LoaderParsed parse_loader(int argc, char** argv);

}  // namespace kc::cli

// Installs the stand-in for tileiras as a real installation lies: bin/tileiras, bin/ptxas beside it,
// lib/libnvvm.so.4, nvvm/libdevice/libdevice.10.bc.
#pragma once

#include <string>

#include "base/error.h"

namespace kc::test {

struct FakeInstallOptions {
  std::string variant = "1";              // another one makes other code from the same input
  std::string ptxas_release = "13.4.92";  // what its ptxas answers to --version
  bool has_ptxas = true;
  bool has_libnvvm = true;
};

/// Copies `program` (the built fake_tileiras) into `root`; gives the path of the installed program. Files
/// that are there are replaced by rename, as a package manager does, so it also serves to replace a running
/// compiler.
base::Result<std::string> install_fake_tileiras(const std::string& program, const std::string& root,
                                                const FakeInstallOptions& options = {});

/// The variant at the end of the program's file, which is where the installation puts it: so another variant
/// is another file, with another identity. "1" when there is none.
std::string variant_of(const std::string& program);

}  // namespace kc::test

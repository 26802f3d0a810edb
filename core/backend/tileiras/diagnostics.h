// What tileiras prints and how it exits, put into kc's words. Pure functions of text, so that every message
// can be tested without a compiler.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "artifact/artifact.h"
#include "backend/run.h"
#include "backend/tileiras/tileiras.h"

namespace kc::backend::tileiras {

/// The diagnostics in what the compiler (or a ptxas below it) printed, in order. Lines that belong to no form
/// of its own continue the one before; text is kept as printed, bounded.
std::vector<artifact::Diagnostic> parse_diagnostics(std::string_view text);

/// `13.4.92` out of what `--version` prints (`... release 13.4, V13.4.92`), empty when it is not there.
/// `tool` is the name that must begin the text.
std::string parse_version(std::string_view text, std::string_view tool);
/// `13.4` of `13.4.92`.
std::string_view release_of(std::string_view version);
/// The GPU names in what `--help` prints.
std::vector<std::string> parse_gpus(std::string_view help);

/// What is known when a compile has failed; the last six are asked for only then, and only when they can
/// matter.
struct Failure {
  int exit_code = 0;  // -1: ended by `signal`
  int signal = 0;
  std::string compiler_version;
  const CompileRequest* request = nullptr;
  std::vector<artifact::Diagnostic> diagnostics;
  bool printed_nothing = false;
  std::vector<std::string> gpus;               // exit 1
  std::vector<std::string> bytecode_versions;  // exit 3
  std::string ptxas_version;                   // exit 5; empty: it does not say
  std::string ptxas_problem;                   // exit 5: why it cannot even be asked
  bool has_libnvvm = true;
  std::string folder_problem;  // why nothing can be written to the job's folder; empty: it can
};

struct Explanation {
  Status status = Status::kFailed;
  std::string message;
  std::string hint;
};
Explanation explain(const Failure& failure);

}  // namespace kc::backend::tileiras

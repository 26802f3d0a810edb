#include "backend/tileiras/diagnostics.h"

#include <signal.h>
#include <string.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <iterator>
#include <optional>

#include "util/text.h"

namespace kc::backend::tileiras {
namespace {

using artifact::Diagnostic;
using artifact::Severity;

// A compiler that repeats itself must not fill the store: what is over is in the captured output.
constexpr size_t kMostDiagnostics = 1000;
constexpr size_t kLongestMessage = 4096;

struct Word {
  std::string_view text;
  Severity severity;
};
constexpr std::array<Word, 7> kWords = {{{"fatal error", Severity::kError},
                                         {"error", Severity::kError},
                                         {"fatal", Severity::kError},
                                         {"warning", Severity::kWarning},
                                         {"remark", Severity::kRemark},
                                         {"info", Severity::kNote},
                                         {"note", Severity::kNote}}};

// `error: text`, `fatal   : text`: a severity that begins `line`, with the text behind its colon.
struct Marked {
  Severity severity;
  std::string_view text;
};
std::optional<Marked> marked(std::string_view line) {
  for (const Word& word : kWords) {
    if (!line.starts_with(word.text)) continue;
    const std::string_view rest = line.substr(word.text.size());
    const size_t colon = rest.find_first_not_of(' ');
    if (colon == std::string_view::npos || rest[colon] != ':') continue;
    return Marked{word.severity, util::trim(rest.substr(colon + 1))};
  }
  return std::nullopt;
}

std::optional<uint32_t> number(std::string_view text) {
  const auto value = util::parse_number(text, 0, UINT32_MAX);
  return value ? std::optional(static_cast<uint32_t>(*value)) : std::nullopt;
}

// `file:L:C` or `file:L`; false when it ends in no number.
bool take_place(std::string_view text, Diagnostic& out) {
  const size_t last = text.rfind(':');
  if (last == std::string_view::npos || last == 0) return false;
  const auto second = number(text.substr(last + 1));
  if (!second) return false;
  const std::string_view before = text.substr(0, last);
  const size_t middle = before.rfind(':');
  const auto first = middle == std::string_view::npos ? std::nullopt : number(before.substr(middle + 1));
  out.file = std::string(first ? before.substr(0, middle) : before);
  out.line = first ? *first : *second;
  out.column = first ? *second : 0;
  return true;
}

// The first `"file":L:C` in the text of an MLIR location, however deep: loc(...), #cuda_tile.di_loc<...>,
// callsite.
void take_location(std::string_view text, Diagnostic& out) {
  for (size_t open = text.find('"'); open != std::string_view::npos; open = text.find('"', open + 1)) {
    const size_t close = text.find('"', open + 1);
    if (close == std::string_view::npos) return;
    const std::string_view rest = text.substr(close + 1);
    const size_t end = std::min(rest.find_first_not_of("0123456789:"), rest.size());
    if (end > 1 &&
        take_place(util::format("{}{}", text.substr(open + 1, close - open - 1), rest.substr(0, end)), out)) {
      return;
    }
    open = close;
  }
}

// `ptxas fatal   : text`, `ptxas in.ptx, line 12; error   : text`: how the tools below tileiras speak.
std::optional<Diagnostic> tool_line(std::string_view line) {
  for (const std::string_view tool : {"ptxas", "nvlink", "libnvvm", "nvvm"}) {
    if (!line.starts_with(tool) || line.size() == tool.size() || line[tool.size()] != ' ') continue;
    const std::string_view rest = util::trim(line.substr(tool.size()));
    Diagnostic out;
    std::string_view body = rest;
    if (const size_t semicolon = rest.find("; "); semicolon != std::string_view::npos) {
      constexpr std::string_view kLine = ", line ";
      const std::string_view place = rest.substr(0, semicolon);
      if (const size_t comma = place.rfind(kLine); comma != std::string_view::npos) {
        out.file = std::string(place.substr(0, comma));
        out.line = number(place.substr(comma + kLine.size())).value_or(0);
        body = util::trim(rest.substr(semicolon + 1));
      }
    }
    const auto found = marked(body);
    if (!found) return std::nullopt;
    out.severity = found->severity;
    out.message = util::format("{}: {}", tool, found->text);
    return out;
  }
  return std::nullopt;
}

std::optional<Diagnostic> parse_line(std::string_view line) {
  if (const auto found = marked(line)) {
    return Diagnostic{found->severity, {}, std::string(found->text), {}, 0, 0};
  }
  if (auto found = tool_line(line)) return found;
  constexpr std::string_view kLlvm = "LLVM ERROR: ";
  if (line.starts_with(kLlvm)) {
    return Diagnostic{Severity::kError, {}, std::string(line.substr(kLlvm.size())), {}, 0, 0};
  }
  // `tileiras: for the --gpu-name option: ...`, and the guess that follows such a line.
  constexpr std::string_view kSelf = "tileiras: ";
  if (line.starts_with(kSelf)) {
    const std::string_view text = line.substr(kSelf.size());
    const bool is_guess = text.starts_with("Did you mean");
    return Diagnostic{is_guess ? Severity::kNote : Severity::kError, {}, std::string(text), {}, 0, 0};
  }
  // `place: error: text`, where a place may itself hold colons: the last one before a severity counts.
  for (size_t at = line.find(": "); at != std::string_view::npos; at = line.find(": ", at + 1)) {
    const auto found = marked(line.substr(at + 2));
    if (!found) continue;
    const std::string_view place = line.substr(0, at);
    Diagnostic out{found->severity, {}, std::string(found->text), {}, 0, 0};
    if (place.starts_with("loc(") || place.starts_with('#')) {
      take_location(place, out);
    } else if (!take_place(place, out)) {
      out.message = util::format("{}: {}", place, found->text);
    }
    return out;
  }
  return std::nullopt;
}

bool says(const Failure& failure, std::string_view text) {
  return std::ranges::any_of(failure.diagnostics, [&](const Diagnostic& diagnostic) {
    return diagnostic.message.find(text) != std::string::npos;
  });
}

// The first line that an error says; some say none.
std::string lead(const Failure& failure, std::string_view otherwise) {
  for (const Diagnostic& diagnostic : failure.diagnostics) {
    const std::string_view message = diagnostic.message;
    if (diagnostic.severity != Severity::kError || message.empty()) continue;
    return std::string(message.substr(0, message.find('\n')));
  }
  return std::string(otherwise);
}

Explanation no_space(std::string_view why) {
  return {Status::kEnvironment, util::format("tileiras could not write to its job folder: {}", why),
          "check free space, quota and permissions of the store's tmp folder"};
}

Explanation explain_arguments(const Failure& failure) {
  if (says(failure, "Cannot find option named") && says(failure, "gpu-name")) {
    const target::Target& asked = failure.request->target;
    Explanation out{Status::kUnsupported,
                    util::format("tileiras {} has no {}", failure.compiler_version, util::escape(asked.text)),
                    {}};
    if (!failure.gpus.empty()) out.message += "; it has " + util::listed(failure.gpus, failure.gpus.size());
    if (asked.suffix != 0 && std::ranges::find(failure.gpus, asked.processor) != failure.gpus.end()) {
      out.hint = util::format("{}: tileiras takes no suffix; say {}", asked.text, asked.processor);
    }
    return out;
  }
  if (says(failure, "unable to read input file")) {
    return {Status::kEnvironment,
            "tileiras could not read its input from the job folder: " + lead(failure, ""),
            "was the store's tmp folder removed while kc ran?"};
  }
  return {Status::kFailed, lead(failure, "tileiras refused its arguments (exit 1)"), {}};
}

Explanation explain_bytecode(const Failure& failure) {
  if (!says(failure, "unsupported Tile IR bytecode version")) {
    return {
        Status::kFailed, lead(failure, "tileiras does not take the source as Tile IR bytecode (exit 3)"), {}};
  }
  const auto version = failure.request->sources->files.empty()
                           ? std::nullopt
                           : bytecode_version(failure.request->sources->files.front().bytes);
  const std::string name = version ? util::format("Tile IR bytecode {}.{}", version->major, version->minor)
                                   : "this Tile IR bytecode";
  Explanation out{
      Status::kFailed, util::format("tileiras {} does not read {}", failure.compiler_version, name), {}};
  if (!failure.bytecode_versions.empty()) {
    const auto& known = failure.bytecode_versions;
    out.message += "; it reads " + util::listed(known, known.size());
    out.hint = util::format(
        "export the source with bytecode version {} or older, or install a newer tileiras", known.back());
  }
  return out;
}

// Ends what tileiras prints about a failed compilation; no cause of its own.
constexpr std::string_view kLastLine = "failed to compile Tile IR program";

// Whether all that it complains of is the architecture: `Incompatibility with architecture 'sm_80':
// unsupported type 'f8E4M3FN'`, once for each place.
bool is_incompatible(const Failure& failure) {
  constexpr std::string_view kIncompatible = "Incompatibility with architecture '";
  const auto is_consequence = [](const Diagnostic& diagnostic) {
    return diagnostic.severity != Severity::kError || diagnostic.message.starts_with(kLastLine);
  };
  const auto is_fitting = [&](const Diagnostic& diagnostic) {
    return is_consequence(diagnostic) || diagnostic.message.starts_with(kIncompatible);
  };
  return std::ranges::all_of(failure.diagnostics, is_fitting) &&
         !std::ranges::all_of(failure.diagnostics, is_consequence);
}

Explanation explain_compilation(const Failure& failure) {
  if (!failure.has_libnvvm) {
    return {Status::kEnvironment,
            "tileiras has no libnvvm: neither ../nvvm/lib64/libnvvm.so nor ../lib/libnvvm.so.4 is there",
            "install the package nvidia-nvvm of the same release beside it"};
  }
  const std::string_view release = release_of(failure.compiler_version);
  if (!failure.ptxas_problem.empty()) {
    return {Status::kEnvironment, "the ptxas beside tileiras does not work: " + failure.ptxas_problem,
            util::format("install the package nvidia-cuda-nvcc of release {}", release)};
  }
  if (!failure.ptxas_version.empty() && release_of(failure.ptxas_version) != release) {
    return {
        Status::kEnvironment,
        util::format("the ptxas beside tileiras is of release {}, tileiras itself of {}",
                     release_of(failure.ptxas_version), release),
        util::format("tileiras, ptxas and libnvvm must be of one release: install all three at {}", release)};
  }
  Explanation out{Status::kFailed, lead(failure, "tileiras failed to compile the program (exit 5)"), {}};
  if (is_incompatible(failure)) {
    out.status = Status::kUnsupported;
    out.message = "this kernel is not for this target: " + out.message;
    out.hint = util::format("leave {} out of its targets", failure.request->target.text);
  } else if (std::ranges::count(failure.diagnostics, Severity::kError, &Diagnostic::severity) <= 1 &&
             says(failure, kLastLine)) {
    // It says this and no more when it cannot use what it needs.
    out.hint = util::format("tileiras gives no cause; a libnvvm of another release than {} looks like this",
                            release);
  }
  return out;
}

}  // namespace

std::vector<Diagnostic> parse_diagnostics(std::string_view text) {
  std::vector<Diagnostic> out;
  for (const std::string& whole : util::split(text, '\n')) {
    std::string_view line = whole;
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (util::trim(line).empty()) continue;
    if (auto found = parse_line(line)) {
      if (out.size() == kMostDiagnostics) break;
      found->message.resize(std::min(found->message.size(), kLongestMessage));
      out.push_back(std::move(*found));
    } else if (out.empty()) {
      // Said by a library below the compiler, before the compiler's own message.
      out.push_back({Severity::kNote, {}, std::string(line.substr(0, kLongestMessage)), {}, 0, 0});
    } else if (out.back().message.size() + line.size() < kLongestMessage) {
      if (out.back().message.empty()) {
        out.back().message = util::trim(line);
      } else {
        out.back().message += '\n';
        out.back().message += line;
      }
    }
  }
  return out;
}

std::string parse_version(std::string_view text, std::string_view tool) {
  if (!text.starts_with(util::format("{}: NVIDIA", tool))) return {};
  constexpr std::string_view kRelease = "release ";
  const size_t release = text.find(kRelease);
  if (release == std::string_view::npos) return {};
  const std::string_view line = text.substr(release, text.substr(release).find('\n'));
  const size_t version = line.find(", V");
  if (version == std::string_view::npos) return {};
  const std::string_view rest = line.substr(version + 3);
  return std::string(rest.substr(0, rest.find_first_not_of("0123456789.")));
}

std::string_view release_of(std::string_view version) {
  const size_t first = version.find('.');
  if (first == std::string_view::npos) return version;
  return version.substr(0, version.find('.', first + 1));
}

std::vector<std::string> parse_gpus(std::string_view help) {
  std::vector<std::string> out;
  for (const std::string& line : util::split(help, '\n')) {
    const std::string_view text = util::trim(line);
    if (!text.starts_with("=sm_")) continue;
    out.emplace_back(text.substr(1, text.find(' ') - 1));
  }
  return out;
}

Explanation explain(const Failure& failure) {
  if (failure.exit_code < 0) {
    const char* name = sigabbrev_np(failure.signal);
    Explanation out{Status::kFailed,
                    util::format("tileiras was ended by signal {}{}", failure.signal,
                                 name != nullptr ? util::format(" (SIG{})", name) : ""),
                    {}};
    if (failure.signal == SIGKILL) out.hint = "perhaps the machine ran out of memory: try a smaller -j";
    return out;
  }
  if (!failure.folder_problem.empty()) return no_space(failure.folder_problem);
  // Exit 1 when a temporary file or the output does not fit; room may be back by the time the folder is
  // looked at.
  for (const std::string_view why :
       {"No space left on device", "Disk quota exceeded", "Input/output error"}) {
    if (says(failure, why)) return no_space(why);
  }
  switch (failure.exit_code) {
    case 1:
      return explain_arguments(failure);
    case 2:
      if (!failure.printed_nothing)
        return {Status::kFailed, lead(failure, "tileiras refused its options (exit 2)"), {}};
      // It exits so, without a word, when it cannot open its output.
      return {Status::kEnvironment,
              "tileiras could not open its output file in the job folder (exit 2, no message)",
              "check free space, quota and permissions of the store's tmp folder"};
    case 3:
      return explain_bytecode(failure);
    case 5:
      return explain_compilation(failure);
    default:
      return {Status::kFailed,
              lead(failure, util::format("tileiras ended with exit code {}", failure.exit_code)),
              {}};
  }
}

}  // namespace kc::backend::tileiras

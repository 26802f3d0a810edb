#include "backend/loom/run/explain.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include "backend/loom/loom.h"
#include "backend/loom/scan.h"
#include "util/text.h"

namespace kc::backend::loom {
namespace {

using artifact::Diagnostic;
using artifact::Severity;

constexpr std::string_view kConfigCode = "CONFIG/INVALID";

// `tuner.width` in `symbol '@tuner.width' value 7 violates ...` and in `config 'tuner.width' expects ...`:
// what stands in the first quotes.
std::string_view key_in(std::string_view message) {
  const size_t open = message.find('\'');
  if (open == std::string_view::npos) return {};
  std::string_view rest = message.substr(open + 1);
  rest = rest.substr(0, rest.find('\''));
  if (rest.starts_with('@')) rest.remove_prefix(1);
  return rest;
}

// Where a text source declares `key`.
std::optional<Declaration> declaration_of(const SourceSet& sources, std::string_view key, std::string* file) {
  for (const Source& source : sources.files) {
    if (is_bytecode(source.identifier)) continue;
    if (auto found = find_declaration(base::as_text(source.bytes), key)) {
      *file = source.identifier;
      return found;
    }
  }
  return std::nullopt;
}

bool says(const Diagnostic& diagnostic, std::string_view text) {
  return diagnostic.message.find(text) != std::string::npos;
}

std::string hint_for_configuration(const CompileRequest& request, const Diagnostic& lead) {
  const std::string key(key_in(lead.message));
  if (key.empty()) return {};
  const bool is_given =
      std::ranges::find(request.config, key, &Pairs::value_type::first) != request.config.end();
  if (!is_given) {
    std::vector<std::string> given;
    for (const auto& [name, value] : request.config) given.push_back(name);
    const std::string near = util::did_you_mean(key, given);
    return util::format("{} has no default: give it a value, in config or in the specializations{}", key,
                        near.empty() ? "" : "; the manifest has a key that is near: " + near);
  }
  std::string file;
  const auto declared = declaration_of(*request.sources, key, &file);
  return declared ? util::format("declared as {}", util::escape(declared->text)) : std::string();
}

// `@helper` in `cannot inline func.call to @helper: callee_missing_body`.
std::string_view symbol_in(std::string_view message) {
  const size_t begin = message.find('@');
  if (begin == std::string_view::npos) return {};
  const std::string_view rest = message.substr(begin);
  return rest.substr(0, rest.find_first_of(": '"));
}

std::vector<std::string> all_exported(const SourceSet& sources) {
  std::vector<std::string> out;
  for (const Source& source : sources.files) {
    if (is_bytecode(source.identifier)) continue;
    for (std::string& name : exported_kernels(base::as_text(source.bytes))) out.push_back(std::move(name));
  }
  return out;
}

std::string hint_for_root(const CompileRequest& request) {
  const std::vector<std::string> names = all_exported(*request.sources);
  if (names.empty()) {
    const bool is_text = std::ranges::none_of(
        request.sources->files, [](const Source& source) { return is_bytecode(source.identifier); });
    return is_text ? "the sources export no kernel: write `kernel.def export(\"name\") @name`" : "";
  }
  const std::string near = util::did_you_mean(request.entry, names);
  return near.empty() ? util::format("the sources export {}", util::listed(names)) : near;
}

// Two files that each declare a key of the configuration in their own way.
std::string hint_for_duplicate(const CompileRequest& request, const Diagnostic& lead) {
  const std::string_view key = key_in(lead.message);
  if (key.empty()) return {};
  std::vector<std::string> places;
  for (const Source& source : request.sources->files) {
    if (is_bytecode(source.identifier)) continue;
    if (const auto found = find_declaration(base::as_text(source.bytes), key))
      places.push_back(util::format("{}:{}", util::escape(source.identifier), found->line));
  }
  if (places.size() < 2) return {};
  return util::format("{} is declared in {}: all files of a kernel must declare a key alike",
                      util::escape(key), util::listed(places));
}

std::string hint_for(const CompileRequest& request, const Diagnostic& lead) {
  if (lead.code == kConfigCode) return hint_for_configuration(request, lead);
  for (const Source& source : request.sources->files) {
    if (is_bytecode(source.identifier)) continue;
    std::string hint = missing_export_hint(request.entry, base::as_text(source.bytes));
    if (!hint.empty()) return hint;
  }
  if (lead.code == "LINK/PLAN" && says(lead, "was not found")) return hint_for_root(request);
  if (lead.code == "LINK/PLAN" && says(lead, "duplicate")) return hint_for_duplicate(request, lead);
  if (says(lead, "callee_missing_body")) {
    return util::format(
        "{} is declared and nowhere defined: add the file that defines it to sources or libraries",
        util::escape(symbol_in(lead.message)));
  }
  const bool is_about_target = lead.code.starts_with("TARGET/") || lead.code.starts_with("LOWERING/") ||
                               lead.code.starts_with("EMIT/") || says(lead, "contract");
  if (is_about_target && request.target.processor.ends_with("-generic")) {
    return util::format(
        "{} stands for several processors: what is written for one of them needs that one's name",
        request.target.processor);
  }
  return {};
}

}  // namespace

void add_places(const SourceSet& sources, std::vector<Diagnostic>& diagnostics) {
  for (Diagnostic& diagnostic : diagnostics) {
    if (diagnostic.code != kConfigCode || diagnostic.line != 0) continue;
    const std::string_view key = key_in(diagnostic.message);
    if (key.empty()) continue;
    const auto declared = declaration_of(sources, key, &diagnostic.file);
    if (!declared) continue;
    diagnostic.line = declared->line;
    diagnostic.column = declared->column;
  }
}

Explanation explain(const CompileRequest& request, const std::vector<Diagnostic>& diagnostics) {
  Explanation out;
  const auto is_error = [](const Diagnostic& diagnostic) { return diagnostic.severity == Severity::kError; };
  const auto lead = std::ranges::find_if(diagnostics, is_error);
  if (lead == diagnostics.end()) {
    out.message = "the Loom library failed and gave no error";
    return out;
  }
  // An authored target that does not fit this one.
  if (lead->code == "TARGET/052") out.status = Status::kUnsupported;
  out.message = lead->code.empty() ? lead->message : util::format("{}: {}", lead->code, lead->message);
  out.message = out.message.substr(0, out.message.find('\n'));
  const auto errors = std::ranges::count_if(diagnostics, is_error);
  if (errors > 1)
    out.message += util::format(" (and {})", util::counted(static_cast<uint64_t>(errors - 1), "more error"));
  out.hint = out.status == Status::kUnsupported
                 ? util::format("leave {} out of its targets", request.target.text)
                 : hint_for(request, *lead);
  return out;
}

}  // namespace kc::backend::loom

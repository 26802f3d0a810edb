#include "build/repro.h"

#include <algorithm>
#include <chrono>

#include "build/keys.h"
#include "util/text.h"

namespace kc::build {
namespace {

// Nothing that is stored is used: the keys are others, since the files have other places.
constexpr std::string_view kFlags = "--store-mode=off";

bool is_plain(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.' ||
         c == '+' || c == '-';
}

std::string percent(char c) {
  return util::format("%{:02X}", static_cast<unsigned char>(c));
}

// A double-quoted YAML scalar.
std::string yaml_text(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
      out += util::format("\\x{:02X}", static_cast<unsigned char>(c));
    } else {
      out += c;
    }
  }
  return out + '"';
}

std::string shell_text(std::string_view text) {
  if (!text.empty() && std::ranges::all_of(text, [](char c) { return is_plain(c) || c == '/'; })) {
    return std::string(text);
  }
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? "'\\''" : std::string(1, c);
  return out + "'";
}

void add_pairs(std::string& out, std::string_view field, const manifest::Pairs& pairs) {
  if (pairs.empty()) return;
  out += util::format("    {}:\n", field);
  for (const auto& [name, value] : pairs) {
    out += util::format("      {}: {}\n", yaml_text(name), yaml_text(value));
  }
}

void add_files(std::string& out, std::string_view field, const Prepared& prepared,
               const std::vector<uint32_t>& files) {
  if (files.empty()) return;
  out += util::format("    {}:\n", field);
  for (const uint32_t file : files) {
    out += util::format("      - {}\n",
                        yaml_text("inputs/" + repro_path(prepared.plan.sources[file].identifier)));
  }
}

std::string manifest_of(const Prepared& prepared, size_t index) {
  const manifest::Unit& unit = prepared.unit(index);
  const manifest::Kernel& kernel = prepared.kernel(index);
  std::string out = util::format("# {}, as it was compiled.\n", unit.name);
  out += util::format("version: 1\nname: repro\ntargets: [{}]\nkernels:\n", yaml_text(unit.target.text));
  out += util::format("  - name: {}\n    backend: {}\n", yaml_text(kernel.name), yaml_text(kernel.backend));
  add_files(out, "sources", prepared, unit.sources);
  add_files(out, "libraries", prepared, kernel.libraries);
  out += util::format("    entry: {}\n", yaml_text(unit.entry));
  if (!unit.symbol.empty()) out += util::format("    symbol: {}\n", yaml_text(unit.symbol));
  add_pairs(out, "options", unit.options);
  add_pairs(out, "config", unit.config);
  const auto timeout = std::chrono::ceil<std::chrono::milliseconds>(prepared.units[index].timeout);
  return out + util::format("    timeout: {}ms\n", timeout.count());
}

}  // namespace

std::string repro_path(std::string_view identifier) {
  std::string out;
  for (const std::string& part : util::split(identifier, '/')) {
    if (!out.empty() && !out.ends_with('/')) out += '/';
    if (part.empty()) {
      out += percent('/');  // as a part of its own: `/a` is `%2F/a`
    } else if (part == "." || part == "..") {
      for (const char c : part) out += percent(c);
    } else {
      for (const char c : part) out += is_plain(c) ? std::string(1, c) : percent(c);
    }
  }
  return out;
}

std::string repro_command(const std::string& folder) {
  return util::format("kc build -f {} {}",
                      shell_text(folder.empty() ? "kernels.yaml" : folder + "/kernels.yaml"), kFlags);
}

store::Repro repro_of(const Prepared& prepared, size_t index, std::string_view what,
                      std::string_view output) {
  store::Repro out;
  const base::ByteView printed = base::as_bytes(output);
  out.output.assign(printed.begin(), printed.end());
  const auto add = [&](const std::vector<uint32_t>& files) {
    for (const uint32_t file : files) {
      out.inputs.push_back(
          {repro_path(prepared.plan.sources[file].identifier), prepared.sources[file].bytes});
    }
  };
  add(prepared.unit(index).sources);
  add(prepared.kernel(index).libraries);
  out.manifest = manifest_of(prepared, index);
  out.command = repro_command({}) + "\n";
  out.command +=
      util::format("\n# in this folder compiles {} again, which ended so:\n", prepared.unit(index).name);
  out.command += util::format("#   {}\n", util::escape(what));
  if (const backend::Compiler* compiler = prepared.compiler(prepared.kernel(index).backend)) {
    out.command += util::format("# It was compiled by {}\n#   {} (identity {}).\n", compiler->backend,
                                util::escape(compiler->program), compiler->identity.hex());
  }
  return out;
}

}  // namespace kc::build

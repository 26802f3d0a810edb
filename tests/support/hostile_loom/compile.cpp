#include "support/hostile_loom/compile.h"

#include <algorithm>
#include <set>
#include <string_view>

#include "support/hsaco_writer.h"

namespace kc::test::hostile {
namespace {

// Replaced in a copy of the library's file, so that another variant is another file of other output.
// Volatile: the compiler must not know it.
constexpr size_t kVariantSize = 32;
volatile const char g_variant[kVariantSize] = "kc-hostile-variant=1";

constexpr uint32_t kRequireResolved = 1;

// FNV-1a with the length before each part: not a digest, but other input gives other code.
class Hash {
 public:
  Hash& add(std::string_view text) {
    number(text.size());
    for (const char c : text) byte(static_cast<uint8_t>(c));
    return *this;
  }
  Hash& number(uint64_t value) {
    for (int i = 0; i < 8; ++i) byte(static_cast<uint8_t>(value >> 8 * i));
    return *this;
  }
  uint64_t value() const { return value_; }

 private:
  void byte(uint8_t value) { value_ = (value_ ^ value) * 0x100000001B3U; }
  uint64_t value_ = 0xCBF29CE484222325U;
};

std::string variant() {
  std::string out;
  for (size_t i = 0; i < kVariantSize && g_variant[i] != '\0'; ++i) out += g_variant[i];
  return out;
}

// splitmix64
base::Bytes code_bytes(uint64_t seed, size_t size) {
  base::Bytes out;
  while (out.size() < size) {
    seed += 0x9E3779B97F4A7C15U;
    uint64_t word = (seed ^ seed >> 30) * 0xBF58476D1CE4E5B9U;
    word = (word ^ word >> 27) * 0x94D049BB133111EBU;
    word ^= word >> 31;
    for (int i = 0; i < 8; ++i) out.push_back(static_cast<uint8_t>(word >> 8 * i));
  }
  out.resize(size);
  return out;
}

const IndexFile* find_definition(const Index& index, const std::string& symbol) {
  for (const IndexFile& file : index.files) {
    if (file.text->definitions.contains(symbol)) return &file;
  }
  return nullptr;
}

// The files that `root` reaches, its own first, the others in the order of the index.
std::vector<IndexFile> reached(const Index& index, const IndexFile& root) {
  std::set<const ModuleText*> seen = {root.text.get()};
  std::vector<const ModuleText*> open = {root.text.get()};
  while (!open.empty()) {
    const ModuleText* text = open.back();
    open.pop_back();
    for (const std::string& symbol : text->references) {
      const IndexFile* home = find_definition(index, symbol);
      if (home != nullptr && seen.insert(home->text.get()).second) open.push_back(home->text.get());
    }
  }
  std::vector<IndexFile> out = {root};
  for (const IndexFile& file : index.files) {
    if (file.text != root.text && seen.contains(file.text.get())) out.push_back(file);
  }
  return out;
}

// As the real step: each given value that is declared is checked, each key that is read must have one.
void configure(const ConfigOptions& config, Module& module, Result& result) {
  std::map<std::string, Declaration> declared;
  for (const IndexFile& file : module.files) {
    declared.insert(file.text->configuration.begin(), file.text->configuration.end());
  }
  for (const auto& [key, declaration] : declared) {
    if (declaration.default_value) module.values[key] = *declaration.default_value;
  }
  for (size_t i = 0; i < config.count; ++i) {
    const std::string key = text_of(config.bindings[i].key);
    const auto found = declared.find(key);
    if (found == declared.end()) continue;  // as the real one: without a word
    const std::string value = text_of(config.bindings[i].value);
    if (const auto problem = check_value(key, found->second, value)) result.add(*problem, nullptr);
    module.values[key] = value;
  }
  if ((config.flags & kRequireResolved) == 0) return;
  for (const IndexFile& file : module.files) {
    for (const std::string& key : file.text->reads) {
      if (module.values.contains(key)) continue;
      result.add({"CONFIG/INVALID", "unresolved config '@" + key +
                                        "' remains for final compilation (1 unresolved config total)"},
                 nullptr);
      return;
    }
  }
}

uint64_t seed_of(const Module& module, const Profile& profile) {
  const base::Bytes bytes = serialized(module);
  Hash hash;
  hash.add(base::as_text(bytes))
      .add(module.root)
      .add(profile.target)
      .number(profile.processor_mode)
      .add(variant());
  return hash.value() ^ poison();
}

HsacoKernel kernel_of(const Module& module, const Profile& profile, const Directives& orders) {
  HsacoKernel out;
  out.symbol = orders.find("symbol").value_or(module.export_name);
  out.vgprs = orders.number("registers").value_or(8);
  out.sgprs = orders.number("sgprs").value_or(16);
  out.vgpr_spills = orders.number("spills");
  if (out.vgpr_spills) out.sgpr_spills = 0;
  out.private_segment = orders.number("local").value_or(0);
  out.group_segment = orders.number("shared").value_or(0);
  out.wave_size = orders.number("wave").value_or(profile.target.starts_with("gfx9") ? 64 : 32);
  out.arguments = {{.name = "n", .offset = 0, .size = 8, .value_kind = "by_value"},
                   {.name = "binding0", .offset = 8},
                   {.name = "binding1", .offset = 16}};
  out.argument_bytes = 24;
  if (const auto found = module.values.find("tuner.workgroup_size"); found != module.values.end()) {
    out.required_block = {static_cast<uint32_t>(std::atoi(found->second.c_str())), 1, 1};
    out.max_threads = out.required_block[0];
  }
  out.text = code_bytes(seed_of(module, profile), orders.number("size").value_or(192));
  return out;
}

}  // namespace

std::string text_of(const Source& source) {
  const std::string_view contents = base::as_text(source.contents);
  return std::string(contents.substr(contents.starts_with(kBytecodeMagic) ? kBytecodeMagic.size() : 0));
}

void link_root(const Index& index, const std::string& root, const ConfigOptions& config, Module& out,
               Result& result) {
  const IndexFile* home = find_definition(index, root);
  if (home == nullptr) {
    result.add({"LINK/PLAN", "root symbol '@" + root + "' was not found"}, nullptr);
    return;
  }
  out.root = root;
  const auto exported = home->text->exports.find(root);
  out.export_name = exported == home->text->exports.end() ? root : exported->second;
  out.files = reached(index, *home);
  configure(config, out, result);
}

base::Bytes serialized(const Module& module) {
  std::string out(kBytecodeMagic);
  std::set<std::string> reads;
  for (const IndexFile& file : module.files) reads.insert(file.text->reads.begin(), file.text->reads.end());
  for (const auto& [key, value] : module.values) {
    if (reads.contains(key)) out += "config.def @" + key + " = " + value + " : index\n";
  }
  for (const IndexFile& file : module.files)
    out += "// " + file.text->identifier + "\n" + file.text->text + "\n";
  return {out.begin(), out.end()};
}

std::optional<Problem> unresolved_call(const Module& module) {
  std::set<std::string> defined;
  for (const IndexFile& file : module.files) {
    defined.insert(file.text->definitions.begin(), file.text->definitions.end());
  }
  const ModuleText& text = *module.files[0].text;
  for (const std::string& symbol : text.references) {
    const size_t at = text.text.find("func.call @" + symbol);
    if (defined.contains(symbol) || at == std::string::npos) continue;
    const auto before = std::string_view(text.text).substr(0, at);
    return Problem{"LOWERING/044",
                   "inline-callables cannot inline func.call to @" + symbol + ": callee_missing_body",
                   static_cast<uint32_t>(std::ranges::count(before, '\n') + 1),
                   static_cast<uint32_t>(at - (before.rfind('\n') + 1) + 1)};
  }
  return std::nullopt;
}

std::optional<base::Bytes> code_object(const Module& module, const Profile& profile,
                                       const Occasion& occasion) {
  const Directives none;
  const Directives& said = module.files[0].text->directives;
  const Directives& orders = is_meant(said, occasion) ? said : none;
  Hsaco hsaco;
  // What an object was made for it says without the features of `any`.
  hsaco.target = orders.find("processor").value_or(profile.target);
  hsaco.kernels = {kernel_of(module, profile, orders)};
  base::Bytes out = write_hsaco(hsaco);
  const std::string form = orders.find("output").value_or("whole");
  if (form == "none") return std::nullopt;
  if (form == "empty") out.clear();
  if (form == "garbage") out.assign(512, 0xA5);
  if (form == "truncated") out.resize(out.size() / 2);
  return out;
}

std::string report(const Module& module, const Profile& profile, bool is_failed) {
  return std::string(R"({"kind":"loom.compile_report","schema_version":0,"status":{"code":)") +
         (is_failed ? R"(3,"name":"INVALID_ARGUMENT"},"entry":")" : R"(0,"name":"OK"},"entry":")") +
         module.export_name + R"(","target_key":")" + profile.target +
         R"(","allocation":{"spill_count":0},"emission":{"code_byte_count":192,"instruction_count":48}})" +
         "\n";
}

bool has_features(const std::string& target) {
  return target == "gfx942" || target == "gfx950" || target == "gfx9-4-generic";
}

bool knows_target(const std::string& target) {
  return target != "gfx90a" && target != "gfx1036" && hsaco_flags(target) != 0;
}

}  // namespace kc::test::hostile

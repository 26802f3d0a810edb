// Fields that several maps of a manifest have: paths, options, limits, targets.
#include <string_view>
#include <unordered_map>
#include <utility>

#include "manifest/draft.h"
#include "manifest/source_lists.h"

namespace kc::manifest {
namespace {

class LimitsReader {
 public:
  explicit LimitsReader(Faults& faults) : faults_(faults) {}

  LimitsDraft read(const std::vector<Field>& fields) {
    static constexpr Handler<LimitsReader> kHandlers[] = {
        {"registers", &LimitsReader::registers}, {"local_memory", &LimitsReader::local_memory},
        {"spills", &LimitsReader::spills},       {"shared_memory", &LimitsReader::shared_memory},
        {"code", &LimitsReader::code},
    };
    read_fields<LimitsReader>(fields, kHandlers, *this, "limits", faults_);
    return draft_;
  }

 private:
  void registers(const Field& field) { draft_.limits.registers = read_number(field, 0, UINT32_MAX, faults_); }
  void spills(const Field& field) {
    draft_.limits.spills = read_number(field, 0, UINT32_MAX, faults_);
    draft_.spills_place = field.place;
  }
  void local_memory(const Field& field) { size(field, draft_.limits.local_memory); }
  void shared_memory(const Field& field) { size(field, draft_.limits.shared_memory); }
  void code(const Field& field) { size(field, draft_.limits.code); }
  void size(const Field& field, std::optional<uint64_t>& out) {
    out = read_size(field, 0, UINT64_MAX, faults_);
  }

  Faults& faults_;
  LimitsDraft draft_;
};

// The same for two ways to write one target: features may stand in any order.
std::string identity_of(const target::Target& target) {
  return util::format("{}{}:{}:{}", target.processor, target.suffix != 0 ? std::string(1, target.suffix) : "",
                      static_cast<int>(target.sramecc), static_cast<int>(target.xnack));
}

}  // namespace

std::optional<Text> read_path(const Field& field, Faults& faults) {
  std::optional<Text> text = read_text(field, faults);
  if (text && text->text.empty()) {
    faults.error(text->place, field.label() + " is empty; expected a path");
    return std::nullopt;
  }
  return text;
}

std::optional<std::vector<Text>> read_paths(const Field& field, std::string_view like, Faults& faults) {
  const size_t before = faults.count();
  std::vector<Text> out;
  const auto read = [&](const Field& from) {
    std::optional<Text> text = read_text(from, faults);
    if (text && check_path(*text, from.label(), faults)) out.push_back(std::move(*text));
  };
  if (field.value.is_sequence()) {
    if (const std::optional<std::vector<Field>> items = read_list(field, like, faults)) {
      for (const Field& item : *items) read(item);
    }
  } else if (field.value.is_map()) {
    faults.error(field.value.place(), field.label() + " must be a path or a list of paths, not a map");
  } else {
    read(field);
  }
  if (faults.count() != before) return std::nullopt;
  return out;
}

std::optional<std::vector<NamedText>> read_options(const Field& field, Faults& faults) {
  const size_t before = faults.count();
  std::vector<NamedText> out;
  if (const std::optional<std::vector<Field>> pairs = read_map(field, faults)) {
    for (const Field& pair : *pairs) {
      if (std::optional<Text> value = read_text(pair, faults)) {
        out.push_back({{std::string(pair.name), pair.place}, std::move(*value)});
      }
    }
  }
  if (faults.count() != before) return std::nullopt;
  return out;
}

std::optional<LimitsDraft> read_limits(const Field& field, Faults& faults) {
  const std::optional<std::vector<Field>> fields = read_map(field, faults);
  if (!fields) return std::nullopt;
  const size_t before = faults.count();
  LimitsDraft out = LimitsReader(faults).read(*fields);
  if (faults.count() != before) return std::nullopt;
  return out;
}

std::optional<std::vector<TargetDraft>> read_targets(const Field& field, Faults& faults) {
  const std::optional<std::vector<Field>> items = read_list(field, "[sm_90, gfx942]", faults);
  if (!items) return std::nullopt;
  const size_t before = faults.count();
  std::vector<TargetDraft> out;
  std::unordered_map<std::string, YamlPlace> seen;
  for (const Field& item : *items) {
    const std::optional<Text> text = read_text(item, faults);
    if (!text) continue;
    base::Result<target::Target> target = target::parse_target(text->text);
    if (!target) {
      faults.error(text->place, target.error().message, target.error().hint);
      continue;
    }
    const auto [found, is_new] = seen.emplace(identity_of(*target), text->place);
    if (!is_new) {
      faults.error(text->place,
                   util::format("the target {} is listed twice, first at line {}, column {}",
                                in_quotes(text->text), found->second.line, found->second.column));
      continue;
    }
    out.push_back({std::move(*target), text->place});
  }
  if (faults.count() != before) return std::nullopt;
  return out;
}

}  // namespace kc::manifest

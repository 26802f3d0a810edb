#include "manifest/fields.h"

#include <algorithm>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "manifest/names.h"
#include "manifest/plan.h"

namespace kc::manifest {
namespace {

using config::kind_name;
using config::YamlPair;

// False, and reported, unless the value is of `kind`. `expected` completes "must be".
bool check_kind(const Field& field, config::YamlKind kind, std::string_view expected, Faults& faults) {
  if (field.value.kind() == kind) return true;
  if (field.value.kind() == config::YamlKind::kNull) {
    faults.error(field.place, field.label() + " has no value", util::format("expected {}", expected));
  } else {
    faults.error(field.value.place(), util::format("{} must be {}, not {}", field.label(), expected,
                                                   kind_name(field.value.kind())));
  }
  return false;
}

// What `<<` gives: the pairs of one map or of several, less the keys that are there already. The reader has
// counted every alias as all that it stands for, which bounds this.
void merge(const Field& field, std::unordered_set<std::string_view>& seen, std::vector<Field>& out,
           Faults& faults) {
  constexpr std::string_view kExpected = "a map or a list of maps";
  const auto take = [&](const Field& from) {
    if (!check_kind(from, config::YamlKind::kMap, kExpected, faults)) return;
    const std::optional<std::vector<Field>> pairs = read_map(from, faults);
    for (const Field& pair : *pairs) {
      if (seen.insert(pair.name).second) out.push_back(pair);
    }
  };
  if (!field.value.is_sequence()) return take(field);
  for (const YamlNode item : field.value.items()) take({field.name, item.place(), item, true});
}

}  // namespace

std::string Field::label() const {
  return is_item ? "an item of " + in_quotes(name) : in_quotes(name);
}

std::optional<Text> read_text(const Field& field, Faults& faults) {
  if (!check_kind(field, config::YamlKind::kScalar, "a value", faults)) return std::nullopt;
  return Text{std::string(field.value.text()), field.value.place()};
}

std::optional<bool> read_boolean(const Field& field, Faults& faults) {
  constexpr std::string_view kChoices[] = {"true", "false"};
  const std::optional<size_t> choice = read_choice(field, kChoices, faults);
  if (!choice) return std::nullopt;
  return *choice == 0;
}

std::optional<size_t> read_choice(const Field& field, std::span<const std::string_view> choices,
                                  Faults& faults) {
  std::string expected;
  for (size_t i = 0; i < choices.size(); ++i) {
    if (i != 0) expected += i + 1 == choices.size() ? " or " : ", ";
    expected += choices[i];
  }
  if (!check_kind(field, config::YamlKind::kScalar, expected, faults)) return std::nullopt;
  const auto found = std::find(choices.begin(), choices.end(), field.value.text());
  if (found == choices.end()) {
    faults.error(field.value.place(), util::format("{} must be {}, not {}", field.label(), expected,
                                                   in_quotes(field.value.text())));
    return std::nullopt;
  }
  return static_cast<size_t>(found - choices.begin());
}

std::optional<uint64_t> read_number(const Field& field, uint64_t least, uint64_t most, Faults& faults) {
  const std::string expected = util::format("a whole number from {} to {}", least, most);
  if (!check_kind(field, config::YamlKind::kScalar, expected, faults)) return std::nullopt;
  const std::optional<uint64_t> number = util::parse_number(field.value.text(), least, most);
  if (!number) {
    faults.error(field.value.place(), util::format("{} must be {}, not {}", field.label(), expected,
                                                   in_quotes(field.value.text())));
  }
  return number;
}

std::optional<uint64_t> read_size(const Field& field, uint64_t least, uint64_t most, Faults& faults) {
  constexpr std::string_view kExpected = "a size such as 4096, 64KiB or 2M";
  if (!check_kind(field, config::YamlKind::kScalar, kExpected, faults)) return std::nullopt;
  const std::optional<uint64_t> size = util::parse_size(field.value.text());
  if (!size) {
    faults.error(field.value.place(), util::format("{} must be {}, not {}", field.label(), kExpected,
                                                   in_quotes(field.value.text())));
  } else if (*size < least || *size > most) {
    faults.error(field.value.place(),
                 util::format("{} must be from {} to {}, not {}", field.label(), util::size_text(least),
                              util::size_text(most), in_quotes(field.value.text())));
    return std::nullopt;
  }
  return size;
}

std::optional<util::Nanoseconds> read_duration(const Field& field, Faults& faults) {
  constexpr std::string_view kExpected = "a duration such as 500ms, 60s, 10m or 2h";
  if (!check_kind(field, config::YamlKind::kScalar, kExpected, faults)) return std::nullopt;
  const std::optional<util::Nanoseconds> duration = util::parse_duration(field.value.text());
  if (!duration || duration->count() == 0) {
    faults.error(field.value.place(), util::format("{} must be {}, more than 0 and at most 10 years, not {}",
                                                   field.label(), kExpected, in_quotes(field.value.text())));
    return std::nullopt;
  }
  return duration;
}

std::optional<std::vector<Field>> read_list(const Field& field, std::string_view like, Faults& faults) {
  const std::string expected = util::format("a list like {}", like);
  if (!check_kind(field, config::YamlKind::kSequence, expected, faults)) return std::nullopt;
  std::vector<Field> out;
  out.reserve(field.value.size());
  for (const YamlNode item : field.value.items()) out.push_back({field.name, item.place(), item, true});
  if (out.empty()) {
    faults.error(field.value.place(), field.label() + " is an empty list",
                 util::format("expected {}", expected));
    return std::nullopt;
  }
  return out;
}

std::optional<std::vector<Field>> read_map(const Field& field, Faults& faults) {
  if (!check_kind(field, config::YamlKind::kMap, "a map", faults)) return std::nullopt;
  std::vector<Field> out;
  out.reserve(field.value.size());
  std::vector<Field> merges;
  std::unordered_set<std::string_view> seen;
  for (const YamlPair pair : field.value.pairs()) {
    if (!pair.key.is_scalar()) continue;
    Field read{pair.key.text(), pair.key.place(), pair.value};
    // The reader reported a second one.
    if (!seen.insert(read.name).second) continue;
    const bool is_merge = pair.key.is_plain() && read.name == "<<";
    (is_merge ? merges : out).push_back(read);
  }
  for (const Field& from : merges) merge(from, seen, out, faults);
  return out;
}

bool check_configuration_key(const Field& field, Faults& faults) {
  if (is_configuration_key(field.name)) return true;
  faults.error(field.place, in_quotes(field.name) + " is not a configuration key",
               "letters, digits, _ and ., at most 128 bytes, not a digit first");
  return false;
}

std::optional<Text> read_configuration_value(const Field& field, Faults& faults) {
  std::optional<Text> value = read_text(field, faults);
  if (value && value->text.size() > kMaxValueBytes) {
    faults.error(value->place, util::format("the value of {} has {} bytes; at most {} are allowed",
                                            in_quotes(field.name), value->text.size(), kMaxValueBytes));
    return std::nullopt;
  }
  return value;
}

bool check_key(const Field& field, KeyRule rule, Faults& faults) {
  if (!check_configuration_key(field, faults)) return false;
  if (rule == KeyRule::kConfiguration && field.name.starts_with(kOptionPrefix)) {
    faults.error(field.place, in_quotes(field.name) + " is an option, not a configuration key",
                 "what is the same for every specialization belongs in `options`");
    return false;
  }
  if (rule == KeyRule::kSpecialization && !is_specialization_key(field.name)) {
    faults.error(field.place, in_quotes(field.name) + " names no option",
                 "the name of an option stands behind `option.`");
    return false;
  }
  return true;
}

std::vector<NamedText> read_pairs(const Field& field, KeyRule rule, Faults& faults) {
  const std::optional<std::vector<Field>> pairs = read_map(field, faults);
  if (!pairs) return {};
  if (pairs->empty()) {
    faults.error(field.value.place(), field.label() + " is an empty map", "expected { key: value, ... }");
  }
  std::vector<NamedText> out;
  out.reserve(pairs->size());
  for (const Field& pair : *pairs) {
    const bool key = check_key(pair, rule, faults);
    std::optional<Text> value = read_configuration_value(pair, faults);
    if (!key) continue;
    if (!value) value = Text{{}, pair.value.place()};
    out.push_back({{std::string(pair.name), pair.place}, std::move(*value)});
  }
  return out;
}

std::optional<std::vector<NamedText>> read_configuration(const Field& field, KeyRule rule, Faults& faults) {
  const size_t before = faults.count();
  std::vector<NamedText> out = read_pairs(field, rule, faults);
  if (faults.count() != before) return std::nullopt;
  return out;
}

std::string report_unknown_key(const Field& field, std::string_view where, std::span<const std::string> known,
                               Faults& faults) {
  const std::optional<std::string> near = util::nearest(field.name, known);
  faults.error(field.place, util::format("unknown key {} in {}", in_quotes(field.name), where),
               near ? util::format("did you mean {}?", in_quotes(*near))
                    : "known keys: " + util::listed(known, known.size()));
  return near.value_or("");
}

}  // namespace kc::manifest

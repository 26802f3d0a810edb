// `specializations`: matrix, include, exclude, table, default.
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "manifest/draft.h"

namespace kc::manifest {
namespace {

class SpecializationsReader {
 public:
  explicit SpecializationsReader(Faults& faults) : faults_(faults) {}

  SpecializationsDraft read(const Field& field, const std::vector<Field>& fields) {
    static constexpr Handler<SpecializationsReader> kHandlers[] = {
        {"matrix", &SpecializationsReader::matrix},   {"include", &SpecializationsReader::include},
        {"exclude", &SpecializationsReader::exclude}, {"default", &SpecializationsReader::default_selection},
        {"table", &SpecializationsReader::table},
    };
    draft_.place = field.place;
    const size_t before = faults_.count();
    read_fields<SpecializationsReader>(fields, kHandlers, *this, "specializations", faults_);
    const bool has_some = draft_.matrix.written || draft_.include.written || draft_.table.written;
    if (!has_some && faults_.count() == before) {
      faults_.error(field.place, "\"specializations\" has none of \"matrix\", \"include\" and \"table\"");
    } else if (!draft_.matrix.written && draft_.exclude) {
      faults_.error(draft_.exclude->front().place,
                    "\"exclude\" without \"matrix\": there is nothing to leave out");
    }
    if (draft_.matrix && draft_.exclude) check_excludes();
    return std::move(draft_);
  }

 private:
  void matrix(const Field& field) {
    draft_.matrix_place = field.place;
    const std::optional<std::vector<Field>> pairs = read_map(field, faults_);
    const size_t before = faults_.count();
    if (pairs && pairs->empty()) {
      faults_.error(field.value.place(), "\"matrix\" is an empty map", "expected { key: [value, ...], ... }");
    }
    std::vector<Axis> axes;
    for (const Field& pair : pairs.value_or(std::vector<Field>())) {
      const bool key = check_key(pair, KeyRule::kSpecialization, faults_);
      std::vector<Text> values = axis_values(pair);
      if (key) axes.push_back({{std::string(pair.name), pair.place}, std::move(values)});
    }
    const bool good = pairs && faults_.count() == before;
    draft_.matrix.set(good ? std::optional(std::move(axes)) : std::nullopt);
  }

  std::vector<Text> axis_values(const Field& axis) {
    std::vector<Text> values;
    std::unordered_map<std::string, YamlPlace> seen;
    const std::optional<std::vector<Field>> items = read_list(axis, "[64, 128]", faults_);
    for (const Field& item : items.value_or(std::vector<Field>())) {
      std::optional<Text> value = read_configuration_value(item, faults_);
      if (!value) continue;
      const auto [found, is_new] = seen.emplace(value->text, value->place);
      if (!is_new) {
        faults_.error(value->place,
                      util::format("the value {} of {} is listed twice, first at line {}, column {}",
                                   in_quotes(value->text), in_quotes(axis.name), found->second.line,
                                   found->second.column));
      }
      values.push_back(std::move(*value));
    }
    return values;
  }

  void include(const Field& field) { draft_.include.set(selections(field)); }
  void exclude(const Field& field) { draft_.exclude.set(selections(field)); }
  void table(const Field& field) { draft_.table.set(read_path(field, faults_)); }
  void default_selection(const Field& field) { draft_.default_selection.set(selection(field)); }

  std::optional<std::vector<Selection>> selections(const Field& field) {
    const std::optional<std::vector<Field>> items = read_list(field, "[{ key: value }]", faults_);
    if (!items) return std::nullopt;
    const size_t before = faults_.count();
    std::vector<Selection> out;
    out.reserve(items->size());
    for (const Field& item : *items) {
      if (std::optional<Selection> read = selection(item)) out.push_back(std::move(*read));
    }
    if (faults_.count() != before) return std::nullopt;
    return out;
  }

  std::optional<Selection> selection(const Field& field) {
    std::optional<std::vector<NamedText>> pairs =
        read_configuration(field, KeyRule::kSpecialization, faults_);
    if (!pairs) return std::nullopt;
    return Selection{field.value.place(), std::move(*pairs)};
  }

  // An exclude whose keys and values are all in the matrix leaves something out: a matrix is a product.
  void check_excludes() {
    std::unordered_map<std::string_view, const Axis*> axes;
    std::unordered_map<const Axis*, std::unordered_set<std::string_view>> values;
    for (const Axis& axis : *draft_.matrix) {
      axes.emplace(axis.key.text, &axis);
      for (const Text& value : axis.values) values[&axis].insert(value.text);
    }
    for (const Selection& exclude : *draft_.exclude) {
      for (const NamedText& pair : exclude.pairs) {
        const auto axis = axes.find(pair.key.text);
        if (axis == axes.end()) {
          faults_.error(
              pair.key.place,
              util::format("this exclude matches nothing: {} is no key of the matrix",
                           in_quotes(pair.key.text)),
              near(pair.key.text, *draft_.matrix, [](const Axis& candidate) { return candidate.key.text; }));
        } else if (!values[axis->second].contains(pair.value.text)) {
          faults_.error(
              pair.value.place,
              util::format("this exclude matches nothing: {} has no value {} in the matrix",
                           in_quotes(pair.key.text), in_quotes(pair.value.text)),
              near(pair.value.text, axis->second->values, [](const Text& text) { return text.text; }));
        }
      }
    }
  }

  // "did you mean" over a list whose items `name_of` names.
  template <typename T, typename NameOf>
  std::string near(std::string_view text, const std::vector<T>& list, NameOf&& name_of) const {
    // A search through more would cost more than the hint is worth.
    constexpr size_t kMost = 1000;
    if (!faults_.wants_hints() || list.size() > kMost) return {};
    std::vector<std::string> names;
    for (const T& item : list) names.push_back(name_of(item));
    return util::did_you_mean(text, names);
  }

  Faults& faults_;
  SpecializationsDraft draft_;
};

}  // namespace

std::optional<SpecializationsDraft> read_specializations(const Field& field, Faults& faults) {
  const std::optional<std::vector<Field>> fields = read_map(field, faults);
  if (!fields) return std::nullopt;
  const size_t before = faults.count();
  SpecializationsDraft draft = SpecializationsReader(faults).read(field, *fields);
  if (faults.count() != before) return std::nullopt;
  return draft;
}

}  // namespace kc::manifest

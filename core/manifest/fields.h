// Reading the fields of a manifest's maps: from YAML nodes to typed values, each fault reported where it is.
// A function that gives nothing has reported why.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "config/yaml_document.h"
#include "manifest/faults.h"
#include "util/text.h"
#include "util/time.h"

namespace kc::manifest {

using config::YamlNode;

/// Text as written and where.
struct Text {
  std::string text;
  YamlPlace place;
};
/// A key and its value.
struct NamedText {
  Text key;
  Text value;
};

/// One pair of a map, or one item of a list.
struct Field {
  std::string_view name;  // the key, in the document; for an item, the key that its list belongs to
  YamlPlace place;        // of the key or the item
  YamlNode value;
  bool is_item = false;

  /// `"targets"` or `an item of "targets"`, for messages.
  std::string label() const;
};

/// A value that was not written, was written wrongly (and reported), or is there.
template <typename T>
struct Slot {
  bool written = false;
  std::optional<T> value;

  void set(std::optional<T> read) {
    written = true;
    value = std::move(read);
  }
  bool is_faulty() const { return written && !value; }
  explicit operator bool() const { return value.has_value(); }
  const T& operator*() const { return *value; }
  T& operator*() { return *value; }
  const T* operator->() const { return &*value; }
  T* operator->() { return &*value; }
};

std::optional<Text> read_text(const Field& field, Faults& faults);
/// A whole number in [least, most].
std::optional<uint64_t> read_number(const Field& field, uint64_t least, uint64_t most, Faults& faults);
std::optional<uint64_t> read_size(const Field& field, uint64_t least, uint64_t most, Faults& faults);
/// More than nothing, at most 10 years.
std::optional<util::Nanoseconds> read_duration(const Field& field, Faults& faults);
/// The items of a list that has some; `like` is an example for the message: `[sm_90, gfx942]`.
std::optional<std::vector<Field>> read_list(const Field& field, std::string_view like, Faults& faults);
/// The pairs of a map in the order written, those that `<<` merges behind them. Keys that are no scalar, or
/// are there a second time, were reported by the reader and are left out.
std::optional<std::vector<Field>> read_map(const Field& field, Faults& faults);
/// A map of configuration keys to values, both by their grammar, at least one.
std::optional<std::vector<NamedText>> read_configuration(const Field& field, Faults& faults);
/// One value by the rules of configuration values.
std::optional<Text> read_configuration_value(const Field& field, Faults& faults);
/// False, and reported, when `field` names no configuration key.
bool check_configuration_key(const Field& field, Faults& faults);

/// A known key of a map and the member function that reads it. Without one the key is of a later version of
/// kc and is refused as that, and suggested to nobody.
template <typename Parser>
struct Handler {
  std::string_view key;
  void (Parser::*read)(const Field& field) = nullptr;
};

void report_unsupported(YamlPlace place, std::string_view what, Faults& faults);
void report_unknown_key(const Field& field, std::string_view where, std::span<const std::string> known,
                        Faults& faults);

/// Hands each field to the handler of its key. `where` completes "unknown key ... in": "a kernel".
template <typename Parser>
void read_fields(const std::vector<Field>& fields, std::span<const Handler<Parser>> handlers, Parser& parser,
                 std::string_view where, Faults& faults) {
  for (const Field& field : fields) {
    const Handler<Parser>* found = nullptr;
    for (const Handler<Parser>& handler : handlers) {
      if (handler.key == field.name) found = &handler;
    }
    if (found == nullptr) {
      std::vector<std::string> known;
      for (const Handler<Parser>& handler : handlers) {
        if (handler.read != nullptr) known.emplace_back(handler.key);
      }
      report_unknown_key(field, where, known, faults);
    } else if (found->read == nullptr) {
      report_unsupported(field.place, in_quotes(field.name), faults);
    } else {
      (parser.*found->read)(field);
    }
  }
}

}  // namespace kc::manifest

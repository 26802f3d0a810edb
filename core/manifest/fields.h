// Reading the fields of a manifest's maps: from YAML nodes to typed values, each fault reported where it is.
// A function that gives nothing has reported why.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_set>
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
/// `true` or `false`.
std::optional<bool> read_boolean(const Field& field, Faults& faults);
/// One of a few words; gives its index. `choices` are at least two.
std::optional<size_t> read_choice(const Field& field, std::span<const std::string_view> choices,
                                  Faults& faults);
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
/// Which keys a map of configuration values takes.
enum class KeyRule : uint8_t {
  kConfiguration,   // configuration keys, but none that begins with `option.`: options have maps of their own
  kSpecialization,  // configuration keys, those beyond `option.` too
};
/// False, and reported, when `field` has a key against the rule.
bool check_key(const Field& field, KeyRule rule, Faults& faults);
/// A map of such keys to configuration values, at least one; `read_pairs` gives what is right of it: every
/// pair with a good key, a wrong value as an empty one.
std::vector<NamedText> read_pairs(const Field& field, KeyRule rule, Faults& faults);
std::optional<std::vector<NamedText>> read_configuration(const Field& field, KeyRule rule, Faults& faults);
/// One value by the rules of configuration values: at most kMaxValueBytes.
std::optional<Text> read_configuration_value(const Field& field, Faults& faults);
/// False, and reported, when the name of `field` has not the grammar of configuration keys.
bool check_configuration_key(const Field& field, Faults& faults);

/// A key of a map and the member function that reads its value.
template <typename Parser>
struct Handler {
  std::string_view key;
  void (Parser::*read)(const Field& field);
};

/// The known key that was probably meant; empty when none is near.
std::string report_unknown_key(const Field& field, std::string_view where, std::span<const std::string> known,
                               Faults& faults);

/// Known keys that unknown ones were probably meant to be: that such a key is missing is no fault of its own.
using Misspelled = std::unordered_set<std::string>;

/// Hands each field to the handler of its key. `where` completes "unknown key ... in": "a kernel".
template <typename Parser>
Misspelled read_fields(const std::vector<Field>& fields, std::span<const Handler<Parser>> handlers,
                       Parser& parser, std::string_view where, Faults& faults) {
  Misspelled out;
  for (const Field& field : fields) {
    const Handler<Parser>* found = nullptr;
    for (const Handler<Parser>& handler : handlers) {
      if (handler.key == field.name) found = &handler;
    }
    if (found == nullptr) {
      std::vector<std::string> known;
      for (const Handler<Parser>& handler : handlers) known.emplace_back(handler.key);
      out.insert(report_unknown_key(field, where, known, faults));
    } else {
      (parser.*found->read)(field);
    }
  }
  return out;
}

}  // namespace kc::manifest

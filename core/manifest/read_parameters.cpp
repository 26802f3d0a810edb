// `parameters` of a cuTile kernel. The words and what they hold are those of ArrayConstraint and
// ScalarConstraint in cuda.tile.compilation 1.7; a list of arrays, a tuple and a tensor map have no words
// here.
#include <algorithm>
#include <iterator>
#include <string_view>
#include <utility>

#include "manifest/draft.h"
#include "manifest/names.h"

namespace kc::manifest {
namespace {

// More dimensions than any array has.
constexpr uint64_t kMaxDimensions = 64;

enum class WordKind {
  kName,         // of a type
  kIndexType,    // int32, uint32 or int64
  kDimensions,   // a number
  kBoolean,      //
  kFactor,       // a number from 1
  kFactors,      // one for all dimensions, or a list with one for each
  kBounds,       // an integer or `none` for all dimensions, or a list
  kConstants,    // a list of integers and `none`
  kLengths,      // a list of numbers and `none`
  kAliasGroups,  // a list of names, may be empty
};

struct Word {
  std::string_view name;
  WordKind kind;
};

constexpr Word kWords[] = {
    {"dtype", WordKind::kName},
    {"ndim", WordKind::kDimensions},
    {"index_dtype", WordKind::kIndexType},
    {"stride_lower_bound_incl", WordKind::kBounds},
    {"alias_groups", WordKind::kAliasGroups},
    {"may_alias_internally", WordKind::kBoolean},
    {"stride_constant", WordKind::kConstants},
    {"shape_constant", WordKind::kLengths},
    {"stride_divisible_by", WordKind::kFactors},
    {"shape_divisible_by", WordKind::kFactors},
    {"base_addr_divisible_by", WordKind::kFactor},
};

// [A-Za-z_][A-Za-z0-9_]{0,127}, as Python names things.
bool is_name(std::string_view text) {
  return is_configuration_key(text) && text.find('.') == std::string_view::npos;
}

// What one item of a word may be, in words and as a test.
struct ItemRule {
  std::string_view expected;
  bool (*holds)(std::string_view text);
};

bool is_integer(std::string_view text, uint64_t least) {
  return util::parse_number(text, least, INT64_MAX).has_value();
}

constexpr ItemRule kFactorRule{"a whole number from 1",
                               [](std::string_view text) { return is_integer(text, 1); }};
constexpr ItemRule kLengthRule{"a whole number or none",
                               [](std::string_view text) { return text == "none" || is_integer(text, 0); }};
constexpr ItemRule kIntegerRule{"an integer or none", [](std::string_view text) {
                                  if (text == "none") return true;
                                  if (text.starts_with('-')) text.remove_prefix(1);
                                  return is_integer(text, 0);
                                }};
constexpr ItemRule kNameRule{"a name of letters, digits and _", is_name};

class ParameterReader {
 public:
  ParameterReader(const Field& parameter, Faults& faults) : parameter_(parameter), faults_(faults) {}

  std::optional<ParameterDraft> read() {
    const size_t before = faults_.count();
    ParameterDraft out;
    out.name = {std::string(parameter_.name), parameter_.place};
    if (!is_name(parameter_.name)) {
      faults_.error(parameter_.place, in_quotes(parameter_.name) + " cannot be the name of a parameter",
                    "letters, digits and _, at most 128 bytes, not a digit first");
    }
    if (parameter_.value.is_scalar()) {
      out.constant = parameter_.value.text() == "constant";
      if (!out.constant) {
        faults_.error(
            parameter_.value.place(),
            util::format("the parameter {} must be a map like {{ dtype: float16, ndim: 2 }} or the word "
                         "constant, not {}",
                         in_quotes(parameter_.name), in_quotes(parameter_.value.text())));
      }
    } else if (const std::optional<std::vector<Field>> words = read_map(parameter_, faults_)) {
      out.words = read_words(*words);
    }
    if (faults_.count() != before) return std::nullopt;
    return out;
  }

 private:
  Pairs read_words(const std::vector<Field>& words) {
    Pairs out;
    Misspelled misspelled;
    bool has_type = false;
    bool is_array = false;
    const Field* of_array = nullptr;  // the first word that only an array has
    for (const Field& word : words) {
      const auto known = std::find_if(std::begin(kWords), std::end(kWords),
                                      [&](const Word& candidate) { return candidate.name == word.name; });
      if (known == std::end(kWords)) {
        misspelled.insert(report_unknown_word(word));
        continue;
      }
      has_type = has_type || word.name == "dtype";
      is_array = is_array || word.name == "ndim";
      if (word.name != "dtype" && of_array == nullptr) of_array = &word;
      if (std::optional<std::string> value = read_word(word, known->kind)) {
        out.emplace_back(word.name, std::move(*value));
      }
    }
    if (!has_type && !misspelled.contains("dtype")) {
      faults_.error(parameter_.place,
                    util::format("the parameter {} has no \"dtype\"", in_quotes(parameter_.name)));
    }
    if (!is_array && of_array != nullptr && !misspelled.contains("ndim")) {
      faults_.error(of_array->place, util::format("{} is for arrays, and the parameter {} has no \"ndim\"",
                                                  in_quotes(of_array->name), in_quotes(parameter_.name)));
    }
    check_lengths();
    std::sort(out.begin(), out.end());
    return out;
  }

  std::string report_unknown_word(const Field& word) {
    std::vector<std::string> known;
    for (const Word& candidate : kWords) known.emplace_back(candidate.name);
    return report_unknown_key(word, "a parameter", known, faults_);
  }

  std::optional<std::string> read_word(const Field& word, WordKind kind) {
    static constexpr std::string_view kIndexTypes[] = {"int32", "uint32", "int64"};
    switch (kind) {
      case WordKind::kName:
        return read_item(word, kNameRule);
      case WordKind::kFactor:
        return read_item(word, kFactorRule);
      case WordKind::kIndexType:
        return read_choice(word, kIndexTypes, faults_) ? text_of(word) : std::nullopt;
      case WordKind::kBoolean:
        return read_boolean(word, faults_) ? text_of(word) : std::nullopt;
      case WordKind::kDimensions:
        dimensions_ = read_number(word, 0, kMaxDimensions, faults_);
        return dimensions_ ? text_of(word) : std::nullopt;
      case WordKind::kFactors:
        return word.value.is_sequence() ? read_items(word, "[8, 1]", kFactorRule)
                                        : read_item(word, kFactorRule);
      case WordKind::kBounds:
        return word.value.is_sequence() ? read_items(word, "[0, 0]", kIntegerRule)
                                        : read_item(word, kIntegerRule);
      case WordKind::kConstants:
        return read_items(word, "[none, 1]", kIntegerRule);
      case WordKind::kLengths:
        return read_items(word, "[none, 64]", kLengthRule);
      case WordKind::kAliasGroups:
        if (word.value.is_sequence() && word.value.size() == 0) return std::string();
        return read_items(word, "[group]", kNameRule, false);
    }
    return std::nullopt;
  }

  static std::optional<std::string> text_of(const Field& word) { return std::string(word.value.text()); }

  std::optional<std::string> read_item(const Field& field, const ItemRule& rule) {
    std::optional<Text> text = read_text(field, faults_);
    if (!text) return std::nullopt;
    if (!rule.holds(text->text)) {
      faults_.error(text->place, util::format("{} must be {}, not {}", field.label(), rule.expected,
                                              in_quotes(text->text)));
      return std::nullopt;
    }
    return std::move(text->text);
  }

  // `by_dimension`: one item for each.
  std::optional<std::string> read_items(const Field& field, std::string_view like, const ItemRule& rule,
                                        bool by_dimension = true) {
    const std::optional<std::vector<Field>> items = read_list(field, like, faults_);
    if (!items) return std::nullopt;
    std::vector<std::string> texts;
    for (const Field& item : *items) {
      if (std::optional<std::string> text = read_item(item, rule)) texts.push_back(std::move(*text));
    }
    if (texts.size() != items->size()) return std::nullopt;
    if (by_dimension) lists_.push_back(field);
    return util::join(texts, ",");
  }

  void check_lengths() {
    if (!dimensions_) return;
    for (const Field& list : lists_) {
      if (list.value.size() == *dimensions_) continue;
      faults_.error(list.value.place(),
                    util::format("{} has {}, and the parameter {} has {}", in_quotes(list.name),
                                 util::counted(list.value.size(), "item"), in_quotes(parameter_.name),
                                 util::counted(*dimensions_, "dimension")));
    }
  }

  const Field& parameter_;
  Faults& faults_;
  std::optional<uint64_t> dimensions_;
  std::vector<Field> lists_;  // good ones, with an item for each dimension
};

}  // namespace

std::optional<std::vector<ParameterDraft>> read_parameters(const Field& field, Faults& faults) {
  const std::optional<std::vector<Field>> pairs = read_map(field, faults);
  if (!pairs) return std::nullopt;
  if (pairs->empty()) {
    faults.error(field.value.place(), "\"parameters\" is an empty map",
                 "expected { name: constant, name: { dtype: float16, ndim: 2 }, ... }");
    return std::nullopt;
  }
  const size_t before = faults.count();
  std::vector<ParameterDraft> out;
  out.reserve(pairs->size());
  for (const Field& pair : *pairs) {
    if (std::optional<ParameterDraft> read = ParameterReader(pair, faults).read()) {
      out.push_back(std::move(*read));
    }
  }
  if (faults.count() != before) return std::nullopt;
  return out;
}

}  // namespace kc::manifest

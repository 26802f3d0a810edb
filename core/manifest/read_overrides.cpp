// `overrides`: what is different for some units of a kernel.
#include <utility>

#include "manifest/draft.h"

namespace kc::manifest {
namespace {

class OverrideReader {
 public:
  explicit OverrideReader(Faults& faults) : faults_(faults) {}

  OverrideDraft read(const Field& item, const std::vector<Field>& fields) {
    static constexpr Handler<OverrideReader> kHandlers[] = {
        {"when", &OverrideReader::when},       {"options", &OverrideReader::options},
        {"timeout", &OverrideReader::timeout}, {"limits", &OverrideReader::limits},
        {"skip", &OverrideReader::skip},
    };
    draft_.place = item.value.place();
    const size_t before = faults_.count();
    const Misspelled misspelled =
        read_fields<OverrideReader>(fields, kHandlers, *this, "an override", faults_);
    if (!has_when_ && !misspelled.contains("when")) {
      faults_.error(draft_.place, "an override without \"when\"",
                    "say for which units it is: { when: { target: gfx942 }, ... }");
    }
    if (!has_effect_ && faults_.count() == before) {
      faults_.error(draft_.place, "an override that changes nothing",
                    "it needs one of options, timeout, limits and skip");
    }
    return std::move(draft_);
  }

 private:
  // `target` is a key like any other here.
  void when(const Field& field) {
    has_when_ = true;
    if (auto pairs = read_configuration(field, KeyRule::kSpecialization, faults_)) {
      draft_.when = std::move(*pairs);
    }
  }
  void options(const Field& field) {
    has_effect_ = true;
    draft_.options_place = field.place;
    draft_.options.set(read_options(field, faults_));
  }
  void timeout(const Field& field) {
    has_effect_ = true;
    draft_.timeout.set(read_duration(field, faults_));
  }
  void limits(const Field& field) {
    has_effect_ = true;
    draft_.limits.set(read_limits(field, faults_));
  }
  void skip(const Field& field) {
    has_effect_ = true;
    draft_.skip = read_boolean(field, faults_).value_or(false);
  }

  Faults& faults_;
  OverrideDraft draft_;
  bool has_when_ = false;
  bool has_effect_ = false;
};

}  // namespace

std::optional<std::vector<OverrideDraft>> read_overrides(const Field& field, Faults& faults) {
  const std::optional<std::vector<Field>> items =
      read_list(field, "[{ when: { target: gfx942 }, skip: true }]", faults);
  if (!items) return std::nullopt;
  const size_t before = faults.count();
  std::vector<OverrideDraft> out;
  out.reserve(items->size());
  for (const Field& item : *items) {
    if (const std::optional<std::vector<Field>> fields = read_map(item, faults)) {
      out.push_back(OverrideReader(faults).read(item, *fields));
    }
  }
  if (faults.count() != before) return std::nullopt;
  return out;
}

}  // namespace kc::manifest

// `defaults`: what the kernels of a file have where they say nothing themselves.
#include <utility>

#include "manifest/draft.h"

namespace kc::manifest {
namespace {

class DefaultsReader {
 public:
  explicit DefaultsReader(Faults& faults) : faults_(faults) {}

  DefaultsDraft read(const std::vector<Field>& fields) {
    static constexpr Handler<DefaultsReader> kHandlers[] = {
        {"options", &DefaultsReader::options},
        {"libraries", &DefaultsReader::libraries},
        {"config", &DefaultsReader::config},
    };
    read_fields<DefaultsReader>(fields, kHandlers, *this, "defaults", faults_);
    return std::move(draft_);
  }

 private:
  // Backends, options and values are checked against what there is later on.
  void options(const Field& field) {
    const std::optional<std::vector<Field>> backends = read_map(field, faults_);
    for (const Field& backend : backends.value_or(std::vector<Field>())) {
      if (std::optional<std::vector<NamedText>> options = read_options(backend, faults_)) {
        draft_.options.push_back({{std::string(backend.name), backend.place}, std::move(*options)});
      }
    }
  }

  void libraries(const Field& field) { draft_.libraries.set(read_paths(field, "[common.loom]", faults_)); }

  // A key with a wrong value is there all the same: who uses it makes no further fault.
  void config(const Field& field) { draft_.config = read_pairs(field, KeyRule::kConfiguration, faults_); }

  Faults& faults_;
  DefaultsDraft draft_;
};

}  // namespace

std::optional<DefaultsDraft> read_defaults(const Field& field, Faults& faults) {
  const std::optional<std::vector<Field>> fields = read_map(field, faults);
  if (!fields) return std::nullopt;
  const size_t before = faults.count();
  DefaultsDraft draft = DefaultsReader(faults).read(*fields);
  draft.is_faulty = faults.count() != before;
  return draft;
}

}  // namespace kc::manifest

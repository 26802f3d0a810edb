// The fields of one kernel.
#include <algorithm>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "manifest/draft.h"
#include "manifest/names.h"

namespace kc::manifest {
namespace {

constexpr std::string_view kEntry = "{entry}";

class KernelReader {
 public:
  explicit KernelReader(Faults& faults) : faults_(faults) {}

  KernelDraft read(const Field& item, const std::vector<Field>& fields) {
    static constexpr Handler<KernelReader> kHandlers[] = {
        {"name", &KernelReader::name},
        {"sources", &KernelReader::sources},
        {"entry", &KernelReader::entry},
        {"symbol", &KernelReader::symbol},
        {"backend", &KernelReader::backend},
        {"targets", &KernelReader::targets},
        {"config", &KernelReader::config},
        {"options", &KernelReader::options},
        {"timeout", &KernelReader::timeout},
        {"limits", &KernelReader::limits},
        {"specializations", &KernelReader::specializations},
        {"metadata", &KernelReader::metadata},
        {"libraries", &KernelReader::libraries},
        {"entries", &KernelReader::entries},
        {"overrides", &KernelReader::overrides},
        {"unsupported", &KernelReader::unsupported},
        {"depends", &KernelReader::depends},
        {"parameters", &KernelReader::parameters},
    };
    draft_.place = item.value.place();
    const Misspelled misspelled = read_fields<KernelReader>(fields, kHandlers, *this, "a kernel", faults_);
    if (!draft_.name.written && !misspelled.contains("name")) {
      faults_.error(item.value.place(), "a kernel without \"name\"");
    }
    if (draft_.name && !check_name(*draft_.name)) draft_.name.value.reset();
    if (draft_.entry && draft_.entries) {
      faults_.error(draft_.entry->place,
                    "\"entry\" beside \"entries\": each of those is the entry of a kernel");
    }
    if (!draft_.sources.written && !misspelled.contains("sources")) {
      faults_.error(draft_.place, "a kernel without \"sources\"");
    }
    return std::move(draft_);
  }

 private:
  void name(const Field& field) {
    // Its grammar depends on `entries` (check_name).
    std::optional<Text> text = read_text(field, faults_);
    if (text) draft_.place = text->place;
    draft_.name.set(std::move(text));
  }

  // What each `{entry}` becomes is not known here: a letter stands for it.
  bool check_name(const Text& name) {
    std::string rest = name.text;
    size_t found = 0;
    for (size_t at = rest.find(kEntry); at != std::string::npos; at = rest.find(kEntry, at)) {
      rest.replace(at, kEntry.size(), "e");
      ++found;
    }
    if (draft_.entries.written && found == 0) {
      faults_.error(
          name.place,
          util::format("the name {} holds no {}: the kernels of its \"entries\" would all be called so",
                       in_quotes(name.text), kEntry));
      return false;
    }
    if (!draft_.entries.written && found != 0) {
      faults_.error(name.place, util::format("the name {} holds {}, and the kernel has no \"entries\"",
                                             in_quotes(name.text), kEntry));
      return false;
    }
    if (is_kernel_name(rest)) return true;
    faults_.error(name.place, in_quotes(name.text) + " cannot be the name of a kernel",
                  "letters, digits, _, . and -, at most 128 bytes, not . or - first");
    return false;
  }

  void sources(const Field& field) { draft_.sources.set(read_paths(field, "[a.tilebc]", faults_)); }
  void libraries(const Field& field) { draft_.libraries.set(read_paths(field, "[common.loom]", faults_)); }
  void depends(const Field& field) { draft_.depends.set(read_paths(field, "[tiles.json]", faults_)); }

  void entries(const Field& field) { draft_.entries.set(read_entries(field)); }

  std::optional<EntriesDraft> read_entries(const Field& field) {
    EntriesDraft out;
    out.place = field.place;
    if (field.value.is_scalar()) {
      out.exported = field.value.text() == "exported";
      if (out.exported) return out;
      faults_.error(field.value.place(),
                    util::format("\"entries\" must be a list like [decode, prefill] or the "
                                 "word exported, not {}",
                                 in_quotes(field.value.text())));
      return std::nullopt;
    }
    const std::optional<std::vector<Field>> items =
        read_list(field, "[decode, prefill], or the word exported", faults_);
    if (!items) return std::nullopt;
    const size_t before = faults_.count();
    std::unordered_map<std::string, YamlPlace> seen;
    for (const Field& item : *items) {
      std::optional<Text> name = read_text(item, faults_);
      if (!name) continue;
      const auto [first, is_new] = seen.emplace(name->text, name->place);
      if (!is_symbol(name->text) || name->text.find_first_of("{}") != std::string::npos) {
        faults_.error(name->place, in_quotes(name->text) + " cannot be an entry",
                      "1 to 1024 bytes without blanks and braces");
      } else if (!is_new) {
        faults_.error(name->place,
                      util::format("the entry {} is listed twice, first at line {}, column {}",
                                   in_quotes(name->text), first->second.line, first->second.column));
      } else {
        out.names.push_back(std::move(*name));
      }
    }
    if (faults_.count() != before) return std::nullopt;
    return out;
  }

  void overrides(const Field& field) { draft_.overrides.set(read_overrides(field, faults_)); }

  void unsupported(const Field& field) {
    static constexpr std::string_view kChoices[] = {"error", "skip"};
    const std::optional<size_t> choice = read_choice(field, kChoices, faults_);
    draft_.skip_unsupported.set(choice ? std::optional(*choice == 1) : std::nullopt);
  }

  void parameters(const Field& field) {
    draft_.parameters_place = field.place;
    draft_.parameters.set(read_parameters(field, faults_));
  }

  void entry(const Field& field) {
    // Its grammar is checked once `{key}` is replaced.
    std::optional<Text> text = read_text(field, faults_);
    if (text && text->text.empty()) {
      faults_.error(text->place, "\"entry\" is empty");
      text.reset();
    }
    draft_.entry.set(std::move(text));
  }

  void symbol(const Field& field) {
    std::optional<Text> text = read_text(field, faults_);
    if (text && (!is_symbol(text->text) || text->text.find_first_of("{}") != std::string::npos)) {
      faults_.error(text->place, in_quotes(text->text) + " cannot be a symbol",
                    "1 to 1024 bytes without blanks and braces; {key} is replaced in sources and entry only");
      text.reset();
    }
    draft_.symbol.set(std::move(text));
  }

  void backend(const Field& field) { draft_.backend.set(read_text(field, faults_)); }
  void targets(const Field& field) { draft_.targets.set(read_targets(field, faults_)); }
  void config(const Field& field) {
    draft_.config.set(read_configuration(field, KeyRule::kConfiguration, faults_));
  }
  void timeout(const Field& field) { draft_.timeout.set(read_duration(field, faults_)); }

  void options(const Field& field) {
    draft_.options_place = field.place;
    draft_.options.set(read_options(field, faults_));
  }

  void limits(const Field& field) { draft_.limits.set(read_limits(field, faults_)); }

  void specializations(const Field& field) {
    draft_.specializations.set(read_specializations(field, faults_));
  }

  void metadata(const Field& field) {
    const std::optional<std::vector<Field>> pairs = read_map(field, faults_);
    Pairs out;
    uint64_t bytes = 0;
    for (const Field& pair : pairs.value_or(std::vector<Field>())) {
      const bool key = check_metadata_key(pair);
      const std::optional<Text> value = read_configuration_value(pair, faults_);
      if (!key || !value) continue;
      bytes += pair.name.size() + value->text.size();
      out.emplace_back(pair.name, value->text);
    }
    if (bytes > kMaxMetadataBytes) {
      faults_.error(field.place,
                    util::format("the metadata of a kernel may have {} bytes in all, and this has {}",
                                 kMaxMetadataBytes, bytes));
    }
    std::sort(out.begin(), out.end());
    draft_.metadata.set(std::move(out));
  }

  bool check_metadata_key(const Field& pair) {
    if (pair.name != kSelectionName && !pair.name.starts_with(std::string(kSelectionName) + '.')) {
      return check_configuration_key(pair, faults_);
    }
    faults_.error(pair.place, in_quotes(pair.name) + " cannot be a key of metadata",
                  "`when` is kept for what tables of specializations say");
    return false;
  }

  Faults& faults_;
  KernelDraft draft_;
};

}  // namespace

std::optional<KernelDraft> read_kernel(const Field& item, Faults& faults) {
  const std::optional<std::vector<Field>> fields = read_map(item, faults);
  if (!fields) return std::nullopt;
  const size_t before = faults.count();
  KernelDraft draft = KernelReader(faults).read(item, *fields);
  draft.is_faulty = faults.count() != before;
  return draft;
}

}  // namespace kc::manifest

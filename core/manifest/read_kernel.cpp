// The fields of one kernel.
#include <algorithm>
#include <utility>

#include "manifest/draft.h"
#include "manifest/names.h"

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
        {"libraries"},
        {"entries"},
        {"overrides"},
        {"unsupported"},
        {"depends"},
        {"parameters"},
    };
    draft_.place = item.value.place();
    read_fields<KernelReader>(fields, kHandlers, *this, "a kernel", faults_);
    if (!draft_.name.written) faults_.error(item.value.place(), "a kernel without \"name\"");
    if (!draft_.sources.written) faults_.error(draft_.place, "a kernel without \"sources\"");
    return std::move(draft_);
  }

 private:
  void name(const Field& field) {
    std::optional<Text> text = read_text(field, faults_);
    if (text) draft_.place = text->place;
    if (text && !is_kernel_name(text->text)) {
      faults_.error(text->place, in_quotes(text->text) + " cannot be the name of a kernel",
                    "letters, digits, _, . and -, at most 128 bytes, not . or - first");
      text.reset();
    }
    draft_.name.set(std::move(text));
  }

  void sources(const Field& field) {
    std::vector<Text> out;
    const size_t before = faults_.count();
    if (field.value.is_sequence()) {
      if (const std::optional<std::vector<Field>> items = read_list(field, "[a.tilebc]", faults_)) {
        for (const Field& item : *items) source(item, out);
      }
    } else if (field.value.is_map()) {
      faults_.error(field.value.place(), "\"sources\" must be a path or a list of paths, not a map");
    } else {
      source(field, out);
    }
    const bool good = faults_.count() == before;
    draft_.sources.set(good ? std::optional(std::move(out)) : std::nullopt);
  }

  void source(const Field& field, std::vector<Text>& out) {
    std::optional<Text> text = read_text(field, faults_);
    if (!text) return;
    if (text->text.empty()) return faults_.error(text->place, field.label() + " is empty; expected a path");
    if (text->text.starts_with('@')) {
      return report_unsupported(text->place, "a list of sources in a file (" + in_quotes(text->text) + ")",
                                faults_);
    }
    if (text->text.find_first_of("*?[") != std::string::npos) {
      return report_unsupported(text->place, "a pattern in \"sources\" (" + in_quotes(text->text) + ")",
                                faults_);
    }
    out.push_back(std::move(*text));
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
  void config(const Field& field) { draft_.config.set(read_configuration(field, faults_)); }
  void timeout(const Field& field) { draft_.timeout.set(read_duration(field, faults_)); }

  // Names and values are the backend's to check (resolve.cpp).
  void options(const Field& field) {
    draft_.options_place = field.place;
    const size_t before = faults_.count();
    std::vector<NamedText> out;
    if (const std::optional<std::vector<Field>> pairs = read_map(field, faults_)) {
      for (const Field& pair : *pairs) {
        if (std::optional<Text> value = read_text(pair, faults_)) {
          out.push_back({{std::string(pair.name), pair.place}, std::move(*value)});
        }
      }
    }
    const bool good = faults_.count() == before;
    draft_.options.set(good ? std::optional(std::move(out)) : std::nullopt);
  }

  void limits(const Field& field) {
    const size_t before = faults_.count();
    const std::optional<std::vector<Field>> fields = read_map(field, faults_);
    std::optional<LimitsDraft> limits;
    if (fields) limits = LimitsReader(faults_).read(*fields);
    if (faults_.count() != before) limits.reset();
    draft_.limits.set(std::move(limits));
  }

  void specializations(const Field& field) {
    draft_.specializations.set(read_specializations(field, faults_));
  }

  void metadata(const Field& field) {
    const std::optional<std::vector<Field>> pairs = read_map(field, faults_);
    Pairs out;
    uint64_t bytes = 0;
    for (const Field& pair : pairs.value_or(std::vector<Field>())) {
      const bool key = check_configuration_key(pair, faults_);
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

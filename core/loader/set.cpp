// Look-up over one or several files.
#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

#include "base/nearest.h"
#include "loader/bundles.h"
#include "loader/configuration.h"
#include "loader/refusal.h"
#include "loader/text.h"

namespace kc::loader {
namespace {

// Names that are looked through for a message: a bundle has at most some hundred, and the work must have a
// bound.
constexpr size_t kMaxNames = 4096;

// The kernels of a file, added to those of others.
Result<void> add_kernels(File& file, std::set<std::string>& out) {
  bundle::Reader& reader = file.reader();
  for (uint32_t at = 0; at < reader.record_count() && out.size() < kMaxNames;) {
    KC_ASSIGN(bundle::Reader::Names names, from_base(reader.names(at)));
    out.insert(std::move(names.kernel));
    KC_ASSIGN(at, from_base(reader.next_kernel(at)));
  }
  return {};
}

Result<void> add_configurations(File& file, std::string_view kernel, std::set<std::string>& out) {
  KC_ASSIGN(const std::optional<File::KernelPlace> place, file.kernel(kernel));
  if (!place) return {};
  bundle::Reader& reader = file.reader();
  for (uint32_t at = place->begin; at < reader.record_count() && out.size() < kMaxNames; ++at) {
    KC_ASSIGN(bundle::Reader::Names names, from_base(reader.names(at)));
    if (names.kernel != kernel) break;
    out.insert(std::move(names.specialization));
  }
  return {};
}

std::string paths(const std::vector<std::shared_ptr<File>>& files) {
  if (files.size() == 1) return files.front()->path();
  return files.front()->path() + " and " + std::to_string(files.size() - 1) + " more";
}

}  // namespace

// A record whose code runs on the device that is asked about.
struct Set::Match {
  std::shared_ptr<File> file;
  uint32_t record = 0;
  uint32_t suitability = 0;
};

Set::Set(std::vector<std::shared_ptr<File>> files) : files_(std::move(files)) {}

size_t Set::entry_count() const {
  size_t count = 0;
  for (const std::shared_ptr<File>& file : files_) count += file->reader().record_count();
  return count;
}

Result<Entry> Set::entry(size_t index) const {
  size_t at = index;
  for (const std::shared_ptr<File>& file : files_) {
    const uint32_t count = file->reader().record_count();
    if (at < count) return entry_of({file, static_cast<uint32_t>(at), 0});
    at -= count;
  }
  return fail(KC_ERROR_ARGUMENT, "there is no entry " + std::to_string(index) + ": " + paths(files_) +
                                     " has " + std::to_string(entry_count()));
}

Result<Entry> Set::entry_of(const Match& match) const {
  KC_ASSIGN(bundle::Record record, from_base(match.file->reader().record(match.record)));
  return Entry{match.file, std::move(record)};
}

Failure Set::no_kernel(std::string_view kernel) const {
  std::set<std::string> found;
  for (const std::shared_ptr<File>& file : files_) {
    if (const Result<void> added = add_kernels(*file, found); !added) return added.error();
  }
  const std::vector<std::string> names(found.begin(), found.end());
  const std::vector<std::string_view> views(names.begin(), names.end());
  std::string text = paths(files_) + ": there is no kernel " + in_quotes(kernel);
  if (const std::optional<size_t> nearest = base::nearest_index(kernel, views)) {
    text += "; did you mean " + in_quotes(names[*nearest]) + "?";
  } else if (names.empty()) {
    text += ", nor any other";
  } else {
    text += "; there is " + listed(names);
  }
  return {KC_ERROR_NOT_FOUND, std::move(text)};
}

Failure Set::no_configuration(std::string_view kernel, std::optional<std::string_view> configuration) const {
  std::set<std::string> found;
  for (const std::shared_ptr<File>& file : files_) {
    if (const Result<void> added = add_configurations(*file, kernel, found); !added) return added.error();
  }
  const bool has_plain = found.erase("") > 0;
  const std::vector<std::string> names(found.begin(), found.end());
  std::string text = paths(files_) + ": the kernel " + in_quotes(kernel) + " has no ";
  if (!configuration) {
    text += "default configuration here: name one";
  } else if (configuration->empty()) {
    text += "code without a configuration";
  } else {
    text += "configuration " + in_quotes(*configuration);
  }
  if (!names.empty())
    text += "; there is " + listed(names) + (has_plain ? ", and the one without pairs" : "");
  if (names.empty() && has_plain) text += "; there is only the one without pairs, \"\"";
  return {KC_ERROR_NOT_FOUND, std::move(text)};
}

Result<std::vector<Set::Match>> Set::matches(std::string_view kernel,
                                             std::optional<std::string_view> configuration,
                                             const target::Target& device) const {
  std::optional<std::string> wanted;
  if (configuration) {
    KC_ASSIGN(wanted, canonical_configuration(*configuration));
  }
  bool has_configuration = false;
  std::vector<Match> found;
  std::set<std::string> found_targets;
  for (const std::shared_ptr<File>& file : files_) {
    bundle::Reader& reader = file->reader();
    uint32_t at = 0;
    if (wanted) {
      KC_ASSIGN(at, from_base(reader.lower_bound(kernel, *wanted, "")));
    } else {
      KC_ASSIGN(const std::optional<File::KernelPlace> place, file->kernel(kernel));
      if (!place) continue;
      if (!place->first_default) return std::unexpected(no_configuration(kernel, std::nullopt));
      at = *place->first_default;
    }
    if (at == reader.record_count()) continue;
    KC_ASSIGN(const bundle::Reader::Names first, from_base(reader.names(at)));
    if (first.kernel != kernel) continue;
    if (!wanted) wanted = first.specialization;
    if (first.specialization != *wanted) continue;
    has_configuration = true;
    std::optional<Failure> failure;
    const auto add = [&](uint32_t record, const std::string&, const std::string& found_target) {
      const base::Result<target::Target> code = target::parse_target(found_target);
      if (!code) {
        failure = Failure{KC_ERROR_DAMAGED, file->path() + ": the bundle is damaged: record " +
                                                std::to_string(record) + ": " + code.error().text()};
        return false;
      }
      const uint32_t suitability = target::suitability(*code, device);
      if (suitability > 0) {
        found.push_back({file, record, suitability});
      } else if (found.empty() && found_targets.size() < kMaxNames) {
        found_targets.insert(found_target);
      }
      return true;
    };
    KC_TRY(from_base(reader.variants(at, add)));
    if (failure) return std::unexpected(std::move(*failure));
  }
  if (!has_configuration) {
    for (const std::shared_ptr<File>& file : files_) {
      KC_ASSIGN(const std::optional<File::KernelPlace> place, file->kernel(kernel));
      if (place) return std::unexpected(no_configuration(kernel, *wanted));
    }
    return std::unexpected(no_kernel(kernel));
  }
  if (found.empty()) {
    return std::unexpected(
        explain_no_code(kernel, *wanted, device, {found_targets.begin(), found_targets.end()}));
  }
  std::ranges::stable_sort(found, std::ranges::greater(), &Match::suitability);
  return found;
}

Result<std::vector<Entry>> Set::candidates(std::string_view kernel,
                                           std::optional<std::string_view> configuration,
                                           const target::Target& device) const {
  KC_ASSIGN(const std::vector<Match> found, matches(kernel, configuration, device));
  std::vector<Entry> out;
  for (const Match& match : found) {
    Result<Entry> entry = entry_of(match);
    if (!entry) {
      if (out.empty()) return std::unexpected(std::move(entry).error());
      continue;
    }
    const bool is_known = std::ranges::any_of(out, [&](const Entry& other) {
      return other.record.artifact_digest == entry->record.artifact_digest &&
             other.record.symbol == entry->record.symbol;
    });
    if (!is_known) out.push_back(std::move(*entry));
  }
  return out;
}

Result<Entry> Set::best(std::string_view kernel, std::optional<std::string_view> configuration,
                        const target::Target& device) const {
  KC_ASSIGN(const std::vector<Match> found, matches(kernel, configuration, device));
  return entry_of(found.front());
}

}  // namespace kc::loader

#include "manifest/entries.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "manifest/names.h"

namespace kc::manifest {
namespace {

constexpr std::string_view kEntry = "{entry}";

std::string name_for(const std::string& pattern, std::string_view entry) {
  std::string out;
  size_t from = 0;
  for (size_t at = pattern.find(kEntry); at != std::string::npos; at = pattern.find(kEntry, from)) {
    out.append(pattern, from, at - from);
    out += entry;
    from = at + kEntry.size();
  }
  return out.append(pattern, from);
}

class EntriesResolver {
 public:
  EntriesResolver(const std::shared_ptr<const KernelParts>& parts, const ResolveContext& context)
      : parts_(parts), draft_(*parts->draft), context_(context), faults_(context.faults) {}

  std::vector<ResolvedKernel> resolve() {
    const std::optional<std::vector<Text>> entries =
        draft_.entries->exported ? exported() : draft_.entries->names;
    if (!draft_.name || !entries || !check_count(entries->size())) return {};
    std::vector<ResolvedKernel> out;
    out.reserve(entries->size());
    std::optional<size_t> first_bad;
    size_t bad = 0;
    for (const Text& entry : *entries) {
      ResolvedKernel kernel;
      kernel.name = name_for(draft_.name->text, entry.text);
      kernel.place = draft_.entries->exported ? draft_.name->place : entry.place;
      kernel.entry = Template::literal(entry);
      kernel.parts = parts_;
      if (is_kernel_name(kernel.name)) {
        kernel.is_good = parts_->is_good;
      } else if (!draft_.entries->exported) {
        report_name(kernel);
      } else if (bad++ == 0) {
        first_bad = out.size();
      }
      out.push_back(std::move(kernel));
    }
    if (first_bad) report_name(out[*first_bad], bad);
    return out;
  }

 private:
  void report_name(const ResolvedKernel& kernel, size_t count = 1) {
    faults_.error(
        kernel.place,
        util::format("{} cannot be the name of a kernel{}", in_quotes(kernel.name),
                     count > 1 ? util::format(", nor can {} more that the entries give", count - 1) : ""),
        "letters, digits, _, . and -, at most 128 bytes, not . or - first");
  }

  // Of all sources in order; of one name the first counts.
  std::optional<std::vector<Text>> exported() {
    if (!parts_->are_sources_good || parts_->backend == nullptr) return std::nullopt;
    const YamlPlace place = draft_.entries->place;
    for (const KernelSource& source : parts_->sources) {
      if (source.name.path.is_literal()) continue;
      faults_.error(place,
                    util::format("which entries {} exports is not known before {} is replaced",
                                 in_quotes(source.name.path.text().text),
                                 in_quotes("{" + source.name.path.keys().front() + "}")),
                    "list them");
      return std::nullopt;
    }
    std::vector<Text> out;
    std::unordered_set<std::string_view> seen;
    bool good = true;
    for (const KernelSource& source : parts_->sources) {
      const Text& text = source.name.path.text();
      if (!source.index) {  // reported
        good = false;
        continue;
      }
      const Modules::Exported& exported =
          context_.state->modules.exported(*parts_->backend, {*source.index, text.text, text.place});
      good = good && exported.is_readable;
      if (exported.is_readable && !exported.is_known) {
        faults_.error(
            place,
            util::format("the entries of {} cannot be told without its compiler", in_quotes(text.text)),
            "list them");
        good = false;
      }
      for (const std::string& name : exported.names) {
        if (seen.insert(name).second) out.push_back({name, place});
      }
    }
    if (!good) return std::nullopt;
    if (out.empty()) {
      faults_.error(place, util::format("the sources of {} export no entries", parts_->described()));
      return std::nullopt;
    }
    return out;
  }

  // Each kernel has at least one unit.
  bool check_count(size_t entries) {
    const uint64_t before = context_.state->kernels;
    context_.state->kernels += entries;
    if (context_.state->kernels <= context_.max_units) return true;
    // What comes behind the one that is too much is its consequence.
    if (before <= context_.max_units) {
      faults_.error(draft_.entries->place,
                    util::format("with these {} entries the plan has more than {} kernels", entries,
                                 context_.max_units));
    }
    return false;
  }

  const std::shared_ptr<const KernelParts>& parts_;
  const KernelDraft& draft_;
  const ResolveContext& context_;
  Faults& faults_;
};

}  // namespace

std::vector<ResolvedKernel> resolve_entries(const std::shared_ptr<const KernelParts>& parts,
                                            const ResolveContext& context) {
  return EntriesResolver(parts, context).resolve();
}

}  // namespace kc::manifest

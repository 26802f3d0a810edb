#include "report/bundle_diff.h"

#include <array>
#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

#include "report/unit_filter.h"
#include "util/text.h"

namespace kc::report {
namespace {

using base::Result;
using bundle::Record;

std::string arrow(std::string_view before, std::string_view after) {
  const auto shown = [](std::string_view text) { return text.empty() ? std::string_view("none") : text; };
  return util::format("{} -> {}", shown(before), shown(after));
}

std::string block_text(const std::array<uint32_t, 3>& block) {
  if (block == std::array<uint32_t, 3>{}) return {};
  return util::format("{}x{}x{}", block[0], block[1], block[2]);
}

std::string number_text(uint32_t number) {
  return number == 0 ? std::string() : std::to_string(number);
}

// 0 is a number here: only what is not told is none.
std::string told_text(const std::optional<uint32_t>& number) {
  return number ? std::to_string(*number) : std::string();
}

// Names of the metadata that only one has or that differ. Both are sorted by name.
std::vector<std::string> metadata_names(const Record& before, const Record& after) {
  std::vector<std::string> names;
  auto a = before.metadata.begin();
  auto b = after.metadata.begin();
  while (a != before.metadata.end() || b != after.metadata.end()) {
    if (b == after.metadata.end() || (a != before.metadata.end() && a->first < b->first)) {
      names.push_back((a++)->first);
    } else if (a == before.metadata.end() || b->first < a->first) {
      names.push_back((b++)->first);
    } else {
      if (a->second != b->second) names.push_back(a->first);
      ++a;
      ++b;
    }
  }
  return names;
}

std::vector<Difference> others_of(const Record& before, const Record& after) {
  std::vector<Difference> out;
  const auto add = [&](bool differs, std::string_view field, std::string text) {
    if (differs) out.push_back({field, std::move(text)});
  };
  const artifact::KernelFacts& a = before.facts;
  const artifact::KernelFacts& b = after.facts;
  add(before.artifact_digest != after.artifact_digest, "code_digest", "code differs");
  add(a.spills.has_value() != b.spills.has_value(), "spills",
      b.spills ? util::format("spills unknown -> {}", *b.spills)
               : util::format("spills {} -> unknown", a.spills.value_or(0)));
  add(a.scalar_registers != b.scalar_registers, "scalar_registers",
      util::format("scalar registers {}",
                   arrow(told_text(a.scalar_registers), told_text(b.scalar_registers))));
  add(a.arguments != b.arguments || a.argument_bytes != b.argument_bytes, "arguments",
      util::format("arguments {} of {} B -> {} of {} B", a.arguments.size(), a.argument_bytes,
                   b.arguments.size(), b.argument_bytes));
  add(a.required_block != b.required_block, "required_block",
      util::format("required block {}", arrow(block_text(a.required_block), block_text(b.required_block))));
  add(a.max_threads != b.max_threads, "max_threads",
      util::format("most threads {}", arrow(number_text(a.max_threads), number_text(b.max_threads))));
  add(a.wave_size != b.wave_size, "wave_size",
      util::format("wave size {}", arrow(number_text(a.wave_size), number_text(b.wave_size))));
  add(before.found_target != after.found_target, "found_target",
      util::format("found target {}", arrow(before.found_target, after.found_target)));
  add(before.symbol != after.symbol, "symbol", util::format("symbol {}", arrow(before.symbol, after.symbol)));
  add(before.lowest_driver != after.lowest_driver, "lowest_driver",
      util::format("lowest driver {}",
                   arrow(number_text(before.lowest_driver), number_text(after.lowest_driver))));
  add(before.is_default != after.is_default, "default",
      after.is_default ? "now the default" : "no longer the default");
  add(before.metadata != after.metadata, "metadata",
      util::format("metadata {} differs", util::listed(metadata_names(before, after))));
  return out;
}

std::strong_ordering order(const Record& a, const Record& b) {
  return std::tie(a.kernel, a.specialization, a.target) <=> std::tie(b.kernel, b.specialization, b.target);
}

// The named records of one bundle, one after another.
class Stream {
 public:
  Stream(bundle::Reader& reader, const std::vector<std::string>& patterns)
      : reader_(reader), patterns_(patterns) {}

  /// The record at hand; nothing behind the last one.
  std::optional<Record> current;

  Result<void> advance() {
    current.reset();
    while (next_ < reader_.record_count()) {
      KC_ASSIGN(Record record, reader_.record(next_));
      // The digests of a bundle made by hand may be right all the same; what is out of order would be told as
      // added and removed.
      if (next_ != 0 && order(last_, record) != std::strong_ordering::less) {
        return base::fail_at(base::ErrorKind::kFailed, {reader_.path()},
                             util::format("the bundle is damaged: record {} is not in order", next_));
      }
      ++next_;
      last_.kernel = record.kernel;
      last_.specialization = record.specialization;
      last_.target = record.target;
      if (!is_named(record, patterns_)) continue;
      current = std::move(record);
      return {};
    }
    return {};
  }

 private:
  bundle::Reader& reader_;
  const std::vector<std::string>& patterns_;
  uint32_t next_ = 0;
  Record last_;  // its names only
};

UnitDiff one_sided(UnitChange change, Record record) {
  UnitDiff out;
  out.change = change;
  (change == UnitChange::kAdded ? out.after : out.before) = std::move(record);
  return out;
}

}  // namespace

std::string_view change_name(UnitChange change) {
  switch (change) {
    case UnitChange::kAdded:
      return "added";
    case UnitChange::kRemoved:
      return "removed";
    case UnitChange::kChanged:
      return "changed";
    case UnitChange::kSame:
      return "same";
  }
  return "same";
}

std::string UnitDiff::text() const {
  if (change != UnitChange::kChanged) return std::string(change_name(change));
  std::string out = artifact::text_of(numbers);
  for (const Difference& other : others) {
    // Numbers that differ say that the code does.
    if (other.field == "code_digest" && !numbers.empty()) continue;
    if (!out.empty()) out += ", ";
    out += other.text;
  }
  return out;
}

UnitDiff compare_records(Record before, Record after) {
  UnitDiff out;
  out.numbers = artifact::changes(artifact::numbers_of(before.facts, before.artifact_size),
                                  artifact::numbers_of(after.facts, after.artifact_size));
  out.others = others_of(before, after);
  out.change = out.numbers.empty() && out.others.empty() ? UnitChange::kSame : UnitChange::kChanged;
  out.before = std::move(before);
  out.after = std::move(after);
  return out;
}

std::string compiler_text(const Record& before, const Record& after) {
  std::string out;
  const auto compiler = [](const Record& record) {
    return util::format("{} {}", record.compiler, record.compiler_version);
  };
  if (before.compiler != after.compiler) {
    out = util::format("compiler {} -> {}", compiler(before), compiler(after));
  } else if (before.compiler_version != after.compiler_version) {
    out = util::format("compiler {} -> {}", compiler(before), after.compiler_version);
  } else if (before.compiler_identity != after.compiler_identity) {
    out = util::format("another compiler {}", compiler(before));
  }
  if (before.toolkit != after.toolkit) {
    if (!out.empty()) out += ", ";
    out += util::format("toolkit {}", arrow(before.toolkit, after.toolkit));
  }
  return out;
}

Result<DiffCounts> diff_bundles(bundle::Reader& before, bundle::Reader& after,
                                const std::vector<std::string>& patterns,
                                const std::function<bool(UnitDiff)>& each) {
  DiffCounts counts;
  Stream a(before, patterns);
  Stream b(after, patterns);
  KC_TRY(a.advance());
  KC_TRY(b.advance());
  while (a.current || b.current) {
    UnitDiff diff;
    const auto by_name = !a.current   ? std::strong_ordering::greater
                         : !b.current ? std::strong_ordering::less
                                      : order(*a.current, *b.current);
    if (by_name == std::strong_ordering::less) {
      diff = one_sided(UnitChange::kRemoved, *std::move(a.current));
      ++counts.removed;
      KC_TRY(a.advance());
    } else if (by_name == std::strong_ordering::greater) {
      diff = one_sided(UnitChange::kAdded, *std::move(b.current));
      ++counts.added;
      KC_TRY(b.advance());
    } else {
      diff = compare_records(*std::move(a.current), *std::move(b.current));
      ++(diff.change == UnitChange::kSame ? counts.same : counts.changed);
      KC_TRY(a.advance());
      KC_TRY(b.advance());
    }
    if (!each(std::move(diff))) break;
  }
  return counts;
}

}  // namespace kc::report

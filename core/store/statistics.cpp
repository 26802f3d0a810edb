#include "store/statistics.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/atomic_file.h"
#include "base/file_system.h"
#include "store/new_file.h"
#include "util/text.h"

namespace kc::store {
namespace {

constexpr const char* kTotal = "total";
constexpr uint64_t kMaxFile = 4096;  // seven lines have 200 bytes at most

struct Field {
  std::string_view name;
  uint64_t Counters::*value;
};
constexpr std::array<Field, 7> kFields = {{{"hits", &Counters::hits},
                                           {"misses", &Counters::misses},
                                           {"puts", &Counters::puts},
                                           {"corrupt", &Counters::corrupt},
                                           {"soft_errors", &Counters::soft_errors},
                                           {"declined", &Counters::declined},
                                           {"saved_ms", &Counters::saved_ms}}};

// A count that real work could reach; more is damage, and would overflow a sum.
constexpr uint64_t kMaxCount = 1ULL << 50;

void add(Counters& sum, const Counters& other) {
  for (const Field& field : kFields) sum.*field.value += other.*field.value;
}

std::string to_text(const Counters& tally) {
  std::string out;
  for (const Field& field : kFields) out += util::format("{} {}\n", field.name, tally.*field.value);
  return out;
}

std::optional<Counters> read_one(int folder, const std::string& name) {
  const auto fd = base::open_at(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
  if (!fd) return std::nullopt;
  const auto bytes = base::read_descriptor(fd->get(), name, kMaxFile);
  if (!bytes) return std::nullopt;
  Counters tally;
  for (const std::string& line : util::split(base::as_text(*bytes), '\n')) {
    for (const Field& field : kFields) {
      if (!line.starts_with(field.name) || line.size() <= field.name.size() + 1) continue;
      if (line[field.name.size()] != ' ') continue;
      const auto value = util::parse_number(line.substr(field.name.size() + 1), 0, kMaxCount);
      if (!value) return std::nullopt;
      tally.*field.value = *value;
    }
  }
  return tally;
}

bool write_file(const Layout& layout, const Counters& tally, const std::string& name) {
  auto file = NewFile::write(layout, base::as_bytes(to_text(tally)), 0600);
  return file && file->replace(layout.statistics(), name);
}

// The files of single processes, and what they and the total hold together.
std::pair<Counters, std::vector<std::string>> gather(const Layout& layout) {
  Counters sum;
  std::vector<std::string> names;
  if (layout.statistics() < 0) return {sum, names};
  if (const auto total = read_one(layout.statistics(), kTotal)) add(sum, *total);
  const auto listed = base::list_directory(layout.statistics(), ".");
  if (!listed) return {sum, names};
  for (const std::string& name : *listed) {
    if (!is_statistics_name(name)) continue;
    if (const auto one = read_one(layout.statistics(), name)) add(sum, *one);
    names.push_back(name);
  }
  return {sum, names};
}

}  // namespace

void write_tally(const Layout& layout, const Counters& tally) {
  if (tally != Counters{} && layout.statistics() >= 0) write_file(layout, tally, base::unique_name(""));
}

Counters read_tallies(const Layout& layout) {
  return gather(layout).first;
}

void fold_tallies(const Layout& layout) {
  const auto [sum, names] = gather(layout);
  if (names.empty() || !write_file(layout, sum, kTotal)) return;
  for (const std::string& name : names) base::file_system().unlinkat(layout.statistics(), name.c_str(), 0);
}

}  // namespace kc::store

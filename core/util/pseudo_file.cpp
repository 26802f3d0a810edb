#include "util/pseudo_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "base/files.h"
#include "util/text.h"

namespace kc::util {

std::optional<std::string> read_pseudo_file(const std::string& path, size_t limit) {
  const base::Result<base::FileDescriptor> fd = base::open_at(AT_FDCWD, path, O_RDONLY | O_NONBLOCK);
  if (!fd) return std::nullopt;
  std::string out;
  char buffer[4096];
  while (out.size() < limit) {
    const ssize_t got = ::read(fd->get(), buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return std::nullopt;
    if (got == 0) break;
    out.append(buffer, static_cast<size_t>(got));
  }
  if (out.size() > limit) out.resize(limit);
  return out;
}

std::optional<uint64_t> named_number(std::string_view text, std::string_view name) {
  while (!text.empty()) {
    const size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (!line.starts_with(name)) continue;
    line.remove_prefix(name.size());
    if (line.starts_with(':')) line.remove_prefix(1);
    if (!line.starts_with(' ') && !line.starts_with('\t')) continue;  // a longer name
    line = trim(line);
    return parse_number(line.substr(0, line.find_first_of(" \t")), 0, UINT64_MAX);
  }
  return std::nullopt;
}

}  // namespace kc::util

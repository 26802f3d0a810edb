#include "manifest/inputs.h"

#include <cerrno>
#include <utility>

#include "base/digest.h"
#include "base/files.h"
#include "config/yaml_text.h"
#include "manifest/paths.h"
#include "util/text.h"

namespace kc::manifest {

base::Error unreadable(base::Error error, const std::string& what, const std::string& opened) {
  if (error.sys_errno == ENOENT || error.sys_errno == ENOTDIR) {
    error.message = what + " does not exist";
    error.hint = hint_for_missing(opened);
  } else if (!error.place.file.empty()) {
    error.message = what + ' ' + error.message;  // `is a directory, not a file`
  }
  error.place = {};
  return error;
}

std::optional<base::Bytes> read_input(std::string_view what, const Text& path, const std::string& opened,
                                      uint64_t limit, std::vector<Input>& inputs, Faults& faults) {
  Input input;
  input.path = opened;
  base::Result<base::Bytes> bytes = base::read_file(opened, limit, &input.tuple);
  if (!bytes) {
    const std::string named = util::format("{} {}", what, in_quotes(path.text));
    base::Error error = unreadable(std::move(bytes.error()), named, opened);
    faults.error(path.place, std::move(error.message), std::move(error.hint));
    return std::nullopt;
  }
  input.digest = base::sha256(base::ByteView(*bytes));
  inputs.push_back(std::move(input));
  return std::move(*bytes);
}

bool check_text(std::string_view text, uint32_t file, Faults& faults) {
  const std::optional<config::BadByte> bad = config::find_bad_byte(text);
  if (!bad) return true;
  YamlPlace place = bad->place;
  place.file = file;
  faults.error(place, bad->is_control
                          ? util::format("the control byte 0x{:02x} is not allowed here", bad->value)
                          : util::format("not UTF-8: the byte 0x{:02x} is misplaced", bad->value));
  return false;
}

std::string_view without_mark(std::string_view text) {
  constexpr std::string_view kMark = "\xef\xbb\xbf";
  if (text.starts_with(kMark)) text.remove_prefix(kMark.size());
  return text;
}

}  // namespace kc::manifest

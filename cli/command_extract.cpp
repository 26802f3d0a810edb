// kc extract: takes code objects out of a bundle.
#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "base/atomic_file.h"
#include "base/digest.h"
#include "base/files.h"
#include "bundle/bundle.h"
#include "cli/command.h"
#include "cli/console.h"
#include "target/target.h"
#include "util/text.h"

namespace kc::cli {
namespace {

using base::ErrorKind;
using base::Result;
using bundle::Record;

// Of a file name; a file system takes 255, and what works on files may add to it.
constexpr size_t kMaxFileName = 200;
constexpr size_t kDigits = 16;

std::string extension_of(const Record& record) {
  const auto target = target::parse_target(record.target);
  return target && target->vendor == target::Vendor::kAmd ? ".hsaco" : ".cubin";
}

// `<configuration or "default">.<cubin|hsaco>`; a long one is cut and told apart by its digest. Canonical
// text holds no slash and no name can be "default", so nothing else is needed to make it a file name.
std::string file_name_of(const Record& record) {
  const std::string extension = extension_of(record);
  const std::string stem = record.specialization.empty() ? "default" : record.specialization;
  if (stem.size() + extension.size() <= kMaxFileName) return stem + extension;
  const std::string digits = base::sha256(stem).hex().substr(0, kDigits);
  return stem.substr(0, kMaxFileName - extension.size() - kDigits - 1) + "-" + digits + extension;
}

// Opens the directory `name` in `parent`, made if missing; a symbolic link is refused, it could lead out of
// the folder that was named.
Result<base::FileDescriptor> enter(int parent, const std::string& name, const std::string& shown) {
  if (mkdirat(parent, name.c_str(), 0777) != 0 && errno != EEXIST) {
    return base::fail_errno(ErrorKind::kEnvironment, "make directory", shown, errno);
  }
  const int fd = openat(parent, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0 && (errno == ENOTDIR || errno == ELOOP)) {
    return base::fail_at(ErrorKind::kEnvironment, {shown},
                         "is not a directory, or a symbolic link, which is not followed");
  }
  if (fd < 0) return base::fail_errno(ErrorKind::kEnvironment, "open directory", shown, errno);
  return base::FileDescriptor(fd);
}

Result<void> write_file(int directory, const std::string& name, base::ByteView code) {
  KC_ASSIGN(base::AtomicFile file, base::AtomicFile::create(directory, name, 0666));
  KC_TRY(file.write(code));
  return file.commit(base::Sync::kNone);  // it can be extracted again
}

void print_file(const Record& record, const std::string& path, Console& console) {
  if (console.is_json()) {
    console.json({{"event", "file"},
                  {"unit", record.unit()},
                  {"path", path},
                  {"bytes", record.artifact_size},
                  {"digest", record.artifact_digest.hex()}});
  } else if (console.verbosity() > 0) {
    console.result(util::format("{}  {}", util::escape(path), util::size_text(record.artifact_size)));
  }
}

// The unit `kernel[:specialization]@target`, split: none of the three can hold an `@`, a kernel no `:`.
Result<uint32_t> find_unit(bundle::Reader& reader, const std::string& unit) {
  const size_t at = unit.rfind('@');
  const std::string_view name = std::string_view(unit).substr(0, at);
  const size_t colon = name.find(':');
  const std::string_view specialization = colon == std::string_view::npos ? "" : name.substr(colon + 1);
  if (at != std::string::npos) {
    KC_ASSIGN(const auto found,
              reader.find(name.substr(0, colon), specialization, std::string_view(unit).substr(at + 1)));
    if (found) return *found;
  }
  std::vector<std::string> names;
  for (uint32_t i = 0; i < reader.record_count(); ++i) {
    KC_ASSIGN(const Record record, reader.record(i));
    names.push_back(record.unit());
  }
  std::string hint = util::did_you_mean(unit, names);
  if (hint.empty()) hint = "kc show lists the units of a bundle";
  return base::fail(ErrorKind::kInput,
                    util::format("no unit in the bundle is named \"{}\"", util::escape(unit)),
                    std::move(hint));
}

Result<void> extract_one(bundle::Reader& reader, const std::string& unit, const std::string& output,
                         Console& console) {
  KC_ASSIGN(const uint32_t index, find_unit(reader, unit));
  KC_ASSIGN(const Record record, reader.record(index));
  struct stat status;
  if (stat(output.c_str(), &status) == 0 && !S_ISREG(status.st_mode)) {
    return base::fail_at(ErrorKind::kInput, {output}, "is not a regular file and is not replaced");
  }
  if (bundle::looks_like_bundle(output)) {
    return base::fail_at(ErrorKind::kInput, {output}, "is a bundle and is not replaced by a code object",
                         "name another file with -o");
  }
  KC_ASSIGN(const base::Bytes code, reader.artifact(record));
  KC_TRY(write_file(AT_FDCWD, output, code));
  print_file(record, output, console);
  return {};
}

Result<void> extract_into(bundle::Reader& reader, const Record& record, int root,
                          const std::string& shown_root, std::set<std::string>& taken, Console& console) {
  const std::string kernel_path = base::join_path(shown_root, record.kernel);
  const std::string target_path = base::join_path(kernel_path, record.target);
  const std::string name = file_name_of(record);
  // A crafted bundle may hold a name that another one is cut to.
  if (!taken.insert(base::join_path(target_path, name)).second) {
    return base::fail(
        ErrorKind::kFailed,
        util::format("the code object of {} would have the file name of another one", record.unit()),
        "extract it alone, with -o");
  }
  KC_ASSIGN(const base::Bytes code, reader.artifact(record));
  KC_ASSIGN(const base::FileDescriptor kernel, enter(root, record.kernel, kernel_path));
  KC_ASSIGN(const base::FileDescriptor target, enter(kernel.get(), record.target, target_path));
  KC_TRY(write_file(target.get(), name, code));
  print_file(record, base::join_path(target_path, name), console);
  return {};
}

// Says each fault once: a damaged page or frame spoils many units in a row.
class Faults {
 public:
  explicit Faults(Console& console) : console_(console) {}
  void add(const base::Error& error) {
    ++units_;
    if (error.message != last_) console_.error(error);
    last_ = error.message;
  }
  uint64_t units() const { return units_; }

 private:
  Console& console_;
  std::string last_;
  uint64_t units_ = 0;
};

// Damaged units are named and passed over; what cannot be written ends it.
int extract_all(bundle::Reader& reader, const std::string& directory, Console& console) {
  if (const auto made = base::make_directories(directory); !made) return console.fail(made.error());
  const auto root = base::open_at(AT_FDCWD, directory, O_RDONLY | O_DIRECTORY, 0, ErrorKind::kEnvironment);
  if (!root) return console.fail(root.error());
  // In the order of the frames each is decompressed once.
  Faults faults(console);
  std::vector<std::tuple<uint32_t, uint32_t, uint32_t>> order;  // frame, offset, record
  for (uint32_t i = 0; i < reader.record_count(); ++i) {
    const auto record = reader.record(i);
    if (record) {
      order.emplace_back(record->frame, record->frame_offset, i);
    } else {
      faults.add(record.error());
    }
  }
  std::sort(order.begin(), order.end());
  std::set<std::string> taken;
  for (const auto& [frame, offset, index] : order) {
    const auto record = reader.record(index);
    const auto done = record ? extract_into(reader, *record, root->get(), directory, taken, console)
                             : std::unexpected(record.error());
    if (done) continue;
    if (done.error().kind != ErrorKind::kFailed) return console.fail(done.error());
    faults.add(done.error());
  }
  const uint64_t written = reader.record_count() - faults.units();
  if (console.is_json()) {
    console.json({{"event", "summary"}, {"files", written}, {"damaged", faults.units()}});
  } else {
    std::string line =
        util::format("kc: {} below {}", util::counted(written, "file"), util::escape(directory));
    if (faults.units() != 0) line += util::format(", {} damaged", util::counted(faults.units(), "unit"));
    console.result(line);
  }
  return faults.units() == 0 ? 0 : static_cast<int>(ErrorKind::kFailed);
}

}  // namespace

int command_extract(const Common&, const BundleArguments& arguments, Console& console) {
  const bool one = arguments.units.size() == 1 && arguments.output && !arguments.directory;
  const bool all = arguments.units.empty() && !arguments.output && arguments.directory;
  if (!one && !all) {
    return console.fail({ErrorKind::kInput,
                         "what to extract and where to is not clear",
                         {},
                         "kc extract BUNDLE UNIT -o FILE, or kc extract BUNDLE --all DIR"});
  }
  auto reader = bundle::Reader::open(arguments.bundle);
  if (!reader) return console.fail(reader.error());
  if (all) return extract_all(*reader, *arguments.directory, console);
  const auto done = extract_one(*reader, arguments.units.front(), *arguments.output, console);
  return done ? 0 : console.fail(done.error());
}

}  // namespace kc::cli

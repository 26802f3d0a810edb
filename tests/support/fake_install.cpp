#include "support/fake_install.h"

#include <fcntl.h>

#include <string_view>

#include "base/atomic_file.h"
#include "base/files.h"
#include "util/text.h"

namespace kc::test {
namespace {

constexpr std::string_view kMark = "\nkc-fake-variant=";
// The program with debug information and sanitizers.
constexpr uint64_t kLargestProgram = 1U << 30;

base::Result<void> put(const std::string& path, base::ByteView bytes, mode_t mode) {
  KC_TRY(base::make_directories(base::parent_path(path)));
  KC_ASSIGN(base::AtomicFile file, base::AtomicFile::create(AT_FDCWD, path, mode));
  KC_TRY(file.write(bytes));
  return file.commit(base::Sync::kNone);
}

std::string ptxas_script(const std::string& version) {
  const std::string release = version.substr(0, version.find('.', version.find('.') + 1));
  return util::format(
      "#!/bin/sh\n"
      "echo 'ptxas: NVIDIA (R) Ptx optimizing assembler'\n"
      "echo 'Cuda compilation tools, release {}, V{}'\n",
      release, version);
}

// Where the mark begins, or npos.
size_t mark_in(std::string_view program) {
  constexpr size_t kLongestTail = 256;
  const size_t from = program.size() > kLongestTail ? program.size() - kLongestTail : 0;
  const size_t at = program.substr(from).find(kMark);
  return at == std::string_view::npos ? at : from + at;
}

}  // namespace

base::Result<std::string> install_fake_tileiras(const std::string& program, const std::string& root,
                                                const FakeInstallOptions& options) {
  KC_ASSIGN(base::Bytes bytes, base::read_file(program, kLargestProgram));
  if (const size_t mark = mark_in(base::as_text(bytes)); mark != std::string_view::npos) bytes.resize(mark);
  const std::string tail = util::format("{}{}\n", kMark, options.variant);
  bytes.insert(bytes.end(), tail.begin(), tail.end());
  const std::string bin = base::join_path(root, "bin");
  if (options.has_ptxas) {
    KC_TRY(put(base::join_path(bin, "ptxas"), base::as_bytes(ptxas_script(options.ptxas_release)), 0755));
  }
  if (options.has_libnvvm) {
    KC_TRY(put(base::join_path(root, "lib/libnvvm.so.4"), base::as_bytes("a stand-in for libnvvm\n"), 0644));
  }
  KC_TRY(put(base::join_path(root, "nvvm/libdevice/libdevice.10.bc"),
             base::as_bytes("a stand-in for libdevice\n"), 0644));
  const std::string installed = base::join_path(bin, "tileiras");
  KC_TRY(put(installed, bytes, 0755));
  return installed;
}

std::string variant_of(const std::string& program) {
  const auto bytes = base::read_file(program, kLargestProgram);
  if (!bytes) return "1";
  const std::string_view text = base::as_text(*bytes);
  const size_t mark = mark_in(text);
  if (mark == std::string_view::npos) return "1";
  const std::string_view rest = text.substr(mark + kMark.size());
  return std::string(rest.substr(0, rest.find('\n')));
}

}  // namespace kc::test

// The ways to open a bundle, what is refused as what, and that nothing of it is left afterwards.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <malloc.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "bundles_support.h"

using namespace kc;
using namespace kc::loader::testing;

namespace {

struct Small {
  Folder folder;
  Input input = small_frames();
  std::string path = folder / "b.kcb";
  Small() { REQUIRE(input.write(path)); }
};

size_t open_descriptors() {
  size_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) ++count;
  return count;
}

void check_all_readable(const BundleHandle& bundle, const Input& input) {
  REQUIRE(kc_entry_count(bundle.get()) == input.records.size());
  for (size_t i = 0; i < input.records.size(); ++i) {
    const auto entry = entry_at(bundle, i);
    REQUIRE(entry.status == KC_OK);
    const auto code = read(entry.handle.get());
    CHECK(code.status == KC_OK);
    CHECK(code.bytes == code_of(input, kc_entry_get_info(entry.handle.get())->unit));
  }
  kc_error* error = nullptr;
  CHECK(kc_verify(bundle.get(), &error) == KC_OK);
  CHECK(error == nullptr);
}

}  // namespace

TEST_CASE("a bundle reads the same by path and by descriptor and from memory") {
  const Small small;
  const auto by_path = open_path(small.path);
  REQUIRE(by_path.status == KC_OK);
  check_all_readable(by_path.handle, small.input);
  CHECK(kc_file_get_info(by_path.handle.get(), 0)->path == small.path);

  base::FileDescriptor fd(::open(small.path.c_str(), O_RDONLY | O_CLOEXEC));
  REQUIRE(::lseek(fd.get(), 77, SEEK_SET) == 77);
  const std::string name = "fd " + std::to_string(fd.get());
  const auto by_fd = open_fd(fd.get());
  REQUIRE(by_fd.status == KC_OK);
  CHECK(::lseek(fd.get(), 0, SEEK_CUR) == 77);
  fd.reset();
  check_all_readable(by_fd.handle, small.input);
  CHECK(kc_file_get_info(by_fd.handle.get(), 0)->path == name);

  const base::Bytes bytes = read_all(small.path);
  const auto from_memory = open_memory(bytes);
  REQUIRE(from_memory.status == KC_OK);
  check_all_readable(from_memory.handle, small.input);
  CHECK(std::string(kc_file_get_info(from_memory.handle.get(), 0)->path) == "memory");
}

TEST_CASE("an entry outlives its bundle and keeps the file open") {
  const Small small;
  auto bundle = open_path(small.path);
  const auto entry = entry_at(bundle.handle, 3);
  REQUIRE(entry.status == KC_OK);
  bundle.handle.reset();
  const auto code = read(entry.handle.get());
  CHECK(code.status == KC_OK);
  CHECK(code.bytes == code_of(small.input, kc_entry_get_info(entry.handle.get())->unit));
}

TEST_CASE("what cannot be opened or read is an error of input and output") {
  const Small small;
  CHECK(open_path(small.folder / "missing").status == KC_ERROR_IO);
  CHECK(contains(open_path(small.folder / "missing").message, "missing"));
  CHECK(open_path(small.folder / ".").status == KC_ERROR_IO);
  CHECK(open_path("").status == KC_ERROR_IO);
  REQUIRE(::mkfifo((small.folder / "fifo").c_str(), 0600) == 0);
  CHECK(open_path(small.folder / "fifo").status == KC_ERROR_IO);
  CHECK(open_fd(-1).status == KC_ERROR_ARGUMENT);
  CHECK(open_fd(1'000'000).status == KC_ERROR_IO);
  const base::FileDescriptor only_written(::open(small.path.c_str(), O_WRONLY | O_CLOEXEC));
  CHECK(open_fd(only_written.get()).status == KC_ERROR_IO);
  const base::FileDescriptor only_a_path(::open(small.path.c_str(), O_PATH | O_CLOEXEC));
  CHECK(open_fd(only_a_path.get()).status == KC_ERROR_IO);
}

TEST_CASE("what is no bundle and what is one of a newer format are told apart from damage") {
  const Small small;
  const base::Bytes whole = read_all(small.path);
  CHECK(open_memory(base::as_bytes("\x7f"
                                   "ELF and more"))
            .status == KC_ERROR_DAMAGED);
  const uint8_t none = 0;
  CHECK(open_memory({&none, 0}).status == KC_ERROR_DAMAGED);
  const std::string changed = small.folder / "changed.kcb";
  const auto status_of = [&](const Image& image) {
    write_file(changed, image.bytes);
    const base::FileDescriptor fd(::open(changed.c_str(), O_RDONLY | O_CLOEXEC));
    const kc_status status = open_path(changed).status;
    CHECK(open_fd(fd.get()).status == status);
    CHECK(open_memory(image.bytes).status == status);
    return status;
  };
  Image image(small.path);
  image.put<uint16_t>(8, 2);
  CHECK(status_of(image) == KC_ERROR_DAMAGED);
  CHECK(status_of(image.seal_header()) == KC_ERROR_VERSION);
  CHECK(contains(open_path(changed).message, "newer kc"));
  image.put<uint16_t>(8, 0);
  CHECK(status_of(image.seal_header()) == KC_ERROR_DAMAGED);
  image.put<uint16_t>(8, 1);
  image.put<uint32_t>(16, 4);  // a required flag that is not known
  CHECK(status_of(image.seal_header()) == KC_ERROR_VERSION);
  image.put<uint32_t>(16, 0);
  CHECK(status_of(image.seal_header()) == KC_OK);
  // A newer header of another size.
  image.put<uint16_t>(8, 2);
  image.put<uint32_t>(12, 1024);
  image.digest_of(0, 992, 992);
  CHECK(status_of(image) == KC_ERROR_VERSION);
}

TEST_CASE("no beginning of a bundle opens") {
  const Small small;
  const base::Bytes bytes = read_all(small.path);
  for (size_t size = 0; size < bytes.size(); ++size) {
    kc_bundle* bundle = nullptr;
    const kc_status status = kc_open_memory(bytes.data(), size, nullptr, &bundle, nullptr);
    if (status == KC_ERROR_DAMAGED && bundle == nullptr) continue;
    CAPTURE(size);
    CHECK(status == KC_ERROR_DAMAGED);
    kc_close(bundle);
  }
}

TEST_CASE("a thousand bundles that are opened and closed leave no memory and no descriptor") {
  const Small small;
  const base::Bytes bytes = read_all(small.path);
  const auto once = [&](bool verify) {
    const auto by_path = open_path(small.path);
    const auto from_memory = open_memory(bytes);
    const auto set = join({by_path.handle.get(), from_memory.handle.get()});
    const auto entry = find(set.handle, "matmul", nullptr, "sm_90");
    REQUIRE(entry.status == KC_OK);
    CHECK(read(entry.handle.get()).status == KC_OK);
    CHECK(find(set.handle, "matmull", nullptr, "sm_90").status == KC_ERROR_NOT_FOUND);
    if (verify) CHECK(kc_verify(set.handle.get(), nullptr) == KC_OK);
  };
  once(true);
  const size_t descriptors = open_descriptors();
  // Not counted under sanitizers, which look for leaks themselves.
  const size_t memory = mallinfo2().uordblks;
  for (int i = 0; i < 1000; ++i) once(i % 100 == 0);
  CHECK(open_descriptors() == descriptors);
  CHECK(mallinfo2().uordblks < memory + (64U << 10));
}

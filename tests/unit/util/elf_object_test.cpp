#include "util/elf_object.h"

#include <doctest/doctest.h>
#include <elf.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <random>
#include <string>
#include <string_view>

#include "base/files.h"
#include "support/shared_object.h"
#include "support/temp_folder.h"

namespace {

using kc::base::Result;
using kc::test::SharedObject;
using kc::test::TempFolder;
using kc::test::write_shared_object;
using kc::util::ElfObject;
using kc::util::read_elf_object;

Result<ElfObject> read(const TempFolder& folder, std::string_view content) {
  const std::string path = folder.write("object", content);
  const auto fd = kc::base::open_at(AT_FDCWD, path, O_RDONLY);
  REQUIRE(fd);
  return read_elf_object(fd->get(), path);
}

std::string why_not(const TempFolder& folder, std::string_view content) {
  const auto object = read(folder, content);
  REQUIRE_FALSE(object);
  CHECK(object.error().kind == kc::base::ErrorKind::kEnvironment);
  return object.error().message;
}

SharedObject example() {
  SharedObject out;
  out.needed = {"libone.so.1", "libc.so.6", "sub/libtwo.so"};
  out.run_path = "$ORIGIN/../lib:/opt/lib";
  out.r_path = "/never/looked/at";
  return out;
}

template <typename T>
void put(std::string& bytes, size_t at, T value) {
  REQUIRE(at + sizeof value <= bytes.size());
  std::memcpy(bytes.data() + at, &value, sizeof value);
}
// Offsets of fields in the header, and of the program header of number `index`.
constexpr size_t kHeaders = offsetof(Elf64_Ehdr, e_phoff);
constexpr size_t kHeaderCount = offsetof(Elf64_Ehdr, e_phnum);
constexpr size_t segment(size_t index) {
  return sizeof(Elf64_Ehdr) + index * sizeof(Elf64_Phdr);
}

}  // namespace

TEST_CASE("what a shared library needs and its build id are read") {
  const TempFolder folder;
  const auto object = read(folder, write_shared_object(example()));
  REQUIRE_MESSAGE(object, (object ? "" : object.error().text()));
  CHECK(object->machine == kc::util::host_elf_machine());
  CHECK(object->is_64);
  CHECK(object->is_shared);
  CHECK(object->needed == std::vector<std::string>{"libone.so.1", "libc.so.6", "sub/libtwo.so"});
  CHECK(object->search_path == std::vector<std::string>{"$ORIGIN/../lib", "/opt/lib"});
  CHECK(kc::base::as_text(object->build_id) == "0123456789abcdef0123");
}

TEST_CASE("the older search path counts only without the newer one") {
  const TempFolder folder;
  SharedObject old = example();
  old.run_path.clear();
  CHECK(read(folder, write_shared_object(old))->search_path == std::vector<std::string>{"/never/looked/at"});
}

TEST_CASE("this very program and its C library are read as what they are") {
  const auto self = kc::base::open_at(AT_FDCWD, "/proc/self/exe", O_RDONLY);
  REQUIRE(self);
  const auto program = read_elf_object(self->get(), "self");
  REQUIRE_MESSAGE(program, (program ? "" : program.error().text()));
  CHECK(program->machine == kc::util::host_elf_machine());
  CHECK_FALSE(program->is_shared);
  CHECK(std::ranges::count(program->needed, "libc.so.6") == 1);
}

TEST_CASE("programs and object files are no shared libraries") {
  const TempFolder folder;
  SharedObject object;
  object.flags_1 = DF_1_PIE;
  CHECK_FALSE(read(folder, write_shared_object(object))->is_shared);
  object = {};
  object.type = ET_EXEC;
  CHECK_FALSE(read(folder, write_shared_object(object))->is_shared);
  object.type = ET_REL;
  CHECK_FALSE(read(folder, write_shared_object(object))->is_shared);
}

TEST_CASE("objects of other machines are named and looked into no further") {
  const TempFolder folder;
  SharedObject object = example();
  object.machine = EM_RISCV;
  CHECK(kc::util::elf_machine_name(read(folder, write_shared_object(object))->machine) == "RISC-V");
  CHECK(kc::util::elf_machine_name(999) == "machine 999");

  std::string small = write_shared_object(example());
  small[EI_CLASS] = ELFCLASS32;
  put<uint16_t>(small, offsetof(Elf64_Ehdr, e_machine), EM_386);
  const auto i386 = read(folder, small);
  REQUIRE(i386);
  CHECK_FALSE(i386->is_64);
  CHECK(kc::util::elf_machine_name(i386->machine) == "i386");
  CHECK(i386->needed.empty());

  std::string big = write_shared_object(example());
  big[EI_DATA] = ELFDATA2MSB;
  put<uint16_t>(big, offsetof(Elf64_Ehdr, e_machine), __builtin_bswap16(EM_S390));
  CHECK(kc::util::elf_machine_name(read(folder, big)->machine) == "S/390");
}

TEST_CASE("what is no ELF file at all is said in other words than damage") {
  const TempFolder folder;
  CHECK(why_not(folder, "").ends_with("is empty"));
  CHECK(why_not(folder, "#!/bin/sh\nexit 0\n").ends_with("is no ELF file"));
  CHECK(why_not(folder,
                "\x7F"
                "EL")
            .ends_with("is no ELF file"));
  CHECK(why_not(folder,
                "\x7F"
                "ELF\2\1\1")
            .find("damaged") != std::string::npos);
}

TEST_CASE("sizes and places that lie are damage") {
  const TempFolder folder;
  const std::string good = write_shared_object(example());
  const auto damaged = [&](auto change) {
    std::string bytes = good;
    change(bytes);
    return why_not(folder, bytes).find("is a damaged ELF file") != std::string::npos;
  };
  CHECK(damaged([](std::string& bytes) { put<uint64_t>(bytes, kHeaders, UINT64_MAX); }));
  CHECK(damaged([](std::string& bytes) { put<uint64_t>(bytes, kHeaders, UINT64_MAX - 100); }));
  CHECK(damaged([](std::string& bytes) { put<uint16_t>(bytes, kHeaderCount, 0xFFFF); }));
  CHECK(damaged([](std::string& bytes) { put<uint16_t>(bytes, kHeaderCount, 200); }));
  CHECK(damaged([](std::string& bytes) { put<uint16_t>(bytes, offsetof(Elf64_Ehdr, e_phentsize), 1); }));
  CHECK(damaged([](std::string& bytes) {
    put<uint64_t>(bytes, segment(1) + offsetof(Elf64_Phdr, p_filesz), UINT64_MAX);
  }));
  CHECK(damaged([](std::string& bytes) {
    put<uint64_t>(bytes, segment(1) + offsetof(Elf64_Phdr, p_filesz), 1 << 30);
  }));
  CHECK(damaged([](std::string& bytes) {
    put<uint64_t>(bytes, segment(1) + offsetof(Elf64_Phdr, p_offset), UINT64_MAX);
  }));
  CHECK(damaged([](std::string& bytes) {
    put<uint64_t>(bytes, segment(2) + offsetof(Elf64_Phdr, p_offset), UINT64_MAX - 4);
  }));
  // The names are nowhere when no segment holds them, or when one claims what the file does not have.
  CHECK(damaged(
      [](std::string& bytes) { put<uint64_t>(bytes, segment(0) + offsetof(Elf64_Phdr, p_filesz), 16); }));
  CHECK(damaged([](std::string& bytes) {
    put<uint64_t>(bytes, segment(0) + offsetof(Elf64_Phdr, p_offset), UINT64_MAX);
  }));
  const size_t name = segment(3) + offsetof(Elf64_Dyn, d_un);  // the first DT_NEEDED
  CHECK(damaged([&](std::string& bytes) { put<uint64_t>(bytes, name, UINT64_MAX); }));
  CHECK(damaged([&](std::string& bytes) { put<uint64_t>(bytes, name, 5000); }));
}

TEST_CASE("more needed libraries than any has are refused") {
  const TempFolder folder;
  SharedObject object;
  object.needed.assign(300, "lib.so");
  CHECK(why_not(folder, write_shared_object(object)).find("too many") != std::string::npos);
}

TEST_CASE("a note that is not whole gives no build id") {
  const TempFolder folder;
  std::string bytes = write_shared_object(example());
  put<uint64_t>(bytes, segment(2) + offsetof(Elf64_Phdr, p_filesz), 20);
  CHECK(read(folder, bytes)->build_id.empty());
}

TEST_CASE("any truncation and any changed byte is answered without harm") {
  const TempFolder folder;
  const std::string good = write_shared_object(example());
  for (size_t size = 0; size < good.size(); ++size) static_cast<void>(read(folder, good.substr(0, size)));
  std::mt19937 random(5);  // NOLINT: the same each time
  for (int round = 0; round < 2000; ++round) {
    std::string bytes = good;
    for (int i = 0; i < 3; ++i) bytes[random() % bytes.size()] = static_cast<char>(random());
    const auto object = read(folder, bytes);
    if (object) CHECK(object->needed.size() <= 256);
  }
}

#include "base/files.h"

#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <string>
#include <vector>

#include "support/temp_folder.h"

using namespace kc::base;
using kc::test::content_of;
using kc::test::TempFolder;

namespace fs = std::filesystem;

namespace {

bool contains(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("a file is read whole up to the limit and refused beyond it") {
  const TempFolder folder;
  const std::string path = folder.write("f", "12345");
  CHECK(read_file(path, 5) == Bytes{'1', '2', '3', '4', '5'});
  const auto refused = read_file(path, 4);
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().text() == path + ": has 5 bytes; at most 4 are read");
  CHECK(read_file(folder.write("empty", ""), 0) == Bytes{});
}

TEST_CASE("a sparse file of a terabyte is refused at once") {
  const TempFolder folder;
  const std::string path = folder.write("f", "");
  if (truncate(path.c_str(), off_t{1} << 40) == 0) CHECK_FALSE(read_file(path, 1U << 20).has_value());
}

TEST_CASE("what is no regular file is named as such and does not hang") {
  const TempFolder folder;
  CHECK(contains(read_file(folder.path(), 10).error().text(), "is a directory"));
  const std::string fifo = folder / "fifo";
  REQUIRE(mkfifo(fifo.c_str(), 0600) == 0);
  CHECK(contains(read_file(fifo, 10).error().text(), "is not a regular file"));
  CHECK(contains(read_file("/dev/zero", 10).error().text(), "is not a regular file"));
}

TEST_CASE("a missing file is an error of the kind that the caller gives") {
  const auto result = read_file("/no/such/file", 10, nullptr, ErrorKind::kEnvironment);
  REQUIRE_FALSE(result.has_value());
  CHECK(result.error().kind == ErrorKind::kEnvironment);
  CHECK(result.error().sys_errno == ENOENT);
  CHECK(result.error().message == "cannot open /no/such/file: No such file or directory");
}

TEST_CASE("a tuple tells one version of a file from the next") {
  const TempFolder folder;
  const std::string path = folder.write("f", "a");
  FileTuple read;
  REQUIRE(read_file(path, 10, &read).has_value());
  CHECK(read == stat_tuple(path).value());
  CHECK(read.size == 1);
  folder.write("other", "ab");
  fs::rename(folder / "other", path);
  CHECK(read != stat_tuple(path).value());
  CHECK(stat_tuple(folder / "missing").error().sys_errno == ENOENT);

  ByteWriter out;
  write_tuple(out, read);
  ByteReader in(out.bytes());
  CHECK(read_tuple(in) == read);
  CHECK(in.complete());
}

TEST_CASE("a tuple is settled when both its times are old enough") {
  const int64_t now = 100 * kSettledNs;
  CHECK(is_settled({1, 1, 1, now - kSettledNs, now - kSettledNs}, now));
  CHECK_FALSE(is_settled({1, 1, 1, now - kSettledNs + 1, now - kSettledNs}, now));
  CHECK_FALSE(is_settled({1, 1, 1, 0, now - kSettledNs + 1}, now));
  CHECK_FALSE(is_settled({1, 1, 1, now + 1, 0}, now));  // from the future
  const TempFolder folder;
  CHECK_FALSE(is_settled(stat_tuple(folder.write("f", "")).value(), wall_clock_ns()));
}

TEST_CASE("exact reads give the bytes asked for or say that the file ends") {
  const TempFolder folder;
  const FileDescriptor fd = open_at(AT_FDCWD, folder.write("f", "0123456789"), O_RDONLY).value();
  CHECK(pread_exact(fd.get(), 3, 4, "f") == Bytes{'3', '4', '5', '6'});
  CHECK(pread_exact(fd.get(), 10, 0, "f") == Bytes{});
  const auto beyond = pread_exact(fd.get(), 8, 3, "f");
  REQUIRE_FALSE(beyond.has_value());
  CHECK(beyond.error().kind == ErrorKind::kFailed);
  CHECK(contains(beyond.error().text(), "ends early"));
}

TEST_CASE("writes put all bytes at the place asked for") {
  const TempFolder folder;
  const FileDescriptor fd = open_at(AT_FDCWD, folder / "f", O_RDWR | O_CREAT, 0600).value();
  CHECK(write_all(fd.get(), as_bytes("abcdef"), "f").has_value());
  CHECK(pwrite_all(fd.get(), as_bytes("XY"), 2, "f").has_value());
  CHECK(content_of(folder / "f") == "abXYef");
  CHECK((fcntl(fd.get(), F_GETFD) & FD_CLOEXEC) != 0);
}

TEST_CASE("a full device is an error that says so") {
  const auto fd = open_at(AT_FDCWD, "/dev/full", O_WRONLY);
  if (!fd) return;  // a sandbox without it
  const auto result = write_all(fd->get(), as_bytes("x"), "/dev/full");
  REQUIRE_FALSE(result.has_value());
  CHECK(result.error().sys_errno == ENOSPC);
  CHECK(result.error().kind == ErrorKind::kEnvironment);
}

TEST_CASE("a descriptor is closed once by its last owner") {
  const TempFolder folder;
  FileDescriptor first = open_at(AT_FDCWD, folder.path(), O_RDONLY).value();
  const int number = first.get();
  FileDescriptor second = std::move(first);
  CHECK(second.get() == number);
  CHECK(fcntl(number, F_GETFD) != -1);
  second = FileDescriptor();
  CHECK(fcntl(number, F_GETFD) == -1);
}

TEST_CASE("directories are made with what is missing above them") {
  const TempFolder folder;
  CHECK(make_directories(folder / "a/b/c", 0700).has_value());
  struct stat status {};
  REQUIRE(stat((folder / "a/b/c").c_str(), &status) == 0);
  CHECK((status.st_mode & 0777) == 0700);
  CHECK(make_directories(folder / "a/b/c").has_value());
  CHECK(make_directories(folder / "a/./d/").has_value());
  CHECK(fs::is_directory(folder / "a/d"));
  CHECK(make_directories("").has_value());
  folder.write("file", "");
  CHECK(make_directories(folder / "file").error().sys_errno == ENOTDIR);
  CHECK(make_directories(folder / "file/below").error().kind == ErrorKind::kEnvironment);
}

TEST_CASE("removing a tree does not follow symbolic links") {
  const TempFolder folder;
  folder.write("kept/file", "kept");
  folder.write("tree/a/b/file", "gone");
  fs::create_directory_symlink(folder / "kept", folder / "tree/a/link");
  fs::create_symlink(folder / "kept/file", folder / "tree/file-link");
  CHECK(remove_tree(folder / "tree").has_value());
  CHECK_FALSE(fs::exists(folder / "tree"));
  CHECK(content_of(folder / "kept/file") == "kept");
  // The root itself may be a link: the link goes, its target stays.
  fs::create_directory_symlink(folder / "kept", folder / "root-link");
  CHECK(remove_tree(folder / "root-link").has_value());
  CHECK_FALSE(fs::is_symlink(folder / "root-link"));
  CHECK(content_of(folder / "kept/file") == "kept");
  CHECK(remove_tree(folder / "missing").has_value());
  CHECK(remove_tree(folder / "kept/file").has_value());
  CHECK_FALSE(fs::exists(folder / "kept/file"));
}

TEST_CASE("a directory is listed in order without dot entries") {
  const TempFolder folder;
  for (const char* name : {"b", "a", ".hidden", "B", "a/inner"}) {
    if (std::string_view(name) == "a") continue;
    folder.write(name, "");
  }
  CHECK(list_directory(AT_FDCWD, folder.path()) == std::vector<std::string>{".hidden", "B", "a", "b"});
  CHECK_FALSE(list_directory(AT_FDCWD, folder / "b").has_value());
}

TEST_CASE("paths are taken apart and joined by their text") {
  CHECK(join_path("a", "b") == "a/b");
  CHECK(join_path("a/", "b") == "a/b");
  CHECK(join_path("", "b") == "b");
  CHECK(join_path("a", "/b") == "/b");
  CHECK(parent_path("a/b") == "a");
  CHECK(parent_path("a") == ".");
  CHECK(parent_path("/a") == "/");
  CHECK(file_name("a/b") == "b");
  CHECK(file_name("a") == "a");
  CHECK(file_name("a/").empty());
}

TEST_CASE("absolute paths are normal without a look at the disk") {
  CHECK(absolute_path("/a/./b/../c/") == "/a/c");
  CHECK(absolute_path("/") == "/");
  CHECK(absolute_path("x") == fs::current_path().string() + "/x");
}

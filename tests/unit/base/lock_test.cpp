#include "base/lock.h"

#include <doctest/doctest.h>
#include <fcntl.h>

#include <string>

#include "base/files.h"
#include "support/temp_folder.h"

using namespace kc::base;
using kc::test::TempFolder;

TEST_CASE("two open descriptions of one file exclude each other byte by byte") {
  const TempFolder folder;
  const std::string path = folder.write("locks", "");
  const FileDescriptor first = open_at(AT_FDCWD, path, O_RDWR).value();
  FileDescriptor second = open_at(AT_FDCWD, path, O_RDWR).value();
  const uint64_t offset = (uint64_t{1} << 62) - 1;  // the last that a key can name
  CHECK(try_lock_byte(first.get(), offset) == true);
  CHECK(try_lock_byte(second.get(), offset) == false);
  CHECK(try_lock_byte(second.get(), offset - 1) == true);
  CHECK(try_lock_byte(first.get(), offset - 1) == false);
  CHECK(try_lock_byte(first.get(), offset) == true);  // one's own again

  CHECK(unlock_byte(first.get(), offset).has_value());
  CHECK(try_lock_byte(second.get(), offset) == true);
  CHECK(try_lock_byte(first.get(), offset) == false);
  second.reset();  // closing gives all back
  CHECK(try_lock_byte(first.get(), offset) == true);
  CHECK(try_lock_byte(first.get(), offset - 1) == true);
}

TEST_CASE("a descriptor that cannot be locked is an error and not a busy lock") {
  const TempFolder folder;
  const FileDescriptor read_only = open_at(AT_FDCWD, folder.write("locks", ""), O_RDONLY).value();
  CHECK_FALSE(try_lock_byte(read_only.get(), 1).has_value());
  CHECK_FALSE(try_lock_byte(-1, 1).has_value());
  CHECK_FALSE(unlock_byte(-1, 1).has_value());
}

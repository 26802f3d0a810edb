#include "build/lock_file.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "backend/content_key.h"
#include "base/digest.h"

namespace {

namespace backend = kc::backend;
using kc::base::sha256;
using kc::build::difference;
using kc::build::is_of_our_keys;
using kc::build::lock_text;
using kc::build::locked_from;
using kc::build::LockedCompiler;
using kc::build::LockFile;
using kc::build::parse_lock;

backend::Compiler compiler(std::string_view name,
                           const std::vector<std::pair<std::string, std::string>>& files) {
  backend::Compiler out;
  out.backend = name;
  out.program = "/opt/secret/place";
  for (const auto& [role, content] : files) {
    out.files.push_back({role, "/opt/secret/" + role, {}, sha256(content)});
  }
  out.identity = backend::identity_of(out);
  return out;
}

backend::Compiler tileiras() {
  return compiler("tileiras", {{"tileiras", "program"}, {"ptxas", "assembler"}, {"libnvvm", "nvvm"}});
}

LockFile lock_of(const std::vector<backend::Compiler>& compilers) {
  LockFile out;
  for (const backend::Compiler& each : compilers) out.set(locked_from(each, "13.4.92"));
  return out;
}

std::string replaced(std::string text, std::string_view what, std::string_view by) {
  const size_t at = text.find(what);
  REQUIRE(at != std::string::npos);
  return text.replace(at, what.size(), by);
}

std::string fault_of(const std::string& text) {
  const auto read = parse_lock("dir/kc.lock", text);
  return read ? "" : read.error().text();
}

}  // namespace

TEST_CASE("a lock file reads back as what was written and holds no path") {
  const LockFile lock =
      lock_of({tileiras(), compiler("loom", {{"libloomc", "a"}, {"beside:libloom core.so", "b"}})});
  const std::string text = lock_text(lock);
  CHECK(text.find("/opt") == std::string::npos);
  const auto read = parse_lock("kc.lock", text);
  REQUIRE_MESSAGE(read, fault_of(text));
  CHECK(read->compilers == lock.compilers);
  CHECK(lock_text(*read) == text);
  REQUIRE(read->find("loom") != nullptr);
  CHECK(read->compilers.front().backend == "loom");  // sorted, whatever was found first
  CHECK(read->find("tileiras")->identity == tileiras().identity);
  CHECK(read->find("tileiras")->version == "13.4.92");
  CHECK(is_of_our_keys(*read->find("tileiras")));
  CHECK(read->find("cutile") == nullptr);
}

TEST_CASE("roles of any bytes survive the text of a lock file") {
  std::string all = "beside:";
  for (int c = 1; c < 256; ++c) all += static_cast<char>(c);
  const std::vector<std::string> roles = {
      all,     "beside:libx.so lacks liby.so", "a: b", "a #b", "[x]", "%41", " a ", "-", "needed:'\"\\",
      "above:"};
  for (const std::string& role : roles) {
    CAPTURE(role);
    const LockFile lock = lock_of({compiler("loom", {{role, "content"}})});
    const auto read = parse_lock("kc.lock", lock_text(lock));
    REQUIRE_MESSAGE(read, fault_of(lock_text(lock)));
    CHECK(read->compilers == lock.compilers);
  }
}

TEST_CASE("a version that is no plain text is left out of a lock file") {
  for (const std::string& version :
       {std::string("a\"b"), std::string("a\nb"), std::string("\x1b[31m"), std::string(101, 'x')}) {
    CAPTURE(version);
    CHECK(locked_from(tileiras(), version).version.empty());
  }
  CHECK(locked_from(tileiras(), "G4 0.1.0").version == "G4 0.1.0");
}

TEST_CASE("a lock file of one machine keeps what it says of another kind") {
  LockFile lock = lock_of({tileiras()});
  LockedCompiler other = lock.compilers.front();
  other.host = backend::kHostArchitecture == "x86_64" ? "aarch64" : "x86_64";
  other.version = "of the other";
  lock.set(other);
  REQUIRE(lock.compilers.size() == 2);
  lock.set(locked_from(compiler("tileiras", {{"tileiras", "newer"}}), ""));
  REQUIRE(lock.compilers.size() == 2);
  CHECK(std::ranges::count(lock.compilers, other) == 1);
  CHECK(lock.find("tileiras")->files.size() == 1);
  CHECK(lock.compilers.front().host == "aarch64");  // sorted
}

TEST_CASE("the difference between two compilers names each file with both digests") {
  const LockedCompiler locked = locked_from(tileiras(), "");
  CHECK(difference(locked, tileiras()).empty());
  const auto found =
      compiler("tileiras", {{"tileiras", "program"}, {"ptxas", "another"}, {"libdevice", "device"}});
  const auto brief = [](std::string_view content) { return sha256(content).hex().substr(0, 12); };
  CHECK(difference(locked, found) == "ptxas " + brief("assembler") + " -> " + brief("another") +
                                         ", libnvvm " + brief("nvvm") + " is not there and libdevice " +
                                         brief("device") + " is new");
  const auto reordered =
      compiler("tileiras", {{"ptxas", "assembler"}, {"tileiras", "program"}, {"libnvvm", "nvvm"}});
  CHECK(difference(locked, reordered) == "the same files in another order");
}

TEST_CASE("a compiler whose keys would be of another format is recognised in a lock file") {
  LockedCompiler locked = locked_from(tileiras(), "");
  CHECK(is_of_our_keys(locked));
  LockedCompiler other = locked;
  ++other.adapter;
  CHECK_FALSE(is_of_our_keys(other));
  other = locked;
  other.keys.back() += "x";
  CHECK_FALSE(is_of_our_keys(other));
  other = locked;
  other.keys.pop_back();
  CHECK_FALSE(is_of_our_keys(other));
}

TEST_CASE("a lock file that is wrong in any field says where and why") {
  const std::string good = lock_text(lock_of({tileiras()}));
  REQUIRE(fault_of(good).empty());
  struct Case {
    std::string what, by, message;
  };
  const std::string identity = tileiras().identity.hex();
  const Case cases[] = {
      {"version: 1", "version: 2", "dir/kc.lock:2:10: is of version 2"},
      {"version: 1\n", "", "version is missing"},
      {"compilers:", "compiler:", "\"compiler\" is nothing that a lock file says"},
      {"    host: x86_64\n", "", "host is missing"},
      {"    adapter:", "    adapters:", "adapter is missing"},
      {"adapter: ", "adapter: -", "adapter is not a number"},
      {"identity: ", "identity: 0", "identity is not 64 hexadecimal digits"},
      {identity, sha256("another").hex(), "the identity of tileiras is not that of its files"},
      {"role: ptxas", "role: ptxas2", "the identity of tileiras is not that of its files"},
      {"role: ptxas", "role: \"%4\"", "role is not the part"},
      {"role: ptxas", "part: ptxas", "role is missing"},
      {"role: ptxas", "role: ptxas, x: y", "\"x\" is nothing"},
      {"keys: [", "keys: [\"a b\", ", "is no domain of keys"},
      {"    compiler:", "    extra: 1\n    compiler:", "\"extra\" is nothing"},
      {"backend: tileiras", "backend: \"tile iras\"", "is no backend"},
      {"files:\n", "files: x\n", ""},
  };
  for (const Case& each : cases) {
    if (each.what.find("x86_64") != std::string::npos && backend::kHostArchitecture != "x86_64") continue;
    CAPTURE(each.by);
    const std::string fault = fault_of(replaced(good, each.what, each.by));
    CHECK_FALSE(fault.empty());
    CHECK(fault.find(each.message) != std::string::npos);
    CHECK(fault.find("dir/kc.lock") != std::string::npos);
  }
  // An identity of a domain that this kc does not know cannot be checked, and is taken.
  CHECK(fault_of(replaced(replaced(good, "kc-compiler-v1", "kc-compiler-v9"), identity, sha256("x").hex()))
            .empty());
  const size_t item = good.find("  - backend");
  CHECK(fault_of(good + good.substr(item)).find("tileiras on") != std::string::npos);
}

TEST_CASE("text that is no lock file at all is refused whatever it is") {
  const std::string good = lock_text(lock_of({tileiras()}));
  for (const std::string& text :
       {std::string(), std::string("version: 1"), std::string("[1, 2]"), std::string("x"),
        std::string("version: 1\ncompilers: {}\n"), std::string("version: 1\ncompilers: [1]\n"),
        std::string("version: 1\ncompilers: [[]]\n"),
        std::string("version: 1\ncompilers:\n  - backend: tileiras\n    files: []\n"), std::string("\x01"),
        "<<<<<<< ours\n" + good}) {
    CAPTURE(text);
    CHECK_FALSE(fault_of(text).empty());
  }
  // Cut anywhere, it is not taken for the whole, except where only the last line end is gone.
  for (size_t size = 0; size + 1 < good.size(); ++size) {
    const auto read = parse_lock("kc.lock", std::string_view(good).substr(0, size));
    if (read) CHECK_MESSAGE(read->compilers != lock_of({tileiras()}).compilers, size);
  }
}

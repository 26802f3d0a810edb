// Which requests a link answers alike.
#include <doctest/doctest.h>

#include <memory>
#include <set>
#include <string>
#include <utility>

#include "backend/loom/run/module_digests.h"
#include "base/digest.h"
#include "target/target.h"

namespace {

using kc::backend::CompileRequest;
using kc::backend::SourceSet;
using kc::backend::loom::ModuleDigests;
using kc::base::sha256;

CompileRequest request_of(uint32_t set, std::string entry, kc::backend::Pairs config) {
  CompileRequest out;
  auto sources = std::make_shared<SourceSet>();
  sources->id = set;
  out.sources = std::move(sources);
  out.entry = std::move(entry);
  out.config = std::move(config);
  return out;
}

}  // namespace

TEST_CASE("sources and entry and configuration tell links apart and nothing else does") {
  std::set<kc::base::Digest> keys;
  for (const uint32_t set : {1U, 2U}) {
    for (const char* entry : {"a", "b"}) {
      for (const kc::backend::Pairs& config : {kc::backend::Pairs{},
                                               {{"k", "1"}},
                                               {{"k", "2"}},
                                               {{"k1", ""}},
                                               {{"k", "1"}, {"l", "2"}},
                                               {{"l", "2"}, {"k", "1"}},
                                               {{"k", "1l2"}}}) {
        CHECK(keys.insert(ModuleDigests::key(request_of(set, entry, config))).second);
      }
    }
  }
  CompileRequest other = request_of(1, "a", {{"k", "1"}});
  const kc::base::Digest key = ModuleDigests::key(other);
  other.target = *kc::target::parse_target("gfx942");
  other.options = {{"report", "summary"}};
  other.folder = "/somewhere";
  other.timeout = kc::util::Nanoseconds{1};
  CHECK(ModuleDigests::key(other) == key);
}

TEST_CASE("a table of modules that is full keeps what it has") {
  ModuleDigests digests(2);
  CHECK_FALSE(digests.find(sha256("a")));
  for (const char* name : {"a", "b", "c"})
    digests.add(sha256(name), sha256(std::string("module of ") + name));
  CHECK(digests.find(sha256("a")) == sha256("module of a"));
  CHECK(digests.find(sha256("b")) == sha256("module of b"));
  CHECK_FALSE(digests.find(sha256("c")));
  digests.add(sha256("a"), sha256("another"));
  CHECK(digests.find(sha256("a")) == sha256("module of a"));
}

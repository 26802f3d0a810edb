// Writes a bundle of made-up records, for tests that need what no compiler at hand makes.
//
//   make_bundle FILE < LINES
//
// Each line of stdin is a JSON object; fields that are missing have the defaults of bundle::Record, or what
// is given here. One with `bundle` is about the bundle: "bundle" (its name), "release", "partial", "subset".
// All others are records: "kernel", "specialization", "target" ["sm_90"], "found_target" [target], "default",
// "compiler_version" ["13.4.92"], "compiler_identity" (64 digits), "toolkit" ["13.4"], "lowest_driver",
// "entry" [kernel], "key" (64 digits), "registers", "local_memory", "spills", "scalar_registers",
// "shared_memory", "arguments" (sizes, one behind the other), "metadata" (object), "code" (text of the code
// object [unit's name]).
#include <fcntl.h>

#include <cstdio>
#include <exception>
#include <iostream>
#include <string>
#include <vector>

#include "base/digest.h"
#include "base/files.h"
#include "bundle/bundle.h"
#include "util/json.h"

namespace kc::test {
namespace {

using util::Json;

bundle::Record record_of(const Json& line) {
  bundle::Record record;
  record.kernel = line.at("kernel").get<std::string>();
  record.specialization = line.value("specialization", "");
  record.target = line.value("target", "sm_90");
  record.found_target = line.value("found_target", record.target);
  record.backend = record.compiler = "tileiras";
  record.entry = record.symbol = record.facts.symbol = line.value("entry", record.kernel);
  record.is_default = line.value("default", false);
  record.compiler_version = line.value("compiler_version", "13.4.92");
  record.compiler_identity = base::parse_digest(line.value("compiler_identity", "")).value_or(base::Digest());
  record.toolkit = line.value("toolkit", "13.4");
  record.lowest_driver = line.value("lowest_driver", 0U);
  record.content_key = base::parse_digest(line.value("key", "")).value_or(base::sha256(line.dump()));
  artifact::KernelFacts& facts = record.facts;
  facts.registers = line.value("registers", 32U);
  facts.local_memory = line.value("local_memory", 0U);
  if (line.contains("spills")) facts.spills = line["spills"].get<uint32_t>();
  if (line.contains("scalar_registers")) facts.scalar_registers = line["scalar_registers"].get<uint32_t>();
  facts.shared_memory = line.value("shared_memory", 0U);
  for (const uint32_t size : line.value("arguments", std::vector<uint32_t>{})) {
    facts.arguments.push_back({facts.argument_bytes, size});
    facts.argument_bytes += size;
  }
  const Json metadata = line.value("metadata", Json::object());
  for (const auto& [name, value] : metadata.items()) record.metadata.emplace_back(name, value);
  return record;
}

int run(const char* path) {
  bundle::Info info{"made", 0, false, false};
  std::vector<bundle::Record> records;
  std::vector<std::string> codes;
  for (std::string text; std::getline(std::cin, text);) {
    const Json line = Json::parse(text);
    if (line.contains("bundle")) {
      info = {line["bundle"].get<std::string>(), line.value("release", uint64_t{0}),
              line.value("partial", false), line.value("subset", false)};
      continue;
    }
    records.push_back(record_of(line));
    codes.push_back(line.value("code", records.back().unit()));
  }
  const base::FileDescriptor fd(open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
  const auto written = bundle::write_bundle(fd.get(), info, records,
                                            [&](size_t index) {
                                              const base::ByteView code = base::as_bytes(codes[index]);
                                              return base::Bytes(code.begin(), code.end());
                                            },
                                            {});
  if (written) return 0;
  std::fprintf(stderr, "make_bundle: %s\n", written.error().text().c_str());
  return 1;
}

}  // namespace
}  // namespace kc::test

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  try {
    return kc::test::run(argv[1]);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "make_bundle: %s\n", error.what());
    return 2;
  }
}

// What is found: entries in their order, the configuration that is meant, the code that suits a device best,
// and what is said when there is none.
#include <doctest/doctest.h>

#include "bundles_support.h"

using namespace kc;
using namespace kc::loader::testing;

namespace {

struct Bundle {
  Folder folder;
  std::string path = folder / "b.kcb";
  BundleHandle handle;

  explicit Bundle(const Input& input) {
    REQUIRE(input.write(path));
    auto opened = open_path(path);
    REQUIRE(opened.status == KC_OK);
    handle = std::move(opened.handle);
  }
};

bundle::Record found_as(const std::string& kernel, const std::string& specialization,
                        const std::string& target, const std::string& found) {
  bundle::Record record = make_record(kernel, specialization, target);
  record.found_target = found;
  return record;
}

base::Bytes code(uint32_t seed) {
  return bundle::testing::code_object(seed);
}

}  // namespace

TEST_CASE("entries come in the order of kernel and configuration and target") {
  const Bundle bundle(bundle::testing::small_input());
  REQUIRE(kc_entry_count(bundle.handle.get()) == 12);
  std::vector<std::string> units;
  for (size_t i = 0; i < 12; ++i) {
    units.push_back(kc_entry_get_info(entry_at(bundle.handle, i).handle.get())->unit);
  }
  CHECK(units.front() == "matmul:TM=128,TN=64@gfx1151");
  CHECK(units[3] == "matmul:TM=64,TN=128@gfx1151");
  CHECK(units.back() == "vec_add@sm_90");
  const auto beyond = entry_at(bundle.handle, 12);
  CHECK(beyond.status == KC_ERROR_ARGUMENT);
  CHECK(contains(beyond.message, "no entry 12"));
  CHECK(entry_at(bundle.handle, SIZE_MAX).status == KC_ERROR_ARGUMENT);
}

TEST_CASE("an entry tells all that the bundle says of it") {
  Input input;
  bundle::Record record = make_record("matmul", "TM=64,TN=128", "sm_90");
  record.is_default = true;
  record.entry = "matmul_entry";
  record.symbol = "matmul_symbol";
  record.facts.required_block = {128, 2, 1};
  record.metadata = {{"a", std::string("x\0y", 3)}, {"owner", "attention"}, {"when", "m=64;m=128"}};
  input.add(record, code(1));
  bundle::Record amd = make_record("vec_add", "", "gfx1151");
  amd.facts.spills = 3;
  amd.facts.scalar_registers = 40;
  amd.facts.arguments.clear();
  amd.toolkit = "";
  amd.lowest_driver = 0;
  input.add(amd, code(2));
  const Bundle bundle(input);

  const auto first = entry_at(bundle.handle, 0);
  const kc_entry_info& info = *kc_entry_get_info(first.handle.get());
  CHECK(std::string(info.unit) == "matmul:TM=64,TN=128@sm_90");
  CHECK(std::string(info.kernel) == "matmul");
  CHECK(std::string(info.configuration) == "TM=64,TN=128");
  CHECK(std::string(info.target) == "sm_90");
  CHECK(std::string(info.found_target) == "sm_90a");
  CHECK(std::string(info.backend) == "tileiras");
  CHECK(std::string(info.entry) == "matmul_entry");
  CHECK(std::string(info.symbol) == "matmul_symbol");
  CHECK(info.is_default == 1);
  CHECK(std::string(info.compiler) == "tileiras");
  CHECK(std::string(info.compiler_version) == "13.4.92");
  CHECK(std::string(info.toolkit) == "13.4");
  CHECK(info.lowest_driver == 580);
  CHECK(base::digest_from(info.content_key) == record.content_key);
  CHECK(base::digest_from(info.code_digest) == base::sha256(code(1)));
  CHECK(info.code_size == 600);
  CHECK(info.registers == 96);
  CHECK(info.scalar_registers == KC_UNKNOWN);
  CHECK(info.spills == KC_UNKNOWN);
  CHECK(info.local_memory == 8);
  CHECK(info.shared_memory == 4096);
  CHECK(info.argument_bytes == 24);
  REQUIRE(info.argument_count == 3);
  CHECK(info.arguments[2].offset == 16);
  CHECK(info.arguments[2].size == 4);
  CHECK(info.required_block[0] == 128);
  CHECK(info.required_block[1] == 2);
  CHECK(info.required_block[2] == 1);
  CHECK(info.max_threads == 1024);
  CHECK(info.wave_size == 32);
  // Selection data is told apart from the manifest's metadata.
  REQUIRE(info.when != nullptr);
  CHECK(std::string(info.when) == "m=64;m=128");
  REQUIRE(info.metadata_count == 2);
  CHECK(std::string(info.metadata[0].name) == "a");
  CHECK(std::string(info.metadata[0].value, info.metadata[0].value_size + 1) == std::string("x\0y\0", 4));
  size_t size = 0;
  CHECK(std::string(kc_entry_metadata(first.handle.get(), "owner", &size)) == "attention");
  CHECK(size == 9);
  CHECK(std::string(kc_entry_metadata(first.handle.get(), "owner", nullptr)) == "attention");
  CHECK(kc_entry_metadata(first.handle.get(), "Owner", &size) == nullptr);
  CHECK(kc_entry_metadata(first.handle.get(), "when", &size) == nullptr);

  const auto second = entry_at(bundle.handle, 1);
  const kc_entry_info& other = *kc_entry_get_info(second.handle.get());
  CHECK(other.is_default == 0);
  CHECK(std::string(other.configuration).empty());
  CHECK(std::string(other.toolkit).empty());
  CHECK(other.lowest_driver == 0);
  CHECK(other.scalar_registers == 40);
  CHECK(other.spills == 3);
  CHECK(other.argument_count == 0);
  CHECK(other.metadata_count == 0);
  CHECK(other.when == nullptr);
}

TEST_CASE("a configuration is found whatever the order of its pairs") {
  const Bundle bundle(bundle::testing::small_input());
  CHECK(found(bundle.handle, "matmul", "TM=64,TN=128", "sm_90") == "matmul:TM=64,TN=128@sm_90");
  CHECK(found(bundle.handle, "matmul", "TN=128,TM=64", "sm_90") == "matmul:TM=64,TN=128@sm_90");
  CHECK(found(bundle.handle, "vec_add", "", "sm_80") == "vec_add@sm_80");
}

TEST_CASE("values may be written with or without escapes") {
  Input input;
  input.add(make_record("k", "dtype=f%3A16%2C%25,layout=row.major-1+2", "sm_90"), code(1));
  input.add(make_record("k", "dtype=,layout=%C3%A9", "sm_90"), code(2));
  const Bundle bundle(input);
  const std::string unit = "k:dtype=f%3A16%2C%25,layout=row.major-1+2@sm_90";
  CHECK(found(bundle.handle, "k", "dtype=f%3A16%2C%25,layout=row.major-1+2", "sm_90") == unit);
  CHECK(found(bundle.handle, "k", "layout=row.major-1+2,dtype=f:16%2c%25", "sm_90") == unit);
  CHECK(found(bundle.handle, "k", "layout=r%6Fw.major-1%2B2,dtype=f:16%2C%25", "sm_90") == unit);
  CHECK(found(bundle.handle, "k", "layout=\xC3\xA9,dtype=", "sm_90") == "k:dtype=,layout=%C3%A9@sm_90");
}

TEST_CASE("a malformed configuration is an argument error that says where") {
  const Bundle bundle(bundle::testing::small_input());
  const auto refusal = [&](const std::string& configuration) {
    const std::string text = found(bundle.handle, "matmul", configuration.c_str(), "sm_90");
    CHECK(contains(text, "KC_ERROR_ARGUMENT"));
    return text;
  };
  CHECK(contains(refusal("TM"), "has no \"=\" in \"TM\""));
  CHECK(contains(refusal("TM=64,"), "has no \"=\" in \"\""));
  CHECK(contains(refusal(",TM=64"), "has no \"=\" in \"\""));
  CHECK(contains(refusal("TM=64=1"), "second \"=\""));
  CHECK(contains(refusal("TM=64,TN=1,TM=64"), "names \"TM\" twice"));
  CHECK(contains(refusal("TM=6%4"), "two hexadecimal digits"));
  CHECK(contains(refusal("TM=%G0"), "two hexadecimal digits"));
  CHECK(contains(refusal("1M=64"), "malformed key or value: \"1M=64\""));
  CHECK(contains(refusal(" TM=64"), "malformed key"));
  CHECK(contains(refusal("=64"), "malformed key"));
  CHECK(contains(refusal("TM=" + std::string(1025, 'x')), "malformed key or value"));
  CHECK(contains(refusal("TM=" + std::string(70'000, 'x')), "too long"));
}

TEST_CASE("the default is taken when no configuration is named") {
  const Bundle bundle(bundle::testing::small_input());
  for (int i = 0; i < 2; ++i) {  // the second time from memory
    CHECK(found(bundle.handle, "matmul", nullptr, "sm_90") == "matmul:TM=64,TN=64@sm_90");
    CHECK(found(bundle.handle, "matmul", nullptr, "gfx1151") == "matmul:TM=64,TN=64@gfx1151");
  }
  // No record of vec_add is flagged, as in a bundle that lacks units.
  const std::string none = found(bundle.handle, "vec_add", nullptr, "sm_90");
  CHECK(contains(none, "KC_ERROR_NOT_FOUND"));
  CHECK(contains(none, "no default configuration"));
}

TEST_CASE("the code that suits the device best is taken") {
  Input input;
  auto add = [&, seed = 0U](const char* kernel, const char* target, const char* found) mutable {
    input.add(found_as(kernel, "", target, found), code(seed++));
  };
  add("exact", "sm_80", "sm_80");
  add("exact", "sm_86", "sm_86");
  add("exact", "sm_89", "sm_89");
  add("suffix", "sm_90", "sm_90");
  add("suffix", "sm_90a", "sm_90a");
  add("family", "sm_100", "sm_100");
  add("family", "sm_100f", "sm_100f");
  add("amd", "gfx942", "gfx942");
  add("amd", "gfx942:sramecc+", "gfx942:sramecc+");
  add("amd", "gfx942:sramecc+:xnack-", "gfx942:sramecc+:xnack-");
  add("amd", "gfx9-4-generic", "gfx9-4-generic");
  const Bundle bundle(input);
  CHECK(found(bundle.handle, "exact", "", "sm_86") == "exact@sm_86");
  CHECK(found(bundle.handle, "exact", "", "sm_87") == "exact@sm_86");
  CHECK(found(bundle.handle, "exact", "", "sm_89") == "exact@sm_89");
  CHECK(found(bundle.handle, "suffix", "", "sm_90") == "suffix@sm_90a");
  CHECK(found(bundle.handle, "family", "", "sm_103") == "family@sm_100f");
  CHECK(found(bundle.handle, "amd", "", "gfx942:sramecc+:xnack-") == "amd@gfx942:sramecc+:xnack-");
  CHECK(found(bundle.handle, "amd", "", "gfx942:sramecc+:xnack+") == "amd@gfx942:sramecc+");
  CHECK(found(bundle.handle, "amd", "", "gfx942:sramecc-:xnack+") == "amd@gfx942");
  CHECK(found(bundle.handle, "amd", "", "gfx950:sramecc+:xnack-") == "amd@gfx9-4-generic");
}

TEST_CASE("what the code was assembled for decides and not what was asked for") {
  Input input;
  input.add(found_as("c", "", "sm_120", "sm_120a"), code(1));
  const Bundle bundle(input);
  CHECK(found(bundle.handle, "c", "", "sm_120") == "c@sm_120");
  CHECK(contains(found(bundle.handle, "c", "", "sm_121"), "KC_ERROR_NO_CODE"));
}

TEST_CASE("an unknown kernel is answered with the one that was meant or with what there is") {
  const Bundle bundle(bundle::testing::small_input());
  CHECK(found(bundle.handle, "matmull", nullptr, "sm_90") ==
        "KC_ERROR_NOT_FOUND: " + bundle.path + ": there is no kernel \"matmull\"; did you mean \"matmul\"?");
  CHECK(contains(found(bundle.handle, "softmax", nullptr, "sm_90"), "there is \"matmul\" and \"vec_add\""));
  CHECK(contains(found(bundle.handle, "\x1b[31m", nullptr, "sm_90"), "no kernel \"\\x1b[31m\""));
  CHECK(contains(found(bundle.handle, "", nullptr, "sm_90"), "KC_ERROR_NOT_FOUND"));
  const Bundle empty{Input{}};
  CHECK(contains(found(empty.handle, "matmul", nullptr, "sm_90"), "nor any other"));
  CHECK(kc_entry_count(empty.handle.get()) == 0);
}

TEST_CASE("an unknown configuration is answered with those of the kernel") {
  const Bundle bundle(bundle::testing::small_input());
  const std::string text = found(bundle.handle, "matmul", "TN=32,TM=32", "sm_90");
  CHECK(contains(text, "KC_ERROR_NOT_FOUND"));
  CHECK(contains(text, "the kernel \"matmul\" has no configuration \"TM=32,TN=32\""));
  CHECK(contains(text, "there is \"TM=128,TN=64\", \"TM=64,TN=128\" and \"TM=64,TN=64\""));
  CHECK(contains(found(bundle.handle, "matmul", "", "sm_90"), "no code without a configuration"));
  CHECK(contains(found(bundle.handle, "vec_add", "TM=1", "sm_90"), "only the one without pairs"));
  const Bundle many(bundle::testing::many_input(1, 30, 200));
  CHECK(contains(found(many.handle, "kernel_0", "TM=99", "sm_90"), "\"TM=15\" and 22 more"));
}

TEST_CASE("no code for a device is told with what there is") {
  const Bundle bundle(bundle::testing::small_input());
  const std::string text = found(bundle.handle, "matmul", "TM=64,TN=64", "sm_100");
  CHECK(contains(text, "KC_ERROR_NO_CODE"));
  for (const char* part : {"matmul", "sm_100", "sm_90a", "sm_80", "gfx1151"}) CHECK(contains(text, part));
  CHECK(contains(found(bundle.handle, "matmul", nullptr, "gfx942"), "KC_ERROR_NO_CODE"));
}

TEST_CASE("a malformed target is an argument error") {
  const Bundle bundle(bundle::testing::small_input());
  CHECK(contains(found(bundle.handle, "matmul", nullptr, "sm90"), "KC_ERROR_ARGUMENT"));
  CHECK(contains(found(bundle.handle, "matmul", nullptr, "sm90"), "sm_90"));
  CHECK(contains(found(bundle.handle, "matmul", nullptr, ""), "KC_ERROR_ARGUMENT"));
}

TEST_CASE("whether an entry runs on a target follows the one table") {
  const Bundle bundle(bundle::testing::small_input());
  const auto fit = [&](const char* unit_target, const char* device) {
    const auto entry = find(bundle.handle, "vec_add", "", unit_target);
    REQUIRE(entry.status == KC_OK);
    kc_fit out = KC_FIT_NONE;
    CHECK(kc_entry_fit(entry.handle.get(), device, &out, nullptr) == KC_OK);
    return out;
  };
  CHECK(fit("sm_90", "sm_90") == KC_FIT_EXACT);
  CHECK(fit("sm_80", "sm_86") == KC_FIT_BY_RULE);
  CHECK(fit("sm_90", "sm_100") == KC_FIT_NONE);
  CHECK(fit("sm_90", "gfx1151") == KC_FIT_NONE);
  CHECK(fit("gfx1151", "gfx1151") == KC_FIT_EXACT);
  const auto entry = find(bundle.handle, "vec_add", "", "sm_90");
  kc_fit untouched = KC_FIT_BY_RULE;
  CHECK(kc_entry_fit(entry.handle.get(), "sm_", &untouched, nullptr) == KC_ERROR_ARGUMENT);
  CHECK(untouched == KC_FIT_BY_RULE);
}

TEST_CASE("several bundles are one with the earlier counting where two fit equally well") {
  Input first;
  first.add(found_as("a", "", "sm_80", "sm_80"), code(1));
  first.add(found_as("both", "X=1", "sm_80", "sm_80"), code(2));
  first.records.back().is_default = true;
  Input second;
  second.add(found_as("b", "", "sm_80", "sm_80"), code(3));
  second.add(found_as("both", "X=1", "sm_80", "sm_80"), code(4));
  second.add(found_as("both", "X=1", "sm_86", "sm_86"), code(5));
  second.add(found_as("both", "X=2", "sm_86", "sm_86"), code(6));
  second.records.back().is_default = true;
  Bundle one(first);
  Bundle two(second);
  auto set = join({one.handle.get(), two.handle.get()});
  auto back = join({two.handle.get(), one.handle.get()});
  REQUIRE(set.status == KC_OK);
  REQUIRE(back.status == KC_OK);
  auto nested = join({set.handle.get(), one.handle.get()});
  REQUIRE(nested.status == KC_OK);
  one.handle.reset();
  two.handle.reset();

  CHECK(kc_file_count(set.handle.get()) == 2);
  CHECK(kc_file_count(nested.handle.get()) == 3);
  CHECK(kc_file_get_info(set.handle.get(), 1)->path == two.path);
  CHECK(kc_entry_count(set.handle.get()) == 6);
  CHECK(std::string(kc_entry_get_info(entry_at(set.handle, 2).handle.get())->unit) == "b@sm_80");
  CHECK(found(set.handle, "a", "", "sm_80") == "a@sm_80");
  CHECK(found(set.handle, "b", "", "sm_80") == "b@sm_80");
  const auto digest = [](const BundleHandle& bundle, const char* configuration, const char* target) {
    const auto entry = find(bundle, "both", configuration, target);
    REQUIRE(entry.status == KC_OK);
    return base::digest_from(kc_entry_get_info(entry.handle.get())->code_digest);
  };
  CHECK(digest(set.handle, "X=1", "sm_80") == base::sha256(code(2)));
  CHECK(digest(back.handle, "X=1", "sm_80") == base::sha256(code(4)));
  CHECK(digest(set.handle, "X=1", "sm_86") == base::sha256(code(5)));
  // The default is that of the first file that has the kernel; its code may be the second's.
  CHECK(digest(set.handle, nullptr, "sm_86") == base::sha256(code(5)));
  CHECK(digest(back.handle, nullptr, "sm_86") == base::sha256(code(6)));
  const std::string unknown = found(set.handle, "bothh", nullptr, "sm_80");
  CHECK(contains(unknown, one.path + " and 1 more: there is no kernel"));
  CHECK(contains(unknown, "did you mean \"both\"?"));
  CHECK(kc_verify(set.handle.get(), nullptr) == KC_OK);
}

TEST_CASE("candidates are all that run on the device with one artifact once") {
  Input input;
  input.add(found_as("k", "", "sm_80", "sm_80"), code(1));
  input.add(found_as("k", "", "sm_86", "sm_86"), code(2));
  input.add(found_as("k", "", "sm_89", "sm_89"), code(3));
  input.add(found_as("k", "", "sm_90", "sm_90"), code(4));
  const Folder folder;
  REQUIRE(input.write(folder / "a.kcb"));
  REQUIRE(input.write(folder / "b.kcb"));
  std::vector<std::shared_ptr<loader::File>> files;
  for (const char* name : {"a.kcb", "b.kcb"}) {
    auto file = loader::File::open(folder / name, loader::Policy{});
    REQUIRE(file);
    files.push_back(*file);
  }
  const auto candidates = loader::Set(files).candidates("k", "", *target::parse_target("sm_89"));
  REQUIRE(candidates);
  std::vector<std::string> units;
  for (const loader::Entry& entry : *candidates) {
    units.push_back(entry.record.unit());
    CHECK(entry.file == files[0]);
  }
  CHECK(units == std::vector<std::string>{"k@sm_89", "k@sm_86", "k@sm_80"});
}

#include "build/state.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <cmath>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <limits>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "build_support.h"
#include "manifest/plan.h"

namespace {

namespace build = kc::build;
using build::check_state;
using build::Freshness;
using build::State;
using kc::base::Bytes;
using kc::base::ByteView;
using kc::base::FileTuple;
using kc::test::TempFolder;

constexpr int64_t kSecond = 1'000'000'000;

State sample_state(const std::vector<kc::backend::Compiler>& compilers) {
  State state;
  state.build_id = "0.1.0+abc";
  state.key_domain = "a domain";
  state.recorded_ns = 1'234'567'890'123;
  state.touched_s = 1'234;
  state.inputs = {{"/a/kernels.yaml", "", {1, 2, 3, 4, 5}, kc::base::sha256("yaml")},
                  {"/a/k.tilebc", "", {6, 7, 8, -9, 10}, kc::base::sha256("source")},
                  {"/a", "*.tilebc", {16, 17, 18, 19, 20}, kc::base::sha256("names")}};
  state.compilers = compilers;
  state.absent = {{"loom", kc::base::sha256("a Loom")}, {"tileiras", kc::base::sha256("a tileiras")}};
  state.no_lock = "/a/kc.lock";
  state.locked = true;
  state.output = "/a/kernels.kcb";
  state.output_tuple = {11, 12, 13, 14, 15};
  state.unit_count = 3;
  state.skipped_count = 1;
  const kc::artifact::Numbers cubin{96, 0, std::nullopt, 1024, 4096};
  const kc::artifact::Numbers hsaco{96, 0, 7, 1024, 1ULL << 40};
  state.units = {{"k@sm_90", {}, kc::base::sha256("key"), 1.5, 77, cubin},
                 {"k@gfx942", kc::base::sha256("request"), kc::base::sha256("m"), 0, 0, hsaco},
                 {"l@sm_90", {}, kc::base::sha256("l"), 0, 0, std::nullopt}};
  return state;
}

std::string write_over(const std::string& path, std::string_view content) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << content;  // the same inode
  return path;
}

// A finished build of one source: its state, and the time since when all of its files are settled.
class Built {
 public:
  Built() {
    search_ = kc::test::install_compiler(folder_, "cu13", "#!a program\n");
    state_.build_id = "id";
    add_input("k.tilebc", "source");
    add_input("kernels.yaml", "manifest");
    state_.compilers = {kc::test::found_compiler(search_)};
    state_.output = folder_.write("kernels.kcb", "bundle");
    state_.output_tuple = *kc::base::stat_tuple(state_.output);
    now_ = kc::base::wall_clock_ns();
    // As if it had been built long after its files were made.
    state_.recorded_ns = now_ + 10 * kSecond;
  }
  void add_input(const std::string& name, std::string_view content) {
    const std::string path = folder_.write(name, content);
    state_.inputs.push_back({path, "", *kc::base::stat_tuple(path), kc::base::sha256(content)});
  }
  /// A folder of three files, of which the pattern `*.txt` takes two.
  std::string add_folder() {
    for (const char* name : {"a.txt", "b.txt", "c.csv"}) folder_.write(std::string("listed/") + name, "x");
    const auto listing = kc::manifest::list_folder(folder_ / "listed", "*.txt");
    REQUIRE(listing);
    state_.inputs.push_back({folder_ / "listed", "*.txt", listing->tuple, listing->digest});
    return folder_ / "listed";
  }
  /// The build was so soon after its files that their tuples do not prove anything.
  void unsettle() { state_.recorded_ns = now_; }
  /// Makes the recorded times of an input old, so that what differs from them is told by the tuple alone.
  Freshness check(int64_t after = 20 * kSecond) { return check_state(state_, search_, now_ + after); }

  TempFolder folder_;
  kc::backend::SearchVariables search_;
  State state_;
  int64_t now_ = 0;
};

}  // namespace

TEST_CASE("a state comes back with every field") {
  const TempFolder folder;
  const auto search = kc::test::install_compiler(folder, "cu13", "#!a program\n");
  const State state = sample_state({kc::test::found_compiler(search)});
  const Bytes bytes = encode_state(state);
  const auto back = build::decode_state(bytes, true);
  REQUIRE(back);
  CHECK(encode_state(*back) == bytes);
  CHECK(back->build_id == state.build_id);
  CHECK(back->key_domain == state.key_domain);
  CHECK(back->recorded_ns == state.recorded_ns);
  CHECK(back->touched_s == state.touched_s);
  CHECK(back->skipped_count == 1);
  REQUIRE(back->inputs.size() == 3);
  CHECK(back->inputs[1].path == state.inputs[1].path);
  CHECK(back->inputs[1].pattern.empty());
  CHECK(back->inputs[1].tuple == state.inputs[1].tuple);
  CHECK(back->inputs[1].digest == state.inputs[1].digest);
  CHECK(back->inputs[2].pattern == "*.tilebc");
  REQUIRE(back->compilers.size() == 1);
  CHECK(back->compilers[0].identity == state.compilers[0].identity);
  CHECK(back->absent == state.absent);
  CHECK(back->no_lock == state.no_lock);
  CHECK(back->locked);
  CHECK(back->output == state.output);
  CHECK(back->output_tuple == state.output_tuple);
  CHECK(back->unit_count == 3);
  REQUIRE(back->units.size() == 3);
  CHECK(back->units[0].name == "k@sm_90");
  CHECK(back->units[0].key == state.units[0].key);
  for (size_t i = 0; i < 3; ++i) CHECK(back->units[i].request_key == state.units[i].request_key);
  CHECK(back->units[0].seconds == 1.5);
  CHECK(back->units[0].peak_bytes == 77);
  for (size_t i = 0; i < 3; ++i) CHECK(back->units[i].numbers == state.units[i].numbers);

  const auto brief = build::decode_state(bytes, false);
  REQUIRE(brief);
  CHECK(brief->units.empty());
  CHECK(brief->unit_count == 3);
  CHECK(brief->output == state.output);
}

TEST_CASE("a state cut at any byte is no state") {
  State state = sample_state({});
  const Bytes bytes = encode_state(state);
  for (size_t size = 0; size < bytes.size(); ++size) {
    const Bytes cut(bytes.begin(), bytes.begin() + static_cast<ptrdiff_t>(size));
    CHECK_FALSE_MESSAGE(build::decode_state(cut, true), size);
  }
  Bytes longer = bytes;
  longer.push_back(0);
  CHECK_FALSE(build::decode_state(longer, true));
  // Without its units it needs what stands before them.
  state.units.clear();
  const size_t start_of_units = encode_state(state).size() - 4;
  for (size_t size = 0; size < start_of_units; ++size) {
    const Bytes cut(bytes.begin(), bytes.begin() + static_cast<ptrdiff_t>(size));
    CHECK_FALSE_MESSAGE(build::decode_state(cut, false), size);
  }
}

TEST_CASE("a state with any byte flipped is no state or says exactly what it then says") {
  const Bytes bytes = encode_state(sample_state({}));
  for (size_t at = 0; at < bytes.size(); ++at) {
    for (const unsigned flip : {0x01U, 0x80U, 0xFFU}) {
      Bytes damaged = bytes;
      damaged[at] = static_cast<uint8_t>(damaged[at] ^ flip);
      if (const auto state = build::decode_state(damaged, true)) {
        CHECK_MESSAGE(encode_state(*state) == damaged, at);
      }
      static_cast<void>(build::decode_state(damaged, false));
    }
  }
}

TEST_CASE("states of builds that differ in what is built have different names") {
  build::Options options;
  std::set<kc::base::Digest> ids;
  const auto add = [&](const build::Options& o, const std::string& manifest = "/a.yaml",
                       const std::string& output = "") { ids.insert(state_id(o, manifest, output)); };
  const auto with = [&](auto change) {
    build::Options changed = options;
    change(changed);
    add(changed);
  };
  add(options);
  add(options, "/b.yaml");
  add(options, "/a.yaml", "/a.kcb");
  with([](build::Options& o) { o.units = {"a"}; });
  with([](build::Options& o) { o.units = {"a", "b"}; });
  with([](build::Options& o) { o.units = {"ab"}; });
  with([](build::Options& o) { o.targets = {"a"}; });
  with([](build::Options& o) { o.allow_partial = true; });
  with([](build::Options& o) { o.identity_from = "/x.kcb"; });
  with([](build::Options& o) { o.identity_from = "/y.kcb"; });
  with([](build::Options& o) { o.level = 3; });
  with([](build::Options& o) { o.frame_size = 3; });
  with([](build::Options& o) { o.release = 3; });
  CHECK(ids.size() == 13);
  with([](build::Options& o) { o.jobs = 7; });
  with([](build::Options& o) { o.keep_going = 1; });
  CHECK(ids.size() == 13);
}

TEST_CASE("settled files with their recorded tuples are unchanged and not read") {
  Built built;
  CHECK(built.check() == Freshness::kUnchanged);
  // A wrong digest is not noticed, so nothing was read.
  built.state_.inputs[0].digest = kc::base::sha256("something else");
  CHECK(built.check() == Freshness::kUnchanged);
}

TEST_CASE("files too young when they were recorded are read once and then trusted") {
  Built built;
  built.unsettle();
  const int64_t recorded = built.state_.recorded_ns;
  CHECK(built.check() == Freshness::kUnchangedRecord);
  CHECK(built.state_.recorded_ns == recorded + 20 * kSecond);
  CHECK(built.check() == Freshness::kUnchanged);
  CHECK(built.check(21 * kSecond) == Freshness::kUnchanged);

  // Read too soon again: once more.
  Built soon;
  soon.unsettle();
  CHECK(soon.check(kSecond) == Freshness::kUnchangedRecord);
  CHECK(soon.check() == Freshness::kUnchangedRecord);
  CHECK(soon.check() == Freshness::kUnchanged);
}

TEST_CASE("a young file whose content differs under the same tuple is a change") {
  Built built;
  built.unsettle();
  built.state_.inputs[0].digest = kc::base::sha256("older content of the same tuple");
  CHECK(built.check() == Freshness::kChanged);
}

TEST_CASE("a touched input with the same content is unchanged and recorded anew") {
  Built built;
  const std::string path = built.state_.inputs[0].path;
  const timespec times[2] = {{1000, 0}, {1000, 0}};
  REQUIRE(utimensat(AT_FDCWD, path.c_str(), times, 0) == 0);
  CHECK(built.check() == Freshness::kUnchangedRecord);
  CHECK(built.state_.inputs[0].tuple == *kc::base::stat_tuple(path));
  CHECK(built.check() == Freshness::kUnchanged);
}

TEST_CASE("changed and missing inputs are changes") {
  Built other;
  write_over(other.state_.inputs[1].path, "MANIFEST");  // as long as before
  CHECK(other.check() == Freshness::kChanged);
  Built longer;
  write_over(longer.state_.inputs[1].path, "manifest and more");
  CHECK(longer.check() == Freshness::kChanged);
  Built missing;
  std::filesystem::remove(missing.state_.inputs[0].path);
  CHECK(missing.check() == Freshness::kChanged);
  Built folder;
  std::filesystem::remove(folder.state_.inputs[0].path);
  std::filesystem::create_directory(folder.state_.inputs[0].path);
  CHECK(folder.check() == Freshness::kChanged);
}

TEST_CASE("an output that is missing or touched or was never made is a change") {
  Built touched;
  const timespec times[2] = {{1000, 0}, {1000, 0}};
  REQUIRE(utimensat(AT_FDCWD, touched.state_.output.c_str(), times, 0) == 0);
  CHECK(touched.check() == Freshness::kChanged);
  Built missing;
  std::filesystem::remove(missing.state_.output);
  CHECK(missing.check() == Freshness::kChanged);
  Built none;
  none.state_.output.clear();
  CHECK(none.check() == Freshness::kChanged);
}

TEST_CASE("an output needs no settling since kc wrote it itself") {
  Built built;
  built.state_.output = built.folder_.write("young.kcb", "bundle");
  built.state_.output_tuple = *kc::base::stat_tuple(built.state_.output);
  CHECK(built.check() == Freshness::kUnchanged);
}

TEST_CASE("a compiler that changed or is gone or is found elsewhere is a change") {
  Built replaced;
  replaced.search_ = kc::test::install_compiler(replaced.folder_, "cu13", "#!another program\n");
  CHECK(replaced.check() == Freshness::kChanged);
  Built gone;
  std::filesystem::remove(*gone.search_.kc_tileiras);
  CHECK(gone.check() == Freshness::kChanged);
  Built elsewhere;
  elsewhere.search_ = kc::test::install_compiler(elsewhere.folder_, "other", "#!another program\n");
  CHECK(elsewhere.check() == Freshness::kChanged);
}

TEST_CASE("a compiler reinstalled with the same bytes is no change") {
  Built built;
  built.search_ = kc::test::install_compiler(built.folder_, "cu13", "#!a program\n");
  CHECK(built.check() != Freshness::kChanged);
  // Elsewhere it is one more thing to remember: else its files would be read each time.
  built.search_ = kc::test::install_compiler(built.folder_, "moved", "#!a program\n");
  CHECK(built.check() == Freshness::kUnchangedRecord);
  CHECK(built.check() == Freshness::kUnchanged);
}

TEST_CASE("another file of a listed folder is no change and is recorded") {
  Built built;
  const std::string folder = built.add_folder();
  CHECK(built.check() == Freshness::kUnchanged);
  built.folder_.write("listed/d.csv", "x");
  std::filesystem::remove(folder + "/c.csv");
  // Until its names are looked at again nothing tells that they are the same.
  CHECK(built.check() == Freshness::kUnchangedRecord);
  CHECK(built.state_.inputs.back().tuple == *kc::base::stat_tuple(folder));
  CHECK(built.check() == Freshness::kUnchanged);
}

TEST_CASE("a name that a pattern takes more or less is a change") {
  Built more;
  more.add_folder();
  more.folder_.write("listed/d.txt", "x");
  CHECK(more.check() == Freshness::kChanged);
  Built less;
  std::filesystem::remove(less.add_folder() + "/b.txt");
  CHECK(less.check() == Freshness::kChanged);
  Built renamed;
  const std::string folder = renamed.add_folder();
  std::filesystem::rename(folder + "/b.txt", folder + "/d.txt");
  CHECK(renamed.check() == Freshness::kChanged);
  Built gone;
  std::filesystem::remove_all(gone.add_folder());
  CHECK(gone.check() == Freshness::kChanged);
}

TEST_CASE("a folder too young when it was listed is listed once more") {
  Built built;
  built.add_folder();
  built.unsettle();
  built.state_.inputs.back().digest = kc::base::sha256("other names of the same tuple");
  CHECK(built.check() == Freshness::kChanged);
}

TEST_CASE("a link that becomes a file which a pattern takes is a change although its folder is the same") {
  Built built;
  const std::string folder = built.folder_ / "listed";
  built.folder_.write("listed/a.txt", "x");
  std::filesystem::create_directory(built.folder_ / "target");
  std::filesystem::create_directory_symlink("../target", folder + "/link.txt");
  const auto listing = kc::manifest::list_folder(folder, "*.txt");
  REQUIRE(listing);
  REQUIRE(listing->names == std::vector<std::string>{"a.txt"});
  built.state_.inputs.push_back({folder, "*.txt", listing->tuple, listing->digest});
  // It is listed each time, which is no news.
  CHECK(built.check() == Freshness::kUnchanged);
  std::filesystem::remove(built.folder_ / "target");
  built.folder_.write("target", "a file now");
  CHECK(built.check() == Freshness::kChanged);
}

TEST_CASE("a state whose numbers cannot be is no state") {
  State more = sample_state({});
  more.skipped_count = more.unit_count + 1;
  CHECK_FALSE(build::decode_state(encode_state(more), false));
  for (const double seconds : {-1.0, std::numeric_limits<double>::infinity(), std::nan("")}) {
    State odd = sample_state({});
    odd.units[1].seconds = seconds;
    CHECK_FALSE(build::decode_state(encode_state(odd), true));
  }
}

TEST_CASE("what a state remembers is found by the name of the unit") {
  const State state = sample_state({});
  const build::Memory memory = build::memory_of(state);
  CHECK(memory.size() == 3);
  CHECK(memory.at("k@gfx942") == &state.units[1]);
  CHECK_FALSE(memory.contains("m@sm_90"));
}

TEST_CASE("a state of a build without a compiler holds until one is there or is named") {
  Built built;
  kc::backend::SearchVariables nothing;
  nothing.path = built.folder_ / "empty";
  if (kc::backend::find_compiler("tileiras", nothing, {})) {
    MESSAGE("not run: this machine has a tileiras where one is always looked for");
    return;
  }
  const auto installed = built.state_.compilers;
  built.state_.compilers.clear();
  built.state_.absent = {{"tileiras", installed.front().identity}};
  const kc::backend::SearchVariables with_compiler = built.search_;
  built.search_ = nothing;
  CHECK(built.check() == Freshness::kUnchanged);
  // In a place that is searched, even if it is that very compiler: what it is has to be recorded.
  built.search_.path = kc::base::parent_path(*with_compiler.kc_tileiras);
  CHECK(built.check() == Freshness::kChanged);
  // A variable that names one is obeyed or an error, so it is not for the state to say that nothing changed.
  built.search_ = {};
  built.search_.kc_tileiras = built.folder_ / "nowhere";
  CHECK(built.check() == Freshness::kChanged);
  built.search_ = with_compiler;
  CHECK(built.check() == Freshness::kChanged);
}

TEST_CASE("a kc.lock that appears makes a state old") {
  Built built;
  built.state_.no_lock = built.folder_ / "kc.lock";
  CHECK(built.check() == Freshness::kUnchanged);
  built.folder_.write("kc.lock", "anything");
  CHECK(built.check() == Freshness::kChanged);
}

TEST_CASE("an input without a digest is known by its tuple alone") {
  Built built;
  built.add_input("big.kcb", "a bundle");
  built.state_.inputs.back().digest = {};
  CHECK(built.check() == Freshness::kUnchanged);
  // The same bytes at another time: nobody reads them to find out.
  const timespec times[2] = {{1'000'000, 0}, {1'000'000, 0}};
  REQUIRE(utimensat(AT_FDCWD, built.state_.inputs.back().path.c_str(), times, 0) == 0);
  CHECK(built.check() == Freshness::kChanged);
}

// Patterns, lists and listed folders.
#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "manifest/source_lists.h"
#include "manifest/source_table.h"
#include "support/temp_folder.h"
#include "unit/manifest/project.h"

namespace {

using kc::manifest::Faults;
using kc::manifest::Input;
using kc::manifest::Listing;
using kc::manifest::SourceLists;
using kc::manifest::SourceName;
using kc::manifest::Text;
using kc::test::joined;
using kc::test::Lines;

class Tree {
 public:
  explicit Tree(const std::vector<std::string>& files) {
    for (const std::string& file : files) folder_.write(file, "");
  }
  const kc::test::TempFolder& folder() const { return folder_; }
  void write(std::string_view name, std::string_view text) const { folder_.write(name, text); }
  const std::vector<Input>& inputs() const { return inputs_; }

  // What items of `sources` on line 1 in column 1, 2, ... name, as `base>path`, then the errors without the
  // folder.
  Lines expand(const std::vector<std::string>& items, const std::string& base = "", bool absolute = false) {
    std::vector<Text> texts;
    for (const std::string& item : items) {
      texts.push_back({item, {1, static_cast<uint32_t>(texts.size() + 1), 0}});
    }
    const auto names = lists_.expand(texts, base, "\"sources\"", absolute);
    Lines out;
    for (const SourceName& name : names.value_or(std::vector<SourceName>())) {
      out.push_back((name.base.empty() ? "" : name.base + ">") + name.path.text().text);
    }
    const Lines errors = take_errors();
    CHECK(names.has_value() == errors.empty());
    out.insert(out.end(), errors.begin(), errors.end());
    return out;
  }
  Lines take_errors() {
    Lines out;
    for (const kc::base::Error& error : faults_.take_errors()) {
      std::string text = error.text();
      for (size_t at = text.find(folder_.path()); at != std::string::npos; at = text.find(folder_.path())) {
        text.erase(at, folder_.path().size() + 1);
      }
      out.push_back(text);
    }
    faults_ = Faults("m");
    return out;
  }
  // `path pattern` of each input, without the folder.
  Lines input_lines() const {
    Lines out;
    for (const Input& input : inputs_) {
      const std::string path =
          input.path == folder_.path() ? "." : input.path.substr(folder_.path().size() + 1);
      out.push_back(input.pattern.empty() ? path : path + ' ' + input.pattern);
    }
    return out;
  }

 private:
  kc::test::TempFolder folder_;
  std::vector<Input> inputs_;
  Faults faults_{"m"};
  SourceLists lists_{folder_.path(), inputs_, faults_};
};

TEST_CASE("a pattern finds the files of one folder sorted bytewise") {
  Tree tree({"b.loom", "a.loom", "A.loom", "a.txt", ".hidden.loom", "a10.loom", "a2.loom", "sub/c.loom"});
  std::filesystem::create_directory(tree.folder() / "folder.loom");
  CHECK(tree.expand({"*.loom"}) == Lines{"A.loom", "a.loom", "a10.loom", "a2.loom", "b.loom"});
  CHECK(tree.expand({"a?.loom"}) == Lines{"a2.loom"});
  CHECK(tree.expand({"[ab].loom"}) == Lines{"a.loom", "b.loom"});
  CHECK(tree.expand({".*.loom"}) == Lines{".hidden.loom"});
  CHECK(tree.expand({"./sub//*.loom"}) == Lines{"sub/c.loom"});
  CHECK(tree.expand({"../*.loom"}, "sub") ==
        Lines{"sub>../A.loom", "sub>../a.loom", "sub>../a10.loom", "sub>../a2.loom", "sub>../b.loom"});
  CHECK(tree.expand({"*.mlir"}) == Lines{"m:1:1: the pattern \"*.mlir\" matches no file"});
  CHECK(tree.expand({"nowhere/*.loom"}) == Lines{"m:1:1: the pattern \"nowhere/*.loom\" matches no file"});
  CHECK(tree.expand({"a.txt/*.loom"}) == Lines{"m:1:1: the pattern \"a.txt/*.loom\" matches no file"});
}

TEST_CASE("parts of a pattern that are folders are matched too") {
  Tree tree({"x1/k.loom", "x1/l.loom", "x2/k.loom", "y/k.loom", "x3", "x1/deep/k.loom"});
  CHECK(tree.expand({"x*/k.loom"}) == Lines{"x1/k.loom", "x2/k.loom"});
  CHECK(tree.expand({"*/*.loom"}) == Lines{"x1/k.loom", "x1/l.loom", "x2/k.loom", "y/k.loom"});
  CHECK(tree.expand({"*/deep/*.loom"}) == Lines{"x1/deep/k.loom"});
}

TEST_CASE("two stars stand for any number of folders and whole paths are sorted") {
  Tree tree({"k/a.loom", "k/b/a.loom", "k/b/c/a.loom", "k/b-c/a.loom", "k/.git/a.loom", "k/b/x.txt"});
  CHECK(tree.expand({"k/**/*.loom"}) == Lines{"k/a.loom", "k/b-c/a.loom", "k/b/a.loom", "k/b/c/a.loom"});
  CHECK(tree.expand({"**/c/*.loom"}) == Lines{"k/b/c/a.loom"});
  CHECK(tree.expand({"k/b/**"}) == Lines{"k/b/a.loom", "k/b/c/a.loom", "k/b/x.txt"});
  CHECK(tree.expand({"**/**/b/**/**/*.loom"}) == Lines{"k/b/a.loom", "k/b/c/a.loom"});
  CHECK(tree.expand({"**/a.loom"}, "k/b") == Lines{"k/b>a.loom", "k/b>c/a.loom"});
}

TEST_CASE("links to files are files and two stars do not follow links to folders") {
  Tree tree({"real/a.loom", "k/b.loom"});
  const auto link = [&](const char* target, const char* name) {
    REQUIRE(symlink(target, (tree.folder() / name).c_str()) == 0);
  };
  link("../real/a.loom", "k/c.loom");
  link("nowhere", "k/dangling.loom");
  link("../k", "k/loop");
  link("../real", "k/linked");
  REQUIRE(mkfifo((tree.folder() / "k/fifo.loom").c_str(), 0600) == 0);
  // Where the link leads is for whoever opens it to report.
  CHECK(tree.expand({"k/*.loom"}) == Lines{"k/b.loom", "k/c.loom", "k/dangling.loom"});
  CHECK(tree.expand({"k/**/[ab].loom"}) == Lines{"k/b.loom"});
  CHECK(tree.expand({"k/*/a.loom"}) == Lines{"k/linked/a.loom"});
  CHECK(tree.expand({"k/li*/a.loom"}) == Lines{"k/linked/a.loom"});
}

TEST_CASE("a file that is found and named counts once and one written twice is an error") {
  Tree tree({"a.loom", "b.loom", "c.loom", "k/d.loom"});
  CHECK(tree.expand({"b.loom", "*.loom", "[bc].loom"}) == Lines{"b.loom", "a.loom", "c.loom"});
  CHECK(tree.expand({"*.loom", "a.loom"}) == Lines{"a.loom", "b.loom", "c.loom"});
  CHECK(tree.expand({"a.loom", "k/../a.loom"}) ==
        Lines{"m:1:2: \"k/../a.loom\" is listed twice in \"sources\", first at m:1:1"});
  CHECK(tree.expand({"*.loom", "a.loom", "a.loom"}) ==
        Lines{"m:1:3: \"a.loom\" is listed twice in \"sources\", first at m:1:2"});
  CHECK(tree.expand({"k_{T}.loom", "k_{T}.loom"}) ==
        Lines{"m:1:2: \"k_{T}.loom\" is listed twice in \"sources\", first at m:1:1"});
}

TEST_CASE("a found file is itself whatever braces its name holds") {
  Tree tree({"k_{T}.loom"});
  const std::vector<Text> items{{"*.loom", {1, 1, 0}}, {"l_{T}.loom", {1, 2, 0}}};
  std::vector<Input> inputs;
  Faults faults("m");
  SourceLists lists(tree.folder().path(), inputs, faults);
  const auto names = lists.expand(items, "", "\"sources\"", false);
  REQUIRE(names.has_value());
  REQUIRE(names->size() == 2);
  CHECK(names->at(0).path.is_literal());
  CHECK(names->at(0).path.replace([](const std::string&) { return "x"; }) == "k_{T}.loom");
  CHECK(names->at(1).path.replace([](const std::string&) { return "x"; }) == "l_x.loom");
}

TEST_CASE("a list gives a path for each line relative to its own folder") {
  Tree tree({"a.loom", "q/b.loom", "q/c.loom", "q/c#.loom", "q/d e.loom"});
  tree.write("q/sources.txt",
             "\xef\xbb\xbf# all of them\r\n"
             "b.loom\r\n"
             "\r\n"
             "  c*.loom  # a pattern\n"
             "\t# nothing\n"
             "d e.loom\n"
             "k_{T}.loom\n"
             "../a.loom");
  CHECK(tree.expand({"@q/sources.txt"}) ==
        Lines{"q>b.loom", "q>c#.loom", "q>c.loom", "q>d e.loom", "q>k_{T}.loom", "q>../a.loom"});
  // Read once however often it is named, and an input.
  CHECK(tree.expand({"@../q/sources.txt"}, "q").size() == 6);
  CHECK(tree.input_lines() == Lines{"q/sources.txt", "q c*.loom"});
  CHECK(tree.inputs()[0].digest == kc::base::sha256(kc::test::content_of(tree.folder() / "q/sources.txt")));
  CHECK(tree.inputs()[0].tuple.size == kc::test::content_of(tree.folder() / "q/sources.txt").size());
}

TEST_CASE("what is wrong in a list is named by its own line and column") {
  Tree tree({"q/b.loom"});
  tree.write("q/l.txt", "b.loom\n  @more.txt\nx/*.loom\nk_{T}*.loom\n*/../b.loom # no\nb/*/\n\nb.loom\n");
  CHECK(tree.expand({"@q/l.txt"}) ==
        Lines{"q/l.txt:2:3: a list names no further list: \"@more.txt\"",
              "q/l.txt:4:1: the pattern \"k_{T}*.loom\" holds a brace: patterns and {key} do not mix",
              "q/l.txt:5:1: the pattern \"*/../b.loom\" has \"..\" behind its first wildcard",
              "q/l.txt:6:1: the pattern \"b/*/\" ends in a slash, and only files can be named"});
  tree.write("q/m.txt", "b.loom\nx/*.loom\n./b.loom\nk_{T.loom\n");
  CHECK(tree.expand({"@q/m.txt"}) ==
        Lines{"q/m.txt:2:1: the pattern \"x/*.loom\" matches no file",
              "q/m.txt:3:1: \"./b.loom\" is listed twice in \"sources\", first at q/m.txt:1:1",
              "q/m.txt:4:1: a brace without its partner in \"sources\" (\"k_{T.loom\") ({key} stands for the "
              "value of a configuration key)"});
  tree.write("q/n.txt", "\n# nothing\n");
  CHECK(tree.expand({"@q/n.txt"}) == Lines{"m:1:1: the list \"q/n.txt\" names no file"});
  tree.write("q/o.txt", "b.loom\n\xc3\n");
  CHECK(tree.expand({"@q/o.txt"}) == Lines{"q/o.txt:2:1: not UTF-8: the byte 0xc3 is misplaced"});
  CHECK(tree.expand({"@q/p.txt", "@q"}) ==
        Lines{"m:1:1: the list \"q/p.txt\" does not exist (did you mean \"l.txt\"?)",
              "m:1:2: the list \"q\" is a directory, not a file"});
  tree.write("q/big.txt", std::string((8U << 20) + 1, '#'));
  CHECK(tree.expand({"@q/big.txt"}) ==
        Lines{"m:1:1: the list \"q/big.txt\" has 8388609 bytes; at most 8388608 are read"});
  std::string many;
  for (int i = 0; i < 100'001; ++i) many += std::to_string(i) + '\n';
  tree.write("q/many.txt", many);
  CHECK(tree.expand({"@q/many.txt"}) ==
        Lines{"q/many.txt:100001:1: a list may have 100000 paths, and this has more"});
}

TEST_CASE("a list at fault is reported once and a missing one wherever it is named") {
  Tree tree({});
  tree.write("l.txt", "@more.txt\n");
  std::vector<Input> inputs;
  Faults faults("m");
  SourceLists lists(tree.folder().path(), inputs, faults);
  for (uint32_t line = 1; line <= 2; ++line) {
    CHECK(!lists.expand({{"@l.txt", {line, 1, 0}}}, "", "\"sources\"", false));
    CHECK(!lists.expand({{"@k.txt", {line, 5, 0}}}, "", "\"sources\"", false));
  }
  Lines lines;
  for (const kc::base::Error& error : faults.take_errors()) {
    lines.push_back(error.place.text().substr(error.place.text().rfind('/') + 1));
  }
  CHECK(lines == Lines{"m:1:5", "m:2:5", "l.txt:1:1"});
}

TEST_CASE("absolute lists and patterns need to be allowed") {
  Tree tree({"q/b.loom"});
  tree.write("q/l.txt", "b.loom\n");
  const std::string list = "@" + (tree.folder() / "q/l.txt");
  const std::string pattern = tree.folder() / "q/*.loom";
  const Lines refused = tree.expand({list, pattern});
  CHECK(
      refused ==
      Lines{"m:1:1: the list \"q/l.txt\" is an absolute path: absolute paths need `allow_absolute_paths: "
            "true` in the top manifest",
            "m:1:2: the pattern \"q/*.loom\" is an absolute path: absolute paths need `allow_absolute_paths: "
            "true` in the top manifest"});
  CHECK(tree.expand({pattern}, "", true) == Lines{tree.folder() / "q/b.loom"});
  CHECK(tree.expand({list}, "", true) == Lines{(tree.folder() / "q") + ">b.loom"});
}

TEST_CASE("patterns are bounded in files and in depth") {
  Tree tree({});
  std::string deep = "d";
  for (int i = 0; i < 70; ++i) deep += "/d";
  tree.write(deep + "/a.loom", "");
  const Lines errors = tree.expand({"**/a.loom"});
  REQUIRE(errors.size() == 1);
  CHECK(errors[0].starts_with(
      "m:1:1: the pattern \"**/a.loom\" meets folders nested deeper than 64 levels, at \"d/d/"));
}

TEST_CASE("the kernels of a manifest cannot name more files than they may however few lines say it") {
  Tree tree({"a.loom", "b.loom"});
  tree.write("l.txt", "*.loom\nc.loom\n");
  std::vector<Input> inputs;
  Faults faults("m");
  SourceLists lists(tree.folder().path(), inputs, faults, 8);
  const auto expand = [&](uint32_t line) {
    return lists.expand({{"@l.txt", {line, 1, 0}}}, "", "\"sources\"", false).has_value();
  };
  CHECK(expand(1));
  CHECK(expand(2));
  CHECK(!expand(3));
  CHECK(!expand(4));
  const auto errors = faults.take_errors();
  REQUIRE(errors.size() == 1);
  CHECK(errors[0].text() == (tree.folder() / "l.txt") +
                                ":2:1: the kernels name more than 8 files in all, each as "
                                "often as a kernel names it");
}

TEST_CASE("every folder that a pattern looks into is an input that tells when the answer would change") {
  Tree tree({"k/a/x.loom", "k/b/y.txt"});
  CHECK(tree.expand({"k/*/lib/*.loom", "k/**/*.loom"}).size() == 1);
  tree.take_errors();
  CHECK(joined(tree.input_lines()) == joined(Lines{"k */", "k/a lib/", "k/b lib/", "k *.loom", "k **/",
                                                   "k/a *.loom", "k/a **/", "k/b *.loom", "k/b **/"}));
  const auto changed = [&] {
    Lines out;
    for (const Input& input : tree.inputs()) {
      const kc::base::Result<Listing> listing = kc::manifest::list_folder(input.path, input.pattern);
      REQUIRE(listing.has_value());
      if (listing->digest != input.digest) {
        out.push_back(input.path.substr(tree.folder().path().size() + 1) + ' ' + input.pattern);
      }
    }
    return out;
  };
  CHECK(changed().empty());
  tree.write("k/b/z.txt", "");  // matches nothing
  CHECK(changed().empty());
  tree.write("k/b/z.loom", "");
  CHECK(changed() == Lines{"k/b *.loom"});
  tree.write("k/b/lib/z.loom", "");
  CHECK(changed() == Lines{"k/b lib/", "k/b *.loom", "k/b **/"});
  // A file in the place of a folder is another answer too.
  std::filesystem::remove_all(tree.folder() / "k/a");
  tree.write("k/a", "");
  const kc::base::Result<Listing> listing = kc::manifest::list_folder(tree.folder() / "k", "*/");
  REQUIRE(listing.has_value());
  CHECK(listing->names == Lines{"b"});
  CHECK(!kc::manifest::list_folder(tree.folder() / "k/a", "*/").has_value());
}

TEST_CASE("a listing has the names of one kind and the tuple of its folder") {
  Tree tree({"k/a.loom", "k/b.loom", "k/c/x", "k/.d/x"});
  const auto names = [&](const std::string& pattern) {
    const kc::base::Result<Listing> listing = kc::manifest::list_folder(tree.folder() / "k", pattern);
    REQUIRE(listing.has_value());
    const auto tuple = kc::base::stat_tuple(tree.folder() / "k");
    REQUIRE(tuple.has_value());
    CHECK(listing->tuple == *tuple);
    return listing->names;
  };
  CHECK(names("*") == Lines{"a.loom", "b.loom"});
  CHECK(names("*/") == Lines{"c"});
  CHECK(names("**/") == Lines{"c"});
  CHECK(names(".*/") == Lines{".d"});
  CHECK(names("a.loom") == Lines{"a.loom"});
  CHECK(names("a.loom/").empty());
  CHECK(names("c").empty());
  CHECK(names("c/") == Lines{"c"});
  // The same names of another kind are another listing.
  const auto digest = [&](const std::string& folder, const std::string& pattern) {
    return kc::manifest::list_folder(tree.folder() / folder, pattern)->digest;
  };
  tree.write("l/c", "");
  CHECK(digest("k", "*/") != digest("l", "*"));
  tree.write("n/c", "");
  CHECK(digest("l", "*") == digest("n", "c"));
}

TEST_CASE("a source is known by its path from the top manifest and read once") {
  Tree tree({"sub/dir/k.loom"});
  tree.write("sub/a.loom", "first");
  std::vector<kc::manifest::Source> sources;
  kc::manifest::SourceTable table(tree.folder().path(), sources, true);
  const auto index = table.add("sub", "a.loom", {"m", 1, 2}).index;
  CHECK(table.add("sub/dir", "../a.loom", {}).index == index);
  CHECK(table.add("", "sub/a.loom", {}).index == index);
  CHECK(table.add("sub", "dir/k.loom", {}).index == index + 1);
  const std::string absolute = tree.folder() / "sub/./a.loom";
  const auto other = table.add("sub", absolute, {}).index;
  REQUIRE(sources.size() == 3);
  CHECK(sources[index].identifier == "sub/a.loom");
  CHECK(sources[index].path == tree.folder() / "sub/a.loom");
  CHECK(sources[index].place.text() == "m:1:2");
  CHECK(sources[other].identifier == tree.folder() / "sub/a.loom");
  CHECK(sources[other].path == tree.folder() / "sub/a.loom");
  const auto content = table.content(index);
  REQUIRE(content.has_value());
  CHECK(kc::base::as_text((*content)->bytes) == "first");
  CHECK((*content)->digest == kc::base::sha256(std::string_view("first")));
  CHECK((*content)->tuple.size == 5);
  tree.write("sub/a.loom", "second");
  CHECK(kc::base::as_text((*table.content(index))->bytes) == "first");
  std::filesystem::remove(tree.folder() / "sub/dir/k.loom");
  const auto gone = table.content(index + 1);
  REQUIRE(!gone.has_value());
  CHECK(gone.error().place.text().empty());

  kc::manifest::SourceTable strict(tree.folder().path(), sources, false);
  CHECK(strict.add("sub", "b.loom", {}).fault == "the source \"b.loom\" does not exist");
  CHECK(strict.hint_for("sub", "b.loom") == "did you mean \"a.loom\"?");
  CHECK(strict.add("sub", absolute, {}).fault.find("absolute paths need") != std::string::npos);
  CHECK(strict.add("", "\xff.loom", {}).fault == "the source \"\\xff.loom\" has a name that is not UTF-8");
}

}  // namespace

#include "config/yaml_reader.h"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <exception>
#include <istream>
#include <streambuf>
#include <utility>

#include "config/yaml_text.h"
#include "util/text.h"

namespace kc::config {
namespace {

using base::Error;
using base::ErrorKind;

// More than this nobody reads, and a hostile text could hold half a million.
constexpr size_t kMaxErrors = 1000;

// How much yaml-cpp may take in between two events, in FlowMeter's weight. What it queues meanwhile costs 88
// bytes a token: with this and the bound on flow nodes 8 MiB of the worst text peak at 340 MB (570 MB
// without). A whole manifest written as JSON, one collection, may still hold 700,000 nodes.
constexpr uint64_t kMaxWeightAhead = 3'000'000;

// Eight times the longest key of a manifest. Keys are sorted, hashed and compared, often more than once.
constexpr size_t kMaxKeyBytes = 1024;

// Thrown to get out of yaml-cpp, by the event handler or the stream; caught in read_yaml.
struct Refused {
  YamlPlace place;
  std::string message;
  std::string hint;
};

YamlPlace place_of(const YAML::Mark& mark) {
  if (mark.is_null()) return {};
  return {static_cast<uint32_t>(mark.line) + 1, static_cast<uint32_t>(mark.column) + 1, 0};
}

base::Place located(const std::string& file, YamlPlace place) {
  return {file, place.line, place.column};
}

/// The text as a stream that refuses to run too far ahead of the events.
class MeteredBuffer final : public std::streambuf {
 public:
  explicit MeteredBuffer(std::string_view text) {
    char* begin = const_cast<char*>(text.data());  // a get area is never written to
    setg(begin, begin, begin + text.size());
  }
  void event(YamlPlace place) {
    last_event_ = place;
    meter_.reset_weight();
  }

 protected:
  std::streamsize xsgetn(char* out, std::streamsize size) override {
    const std::streamsize got = std::streambuf::xsgetn(out, size);
    for (std::streamsize i = 0; i < got; ++i) meter_.feed(out[i]);
    if (meter_.weight() > kMaxWeightAhead) {
      throw Refused{last_event_, "a collection in brackets that begins behind here is too large", {}};
    }
    return got;
  }

 private:
  FlowMeter meter_;
  YamlPlace last_event_{1, 1, 0};
};

}  // namespace

/// Takes yaml-cpp's events, checks them, and puts the document together.
class YamlBuilder final : public YAML::EventHandler {
 public:
  YamlBuilder(const std::string& file, std::string_view text, const YamlLimits& limits, MeteredBuffer& buffer,
              uint32_t number)
      : file_(file), source_(text), limits_(limits), buffer_(buffer) {
    document_.file_ = number;
  }

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (++documents_ == 1) return;
    // Without `---` it is no document that somebody meant, but text which yaml-cpp stopped at.
    const bool meant = source_.substr(static_cast<size_t>(std::max(mark.pos, 0))).starts_with("---");
    throw Refused{place_of(mark),
                  meant ? "a second document begins here; a file holds one"
                        : "not YAML: unexpected text behind the end of the document",
                  {}};
  }
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    leaf(YamlDocument::Tag::kNull, mark, anchor, 0);
  }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    check_tag(mark, tag);
    // An empty scalar behind a tag of its own may be none at all, and was refused for its tag.
    const bool may_be_quoted = tag == "!" || (tag != "?" && !value.empty());
    if (may_be_quoted && mark.pos >= 0 && !is_quote_closed(source_, static_cast<size_t>(mark.pos))) {
      throw Refused{place_of(mark), "not YAML: a quote that opens here is never closed", {}};
    }
    const uint32_t index =
        leaf(tag == "?" ? YamlDocument::Tag::kPlain : YamlDocument::Tag::kQuoted, mark, anchor, value.size());
    record(index).first = static_cast<uint32_t>(document_.text_.size());
    record(index).count = static_cast<uint32_t>(value.size());
    document_.text_ += value;
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    // yaml-cpp itself refuses an alias whose anchor it has not seen.
    const Anchor target = anchors_.at(anchor);
    if (target.open) {
      throw Refused{place_of(mark), "an alias within the anchor that it stands for: it would never end", {}};
    }
    count(target.nodes, target.bytes, mark);
    check_depth(frames_.size() + target.height, mark);
    const uint32_t index = append(YamlDocument::Tag::kAlias, mark, record(target.index).tag, target.bytes);
    record(index).first = target.index;
    raise_height(target.height);
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value style) override {
    count_block(style, mark);
    open(YamlDocument::Tag::kSequence, mark, tag, anchor);
  }
  void OnSequenceEnd() override {
    record(frames_.back().index).count = frames_.back().children;
    close();
  }

  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value style) override {
    count_block(style, mark);
    open(YamlDocument::Tag::kMap, mark, tag, anchor);
  }
  void OnMapEnd() override {
    record(frames_.back().index).count = frames_.back().children / 2;
    check_duplicates(frames_.back().index);
    close();
  }

  bool has_content() const {
    return !document_.records_.empty() && document_.records_[0].tag != YamlDocument::Tag::kNull;
  }
  YamlDocument take_document() { return std::move(document_); }
  std::vector<Error> take_errors() { return std::move(errors_); }

 private:
  // A collection whose end has not come yet.
  struct Frame {
    uint32_t index = 0;
    uint32_t last_child = 0;
    uint32_t children = 0;
    uint32_t height = 1;  // levels of collections, itself included
    uint32_t nodes_before = 0;
    uint64_t bytes_before = 0;
    YAML::anchor_t anchor = 0;
  };
  struct Anchor {
    uint32_t index = 0;
    uint32_t nodes = 1;  // with aliases expanded
    uint64_t bytes = 0;  // of text, with aliases expanded
    uint32_t height = 0;
    bool open = false;
  };

  YamlDocument::Record& record(uint32_t index) { return document_.records_[index]; }

  void report(YamlPlace place, std::string message, std::string hint = {}) {
    if (errors_.size() >= kMaxErrors) return;
    errors_.push_back(
        Error{ErrorKind::kInput, std::move(message), located(file_, place), std::move(hint), 0});
  }

  void count(uint32_t nodes, uint64_t bytes, const YAML::Mark& mark) {
    // All at most their limits: no overflow.
    nodes_ += nodes;
    bytes_ += bytes;
    if (nodes_ > limits_.nodes) {
      throw Refused{
          place_of(mark),
          util::format("more than {} nodes (an alias counts as all that it stands for)", limits_.nodes),
          {}};
    }
    if (bytes_ > limits_.bytes) {
      throw Refused{place_of(mark),
                    util::format("more than {} bytes of text (an alias counts as all that it stands for)",
                                 limits_.bytes),
                    {}};
    }
  }

  void count_block(YAML::EmitterStyle::value style, const YAML::Mark& mark) {
    if (style != YAML::EmitterStyle::Block || ++blocks_ <= limits_.block_collections) return;
    throw Refused{
        place_of(mark),
        util::format("more than {} lists and maps that are written in lines", limits_.block_collections),
        "write the small ones in brackets"};
  }

  void check_depth(size_t depth, const YAML::Mark& mark) {
    if (depth > limits_.depth) {
      throw Refused{
          place_of(mark), util::format("collections nested deeper than {} levels", limits_.depth), {}};
    }
  }

  void check_tag(const YAML::Mark& mark, const std::string& tag) {
    if (tag.empty() || tag == "?" || tag == "!") return;
    report(place_of(mark), util::format("the tag \"{}\" is not supported", util::escape(tag.substr(0, 100))),
           "values are text as written; leave the tag out");
  }

  void raise_height(uint32_t child) {
    if (!frames_.empty()) frames_.back().height = std::max(frames_.back().height, child + 1);
  }

  // A new node at the end of the collection that is open. `kind` and `bytes` of text are what it is or, an
  // alias, stands for.
  uint32_t append(YamlDocument::Tag tag, const YAML::Mark& mark, YamlDocument::Tag kind, uint64_t bytes) {
    const YamlPlace place = place_of(mark);
    buffer_.event(place);
    const auto index = static_cast<uint32_t>(document_.records_.size());
    document_.records_.push_back({place.line, place.column, 0, 0, 0, tag});
    if (frames_.empty()) return index;
    Frame& frame = frames_.back();
    (frame.children == 0 ? record(frame.index).first : record(frame.last_child).next) = index;
    frame.last_child = index;
    const bool is_key = record(frame.index).tag == YamlDocument::Tag::kMap && frame.children % 2 == 0;
    ++frame.children;
    if (is_key && kind != YamlDocument::Tag::kPlain && kind != YamlDocument::Tag::kQuoted) {
      report(place, kind == YamlDocument::Tag::kNull ? "a key is missing"
                                                     : "a key must be a value, not a collection");
    } else if (is_key && bytes > kMaxKeyBytes) {
      throw Refused{place, util::format("a key of {} bytes; at most {} are read", bytes, kMaxKeyBytes), {}};
    }
    return index;
  }

  uint32_t leaf(YamlDocument::Tag tag, const YAML::Mark& mark, YAML::anchor_t anchor, uint64_t bytes) {
    count(1, bytes, mark);
    const uint32_t index = append(tag, mark, tag, bytes);
    if (anchor != 0) anchor_at(anchor) = {index, 1, bytes, 0, false};
    return index;
  }

  void open(YamlDocument::Tag tag, const YAML::Mark& mark, const std::string& explicit_tag,
            YAML::anchor_t anchor) {
    check_tag(mark, explicit_tag);
    check_depth(frames_.size() + 1, mark);
    const uint32_t before = nodes_;
    count(1, 0, mark);
    const uint32_t index = append(tag, mark, tag, 0);
    if (anchor != 0) anchor_at(anchor) = {index, 0, 0, 0, true};
    frames_.push_back({index, 0, 0, 1, before, bytes_, anchor});
  }

  void close() {
    const Frame frame = frames_.back();
    frames_.pop_back();
    if (frame.anchor != 0) {
      anchor_at(frame.anchor) = {frame.index, nodes_ - frame.nodes_before, bytes_ - frame.bytes_before,
                                 frame.height, false};
    }
    raise_height(frame.height);
  }

  // yaml-cpp numbers anchors from 1 in the order written.
  Anchor& anchor_at(YAML::anchor_t anchor) {
    if (anchors_.size() <= anchor) anchors_.resize(anchor + 1);
    return anchors_[anchor];
  }

  // By sorting, so that keys made to collide cost nothing more.
  void check_duplicates(uint32_t map) {
    keys_.clear();
    for (const YamlPair pair : YamlNode(document_, map).pairs()) {
      if (pair.key.is_scalar()) keys_.emplace_back(pair.key.text(), pair.key.place());
    }
    std::sort(keys_.begin(), keys_.end());
    for (size_t i = 1; i < keys_.size(); ++i) {
      const auto& [text, place] = keys_[i];
      if (text != keys_[i - 1].first) continue;
      report(place, util::format("the key \"{}\" is written twice, first at line {}, column {}",
                                 util::escape(text.substr(0, 100)), keys_[i - 1].second.line,
                                 keys_[i - 1].second.column));
    }
  }

  const std::string& file_;
  std::string_view source_;
  const YamlLimits& limits_;
  MeteredBuffer& buffer_;
  YamlDocument document_;
  std::vector<Error> errors_;
  std::vector<Frame> frames_;
  std::vector<Anchor> anchors_;
  std::vector<std::pair<std::string_view, YamlPlace>> keys_;  // scratch of check_duplicates
  uint32_t nodes_ = 0;                                        // so far, with aliases expanded
  uint64_t bytes_ = 0;                                        // of text, the same
  uint32_t blocks_ = 0;                                       // collections without brackets
  uint32_t documents_ = 0;
};

namespace {

YamlRead refused(const std::string& file, YamlPlace place, std::string message, std::string hint = {}) {
  YamlRead out;
  out.errors.push_back(
      Error{ErrorKind::kInput, std::move(message), located(file, place), std::move(hint), 0});
  return out;
}

// What may be behind a text that yaml-cpp does not take, when its line shows it.
std::string hint_for(std::string_view text, const YAML::Mark& mark) {
  if (mark.is_null()) return {};
  const size_t at = std::min(static_cast<size_t>(std::max(mark.pos, 0)), text.size());
  const size_t begin = at == 0 ? 0 : text.rfind('\n', at - 1) + 1;  // npos + 1 is 0
  const std::string_view line = text.substr(begin, text.find('\n', at) - begin);
  const std::string_view indent = line.substr(0, line.find_first_not_of(" \t"));
  if (indent.find('\t') != std::string_view::npos) return "a tab indents this line; indent with spaces";
  const size_t cr = line.find('\r');
  if (cr != std::string_view::npos && cr + 1 < line.size()) {
    return "a carriage return alone ends no line; end lines with a line feed";
  }
  if (at >= text.size()) return {};
  const char here = text[at];
  if (here == '*') {
    const std::string_view word = text.substr(at + 1, text.find_first_of(" \t\r\n,]}", at) - at - 1);
    return word.find_first_of("./*?[") != std::string_view::npos
               ? "quote a pattern that begins with *, which is YAML's alias otherwise"
               : "an alias stands behind its anchor, which begins with &";
  }
  if (here == '@' || here == '`' || here == '%') return "quote a value that begins with @, ` or %";
  const char before = at == 0 ? '\n' : text[at - 1];
  const bool is_inside = here == '{' && std::string_view(" \t\r\n,[{").find(before) == std::string_view::npos;
  const bool is_behind_end = (before == '}' || before == ']') && here > ' ' && here != ',';
  if (is_inside || is_behind_end) return "quote a value that holds brackets or braces";
  return {};
}

// yaml-cpp takes the end of a text for a character, so that a backslash there begins an escape.
bool is_behind(std::string_view text, const YAML::Mark& mark) {
  return !mark.is_null() && mark.pos > 0 && static_cast<size_t>(mark.pos) > text.size();
}

YamlPlace end_of(std::string_view text) {
  const size_t begin = text.rfind('\n') + 1;  // npos + 1 is 0
  return {static_cast<uint32_t>(std::count(text.begin(), text.end(), '\n')) + 1,
          static_cast<uint32_t>(text.size() - begin) + 1};
}

std::optional<YamlRead> refuse_before_parsing(const std::string& file, std::string_view text,
                                              const YamlLimits& limits) {
  if (text.size() > limits.bytes) {
    return refused(file, {}, util::format("has {} bytes; at most {} are read", text.size(), limits.bytes));
  }
  if (text.empty()) return refused(file, {}, "is empty");
  if (const std::optional<BadByte> bad = find_bad_byte(text)) {
    return refused(file, bad->place,
                   bad->is_control
                       ? util::format("the control byte 0x{:02x} is not allowed in YAML", bad->value)
                       : util::format("not UTF-8: the byte 0x{:02x} is misplaced", bad->value));
  }
  if (const std::optional<YamlPlace> excess = find_flow_excess(text, limits.nodes)) {
    return refused(file, *excess, util::format("more than {} nodes", limits.nodes));
  }
  return std::nullopt;
}

}  // namespace

YamlRead read_yaml(const std::string& file, std::string_view text, const YamlLimits& limits,
                   uint32_t number) {
  if (std::optional<YamlRead> refusal = refuse_before_parsing(file, text, limits)) return std::move(*refusal);
  // yaml-cpp would leave the mark out too, but count it as a column.
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
  MeteredBuffer buffer(text);
  YamlBuilder builder(file, text, limits, buffer, number);
  YamlRead out;
  try {
    std::istream stream(&buffer);
    YAML::Parser parser(stream);
    // The builder throws at a second document, so this ends.
    while (parser.HandleNextDocument(builder)) {
    }
    if (!builder.has_content()) return refused(file, {}, "is empty: it holds no YAML but comments");
    out.document = builder.take_document();
    out.errors = builder.take_errors();
    // A map's duplicates are found at its end, behind faults of what it holds.
    std::stable_sort(out.errors.begin(), out.errors.end(), [](const Error& a, const Error& b) {
      return std::pair(a.place.line, a.place.column) < std::pair(b.place.line, b.place.column);
    });
  } catch (const Refused& refusal) {
    out = refused(file, refusal.place, refusal.message, refusal.hint);
  } catch (const YAML::Exception& error) {
    if (is_behind(text, error.mark)) {
      out = refused(file, end_of(text), "not YAML: the text ends behind a backslash within quotes");
    } else {
      out = refused(file, place_of(error.mark), "not YAML: " + util::escape(error.msg),
                    hint_for(text, error.mark));
    }
  } catch (const std::exception& error) {
    out = refused(file, {}, util::format("not YAML: {}", util::escape(error.what())));
  }
  return out;
}

}  // namespace kc::config

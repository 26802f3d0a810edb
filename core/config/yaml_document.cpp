#include "config/yaml_document.h"

namespace kc::config {

std::string_view kind_name(YamlKind kind) {
  switch (kind) {
    case YamlKind::kNull:
      return "nothing";
    case YamlKind::kScalar:
      return "a value";
    case YamlKind::kSequence:
      return "a list";
    case YamlKind::kMap:
      return "a map";
  }
  return "nothing";
}

// The reader never makes an alias of an alias, so one step leads to the node.
YamlNode::YamlNode(const YamlDocument& document, uint32_t index) : document_(&document), index_(index) {
  const YamlDocument::Record& record = document.records_[index];
  if (record.tag == YamlDocument::Tag::kAlias) index_ = record.first;
}

YamlKind YamlNode::kind() const {
  switch (document_->records_[index_].tag) {
    case YamlDocument::Tag::kPlain:
    case YamlDocument::Tag::kQuoted:
      return YamlKind::kScalar;
    case YamlDocument::Tag::kSequence:
      return YamlKind::kSequence;
    case YamlDocument::Tag::kMap:
      return YamlKind::kMap;
    case YamlDocument::Tag::kNull:
    case YamlDocument::Tag::kAlias:
      break;
  }
  return YamlKind::kNull;
}

YamlPlace YamlNode::place() const {
  const YamlDocument::Record& record = document_->records_[index_];
  return {record.line, record.column, document_->file_};
}

std::string_view YamlNode::text() const {
  if (!is_scalar()) return {};
  const YamlDocument::Record& record = document_->records_[index_];
  return std::string_view(document_->text_).substr(record.first, record.count);
}

bool YamlNode::is_plain() const {
  return document_->records_[index_].tag == YamlDocument::Tag::kPlain;
}

uint32_t YamlNode::size() const {
  return is_map() || is_sequence() ? document_->records_[index_].count : 0;
}

YamlItems YamlNode::items() const {
  return {*document_, document_->records_[index_].first, is_sequence() ? size() : 0};
}

YamlPairs YamlNode::pairs() const {
  return {*document_, document_->records_[index_].first, is_map() ? size() : 0};
}

}  // namespace kc::config

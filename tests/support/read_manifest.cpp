// What kc's read stage says about manifests, for the test that holds it to the JSON schema.
//
//   read_manifest
//       reads documents from stdin, one a line (JSON is YAML), and prints a JSON array a line: the errors of
//       the document, empty when it is accepted
//   read_manifest --to-json FILE
//       prints a YAML file as JSON: scalars as strings, `<<` merged
//
// The read stage looks at a document alone: nothing that it names has to exist.
#include <iostream>
#include <string>
#include <string_view>
#include <vector>

#include "base/files.h"
#include "config/yaml_reader.h"
#include "manifest/draft.h"
#include "util/json.h"

namespace kc::test {
namespace {

using manifest::Faults;
using manifest::Field;
using util::Json;

Json texts(const std::vector<base::Error>& errors) {
  Json out = Json::array();
  for (const base::Error& error : errors) out.push_back(error.text());
  return out;
}

Json errors_of(std::string_view text) {
  const std::string file = "manifest";
  config::YamlRead yaml = config::read_yaml(file, text);
  if (!yaml.document) return texts(yaml.errors);
  Faults faults(file);
  faults.append(std::move(yaml.errors));
  manifest::read_manifest(yaml.document->root(), faults);
  return texts(faults.take_errors());
}

Json as_json(const Field& field, Faults& faults) {
  switch (field.value.kind()) {
    case config::YamlKind::kNull:
      return nullptr;
    case config::YamlKind::kScalar:
      return std::string(field.value.text());
    case config::YamlKind::kSequence: {
      Json out = Json::array();
      for (const config::YamlNode item : field.value.items()) {
        out.push_back(as_json({field.name, item.place(), item, true}, faults));
      }
      return out;
    }
    case config::YamlKind::kMap: {
      Json out = Json::object();
      const auto pairs = manifest::read_map(field, faults);  // merges
      for (const Field& pair : *pairs) out[std::string(pair.name)] = as_json(pair, faults);
      return out;
    }
  }
  return nullptr;
}

int print_as_json(const std::string& path) {
  const base::Result<base::Bytes> bytes = base::read_file(path, manifest::kMaxManifestBytes);
  if (!bytes) {
    std::cerr << bytes.error().text() << '\n';
    return 1;
  }
  config::YamlRead yaml = config::read_yaml(path, base::as_text(*bytes));
  Faults faults(path);
  faults.append(std::move(yaml.errors));
  if (yaml.document) {
    const config::YamlNode root = yaml.document->root();
    const Json json = as_json({"the file", root.place(), root}, faults);
    if (faults.empty()) {
      std::cout << util::dump_line(json) << '\n';
      return 0;
    }
  }
  for (const base::Error& error : faults.take_errors()) std::cerr << error.text() << '\n';
  return 1;
}

}  // namespace
}  // namespace kc::test

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  if (arguments.size() == 2 && arguments[0] == "--to-json") return kc::test::print_as_json(arguments[1]);
  if (!arguments.empty()) {
    std::cerr << "usage: read_manifest [--to-json FILE]\n";
    return 2;
  }
  for (std::string line; std::getline(std::cin, line);) {
    std::cout << kc::util::dump_line(kc::test::errors_of(line)) << '\n';
  }
  return 0;
}

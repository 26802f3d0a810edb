#include "build/lock_file.h"

#include <algorithm>
#include <initializer_list>
#include <optional>
#include <tuple>
#include <utility>

#include "backend/content_key.h"
#include "build/keys.h"
#include "config/yaml_reader.h"
#include "util/text.h"

namespace kc::build {
namespace {

using base::ErrorKind;
using base::Result;
using config::YamlNode;

constexpr std::string_view kHead =
    "# Written by `kc lock`: the compilers of the kernels in this folder. Keep it in version control.\n"
    "version: 1\n";
constexpr std::string_view kAnew = "remove it, and `kc lock` writes it anew";
// Digits of a digest that tell two files apart at a glance.
constexpr size_t kShortDigits = 12;
// A version that is longer is no version.
constexpr size_t kMaxVersion = 100;

// File names are bytes, YAML is text.
std::string escaped_role(std::string_view role) {
  std::string out;
  for (const char c : role) {
    if (util::is_letter_or_digit(c) || std::string_view("_.+:/ -").find(c) != std::string_view::npos) {
      out += c;
    } else {
      out += util::format("%{:02X}", static_cast<unsigned char>(c));
    }
  }
  return out;
}

std::optional<std::string> unescaped_role(std::string_view text) {
  const auto digit = [](char c) -> int {
    if (c >= '0' && c <= '9') return c - '0';
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
  };
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out += text[i];
      continue;
    }
    if (text.size() - i < 3 || digit(text[i + 1]) < 0 || digit(text[i + 2]) < 0) return std::nullopt;
    out += static_cast<char>(digit(text[i + 1]) * 16 + digit(text[i + 2]));
    i += 2;
  }
  return out;
}

// Without quotes where nothing in it could mean something to YAML; in quotes it needs no escapes.
std::string scalar(const std::string& text) {
  return std::ranges::all_of(text, util::is_letter_or_digit) ? text : util::format("\"{}\"", text);
}

bool is_printable_version(std::string_view text) {
  return !text.empty() && text.size() <= kMaxVersion &&
         std::ranges::all_of(text, [](char c) { return c >= ' ' && c <= '~' && c != '"' && c != '\\'; });
}

std::vector<std::string> our_domains() {
  std::vector<std::string> out;
  for (const std::string_view domain :
       {backend::identity_domain(), backend::kContentDomain, std::string_view(kRequestDomain)}) {
    out.emplace_back(domain.substr(0, domain.find('\0')));
  }
  return out;
}

// Walks a document and keeps the first thing that is wrong.
class Parser {
 public:
  explicit Parser(const std::string& file) : file_(file) {}

  Result<LockFile> parse(const YamlNode& root) {
    LockFile out;
    if (auto number = field(root, "version")) {
      if (number->text() != "1") {
        return fail(
            *number,
            util::format("is of version {}, and this kc reads version 1", util::escape(number->text())),
            "a newer kc wrote it");
      }
    }
    known(root, {"version", "compilers"});
    if (auto list = field(root, "compilers", config::YamlKind::kSequence)) {
      for (const YamlNode item : list->items()) {
        LockedCompiler compiler = read(item);
        if (error_) break;
        const auto is_same = [&](const LockedCompiler& other) {
          return other.backend == compiler.backend && other.host == compiler.host;
        };
        if (std::ranges::any_of(out.compilers, is_same)) {
          wrong(item, util::format("{} on {} is there twice", compiler.backend, compiler.host));
        }
        out.set(std::move(compiler));
      }
    }
    if (error_) return std::unexpected(std::move(*error_));
    return out;
  }

 private:
  std::unexpected<base::Error> fail(const YamlNode& node, std::string message, std::string_view hint) const {
    return base::fail_at(ErrorKind::kInput, {file_, node.place().line, node.place().column},
                         std::move(message), std::string(hint));
  }
  void wrong(const YamlNode& node, std::string message) {
    if (!error_) error_ = fail(node, std::move(message), kAnew).error();
  }

  std::optional<YamlNode> optional_field(const YamlNode& map, std::string_view name,
                                         config::YamlKind kind = config::YamlKind::kScalar) {
    if (!map.is_map()) {
      wrong(map, util::format("is {} where a map is expected", config::kind_name(map.kind())));
      return std::nullopt;
    }
    for (const auto& [key, value] : map.pairs()) {
      if (key.text() != name) continue;
      if (value.kind() == kind) return value;
      wrong(value,
            util::format("{} is {}, not {}", name, config::kind_name(value.kind()), config::kind_name(kind)));
      return std::nullopt;
    }
    return std::nullopt;
  }
  std::optional<YamlNode> field(const YamlNode& map, std::string_view name,
                                config::YamlKind kind = config::YamlKind::kScalar) {
    auto found = optional_field(map, name, kind);
    if (!found) wrong(map, util::format("{} is missing", name));
    return found;
  }
  void known(const YamlNode& map, std::initializer_list<std::string_view> names) {
    for (const auto& [key, value] : map.pairs()) {
      if (std::ranges::find(names, key.text()) != names.end()) continue;
      wrong(key, util::format("\"{}\" is nothing that a lock file says", util::escape(key.text())));
    }
  }
  // What is written back as it stands.
  std::string word(const YamlNode& node, std::string_view what) {
    const bool is_word = !node.text().empty() && std::ranges::all_of(node.text(), [](char c) {
      return util::is_letter_or_digit(c) || c == '_' || c == '-' || c == '.';
    });
    if (!is_word) wrong(node, util::format("\"{}\" is no {}", util::escape(node.text()), what));
    return std::string(node.text());
  }
  std::string word_of(const YamlNode& map, std::string_view name) {
    const auto node = field(map, name);
    return node ? word(*node, name) : std::string();
  }
  base::Digest digest(const YamlNode& map, std::string_view name) {
    const auto node = field(map, name);
    if (!node) return {};
    const auto value = base::parse_digest(node->text());
    if (!value) wrong(*node, util::format("{} is not 64 hexadecimal digits in lower case", name));
    return value.value_or(base::Digest());
  }

  LockedCompiler read(const YamlNode& node) {
    LockedCompiler out;
    out.backend = word_of(node, "backend");
    out.host = word_of(node, "host");
    out.identity = digest(node, "identity");
    if (const auto list = field(node, "keys", config::YamlKind::kSequence)) {
      for (const YamlNode key : list->items()) out.keys.push_back(word(key, "domain of keys"));
    }
    if (const auto revision = field(node, "adapter")) {
      const auto number = util::parse_number(revision->text(), 0, UINT32_MAX);
      if (!number) wrong(*revision, "adapter is not a number");
      out.adapter = static_cast<uint32_t>(number.value_or(0));
    }
    if (const auto version = optional_field(node, "compiler")) {
      if (!is_printable_version(version->text())) wrong(*version, "compiler is not the text of a version");
      out.version = version->text();
    }
    if (const auto files = field(node, "files", config::YamlKind::kSequence)) {
      for (const YamlNode item : files->items()) out.files.push_back(read_file(item));
      if (out.files.empty()) wrong(*files, "a compiler has at least one file");
    }
    if (error_) return out;
    known(node, {"backend", "host", "keys", "adapter", "identity", "compiler", "files"});
    const auto domain = our_domains().front();
    if (std::ranges::find(out.keys, domain) != out.keys.end() &&
        backend::identity_of(without_files(out)) != out.identity) {
      wrong(node, util::format("the identity of {} is not that of its files: the file was edited, or merged "
                               "by hand",
                               out.backend));
    }
    return out;
  }

  LockedCompiler::File read_file(const YamlNode& node) {
    LockedCompiler::File out;
    if (const auto role = field(node, "role")) {
      const auto text = unescaped_role(role->text());
      if (!text || text->empty()) wrong(*role, "role is not the part that a file plays");
      out.role = text.value_or("");
    }
    out.digest = digest(node, "digest");
    if (!error_) known(node, {"role", "digest"});
    return out;
  }

  const std::string& file_;
  std::optional<base::Error> error_;
};

}  // namespace

const LockedCompiler* LockFile::find(std::string_view backend) const {
  const auto found = std::ranges::find_if(compilers, [&](const LockedCompiler& compiler) {
    return compiler.backend == backend && compiler.host == backend::kHostArchitecture;
  });
  return found == compilers.end() ? nullptr : &*found;
}

void LockFile::set(LockedCompiler compiler) {
  const auto before = [](const LockedCompiler& a, const LockedCompiler& b) {
    return std::tie(a.backend, a.host) < std::tie(b.backend, b.host);
  };
  const auto at = std::ranges::lower_bound(compilers, compiler, before);
  if (at != compilers.end() && !before(compiler, *at)) {
    *at = std::move(compiler);
  } else {
    compilers.insert(at, std::move(compiler));
  }
}

LockedCompiler locked_from(const backend::Compiler& compiler, std::string version) {
  LockedCompiler out;
  out.backend = compiler.backend;
  out.host = backend::kHostArchitecture;
  out.keys = our_domains();
  const backend::Description* description = backend::find_description(compiler.backend);
  out.adapter = description != nullptr ? description->adapter_revision : 0;
  out.identity = compiler.identity;
  if (is_printable_version(version)) out.version = std::move(version);
  for (const backend::IdentityFile& file : compiler.files) out.files.push_back({file.role, file.digest});
  return out;
}

bool is_of_our_keys(const LockedCompiler& compiler) {
  const backend::Description* description = backend::find_description(compiler.backend);
  return description != nullptr && compiler.adapter == description->adapter_revision &&
         compiler.keys == our_domains();
}

std::string difference(const LockedCompiler& locked, const backend::Compiler& found) {
  if (locked.identity == found.identity) return {};
  const auto brief = [](const base::Digest& digest) { return digest.hex().substr(0, kShortDigits); };
  std::vector<std::string> parts;
  for (const LockedCompiler::File& file : locked.files) {
    const auto now = std::ranges::find(found.files, file.role, &backend::IdentityFile::role);
    const std::string role = util::escape(file.role);
    if (now == found.files.end()) {
      parts.push_back(util::format("{} {} is not there", role, brief(file.digest)));
    } else if (now->digest != file.digest) {
      parts.push_back(util::format("{} {} -> {}", role, brief(file.digest), brief(now->digest)));
    }
  }
  for (const backend::IdentityFile& file : found.files) {
    if (std::ranges::find(locked.files, file.role, &LockedCompiler::File::role) != locked.files.end())
      continue;
    parts.push_back(util::format("{} {} is new", util::escape(file.role), brief(file.digest)));
  }
  return parts.empty() ? "the same files in another order" : util::listed(parts);
}

backend::Compiler without_files(const LockedCompiler& compiler) {
  backend::Compiler out;
  out.backend = compiler.backend;
  for (const LockedCompiler::File& file : compiler.files) {
    out.files.push_back({file.role, {}, {}, file.digest});
  }
  out.identity = compiler.identity;
  return out;
}

Result<LockFile> parse_lock(const std::string& file, std::string_view text) {
  config::YamlLimits limits;
  limits.bytes = kMaxLockBytes;
  limits.depth = 8;
  const config::YamlRead read = config::read_yaml(file, text, limits);
  if (!read.errors.empty()) {
    base::Error error = read.errors.front();
    if (error.hint.empty()) error.hint = kAnew;
    return std::unexpected(std::move(error));
  }
  return Parser(file).parse(read.document->root());
}

std::string lock_text(const LockFile& lock) {
  std::string out(kHead);
  out += lock.compilers.empty() ? "compilers: []\n" : "compilers:\n";
  for (const LockedCompiler& compiler : lock.compilers) {
    out += util::format("  - backend: {}\n    host: {}\n    keys: [{}]\n    adapter: {}\n    identity: {}\n",
                        compiler.backend, compiler.host, util::join(compiler.keys, ", "), compiler.adapter,
                        compiler.identity.hex());
    if (!compiler.version.empty()) out += util::format("    compiler: \"{}\"\n", compiler.version);
    out += "    files:\n";
    for (const LockedCompiler::File& file : compiler.files) {
      out += util::format("      - {{ role: {}, digest: {} }}\n", scalar(escaped_role(file.role)),
                          file.digest.hex());
    }
  }
  return out;
}

}  // namespace kc::build

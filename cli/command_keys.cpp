// kc keygen and kc sign.
#include <fcntl.h>
#include <stdlib.h>

#include <cerrno>
#include <memory>

#include "base/atomic_file.h"
#include "base/file_system.h"
#include "base/files.h"
#include "bundle/bundle.h"
#include "cli/command.h"
#include "cli/console.h"
#include "cli/key_choice.h"
#include "util/text.h"

namespace kc::cli {
namespace {

using base::ErrorKind;
using base::Result;

// A file that this program has made; it goes with the object unless it is kept.
class NewFile {
 public:
  static Result<NewFile> create(const std::string& path, base::ByteView bytes, mode_t mode) {
    auto fd = base::open_at(AT_FDCWD, path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, mode,
                            ErrorKind::kEnvironment);
    if (!fd && fd.error().sys_errno == EEXIST) {
      return base::fail_at(ErrorKind::kInput, {path}, "exists already; a key is never written over",
                           "choose another name, or move it away");
    }
    if (!fd) return std::unexpected(std::move(fd).error());
    NewFile file(path);
    KC_TRY(base::write_all(fd->get(), bytes, path));
    KC_TRY(base::sync_all(fd->get(), path));
    return file;
  }
  NewFile(NewFile&& other) noexcept : path_(std::move(other.path_)) { other.path_.clear(); }
  NewFile& operator=(NewFile&&) = delete;
  ~NewFile() {
    if (!path_.empty()) base::file_system().unlinkat(AT_FDCWD, path_.c_str(), 0);
  }
  void keep() { path_.clear(); }

 private:
  explicit NewFile(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

struct KeyPaths {
  std::string secret, open;
};

Result<KeyPaths> choose_paths(const KeygenArguments& arguments) {
  if (arguments.output.has_value() == !arguments.name.empty()) {
    return base::fail(ErrorKind::kInput, "a new key needs a name, or a file with -o, and not both",
                      "see `kc keygen --help`");
  }
  if (!arguments.output) return KeyPaths{arguments.name + ".key", arguments.name + ".pub"};
  std::string stem = *arguments.output;
  if (stem.ends_with(".key")) stem.resize(stem.size() - 4);
  return KeyPaths{*arguments.output, stem + ".pub"};
}

Result<bundle::PublicKey> make_key(const KeyPaths& paths, const std::optional<std::string>& passphrase) {
  KC_ASSIGN(const bundle::PrivateKey key, bundle::PrivateKey::generate());
  KC_ASSIGN(const base::Bytes pem, key.to_pem(passphrase));
  KC_ASSIGN(NewFile secret, NewFile::create(paths.secret, pem, 0600));
  KC_ASSIGN(NewFile open,
            NewFile::create(paths.open, base::as_bytes(bundle::to_pem(key.public_key())), 0666));
  secret.keep();
  open.keep();
  return key.public_key();
}

// The bundle itself where a symbolic link leads to it: a link is not replaced by a signed copy.
Result<std::string> real_path(const std::string& path) {
  const std::unique_ptr<char, decltype(&::free)> real(::realpath(path.c_str(), nullptr), &::free);
  if (real == nullptr) return base::fail_errno(ErrorKind::kInput, "open", path, errno);
  return std::string(real.get());
}

// A whole and sound bundle: what is signed is vouched for.
Result<bundle::Reader> open_sound(const std::string& path) {
  KC_ASSIGN(const std::string real, real_path(path));
  KC_ASSIGN(bundle::Reader reader, bundle::Reader::open(real));
  if (std::vector<base::Error> faults = reader.verify_all(); !faults.empty()) {
    faults.front().hint = "a damaged bundle is not signed; `kc verify` lists all that is wrong";
    return std::unexpected(std::move(faults.front()));
  }
  return reader;
}

Result<bundle::Signature> made_elsewhere(const SignArguments& arguments) {
  if (!arguments.key) {
    return base::fail(ErrorKind::kInput, "whose signature --attach adds is not said",
                      "name its public key with --key");
  }
  bundle::Signature signature;
  KC_ASSIGN(signature.key, bundle::read_public_key(*arguments.key));
  KC_ASSIGN(const base::Bytes bytes, base::read_file(*arguments.attach, 1U << 20));
  if (bytes.size() != signature.bytes.size()) {
    return base::fail_at(ErrorKind::kInput, {*arguments.attach},
                         util::format("has {}; an Ed25519 signature is {} raw bytes",
                                      util::counted(bytes.size(), "byte"), signature.bytes.size()));
  }
  std::copy(bytes.begin(), bytes.end(), signature.bytes.begin());
  return signature;
}

Result<bundle::Signature> made_here(const Common& common, const SignArguments& arguments,
                                    base::ByteView message) {
  if (!arguments.key) {
    return base::fail(ErrorKind::kInput, "no key is named", "name the private key with --key");
  }
  KC_ASSIGN(const auto passphrase, choose_passphrase(common, arguments.ask_passphrase, false));
  KC_ASSIGN(const bundle::PrivateKey key, bundle::PrivateKey::read(*arguments.key, passphrase));
  bundle::Signature signature{key.public_key(), {}};
  KC_ASSIGN(signature.bytes, key.sign(message));
  return signature;
}

int export_message(const SignArguments& arguments, base::ByteView message, Console& console) {
  const auto write = [&]() -> Result<void> {
    KC_ASSIGN(base::AtomicFile file, base::AtomicFile::create(AT_FDCWD, *arguments.export_to, 0666));
    KC_TRY(file.write(message));
    return file.commit(base::Sync::kFull);
  };
  if (const auto written = write(); !written) return console.fail(written.error());
  if (console.is_json()) {
    console.json({{"event", "message"}, {"path", *arguments.export_to}, {"bytes", message.size()}});
  } else {
    console.result(
        util::format("kc: {}: {} bytes to sign", util::escape(*arguments.export_to), message.size()));
  }
  return 0;
}

}  // namespace

int command_keygen(const Common& common, const KeygenArguments& arguments, Console& console) {
  const auto paths = choose_paths(arguments);
  if (!paths) return console.fail(paths.error());
  const auto passphrase = choose_passphrase(common, arguments.ask_passphrase, true);
  if (!passphrase) return console.fail(passphrase.error());
  const auto key = make_key(*paths, *passphrase);
  if (!key) return console.fail(key.error());
  if (console.is_json()) {
    console.json({{"event", "key"},
                  {"key", key->id()},
                  {"private", paths->secret},
                  {"public", paths->open},
                  {"encrypted", passphrase->has_value()}});
  } else if (console.verbosity() >= 0) {
    console.result(util::format("kc: wrote {} ({}) and {}: key {}", util::escape(paths->secret),
                                *passphrase ? "encrypted" : "not encrypted: keep it to yourself",
                                util::escape(paths->open), key->id()));
  }
  return 0;
}

int command_sign(const Common& common, const SignArguments& arguments, Console& console) {
  if (arguments.export_to && (arguments.attach || arguments.key)) {
    return console.fail({ErrorKind::kInput, "--export needs no key and adds no signature"});
  }
  auto reader = open_sound(arguments.bundle);
  if (!reader) return console.fail(reader.error());
  const base::Bytes message = bundle::bundle_message(reader->header_digest());
  if (arguments.export_to) return export_message(arguments, message, console);
  const auto signature = arguments.attach ? made_elsewhere(arguments) : made_here(common, arguments, message);
  if (!signature) return console.fail(signature.error());
  const auto added = reader->add_signature(*signature);
  if (!added) return console.fail(added.error());
  const std::string path = util::escape(arguments.bundle);
  if (console.is_json()) {
    console.json({{"event", "signature"},
                  {"path", arguments.bundle},
                  {"key", signature->key.id()},
                  {"state", *added ? "added" : "there"}});
  } else if (console.verbosity() >= 0) {
    console.result(
        util::format("kc: {}: {}signed by {}", path, *added ? "" : "already ", signature->key.id()));
  }
  return 0;
}

}  // namespace kc::cli

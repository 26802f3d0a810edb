#include "store/leftovers.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <utility>

#include "base/file_system.h"

namespace kc::store {
namespace {

// Longer than any file takes to write or any job takes to touch its folder.
constexpr int64_t kTemporaryAge = 3600 * kSecondNs;
constexpr int64_t kQuarantineAge = 24 * kTemporaryAge;
constexpr int64_t kFailureAge = 60 * kSecondNs;
constexpr int64_t kStateAge = 90 * kQuarantineAge;

class Leftovers {
 public:
  Leftovers(const Layout& layout, const GcOptions& options, int64_t now_ns, GcReport& report)
      : layout_(layout), options_(options), now_(now_ns), report_(report) {}

  void remove_temporaries() {
    for_each(layout_.temporary(), [this](const std::string& name, const struct stat& status, int64_t age) {
      const auto parsed = parse_temporary_name(name);
      if (!parsed || (parsed->kind == TemporaryKind::kJob) != S_ISDIR(status.st_mode)) return;
      if (is_due(*parsed, age) && remove(layout_.temporary(), "tmp/" + name, name, S_ISDIR(status.st_mode))) {
        ++report_.temporaries_removed;
      }
    });
  }

  void remove_states() {
    for_each(layout_.states(), [this](const std::string& name, const struct stat& status, int64_t age) {
      if (!S_ISREG(status.st_mode) || !base::parse_digest(name) || age <= kStateAge) return;
      if (remove(layout_.states(), "state/" + name, name, false)) ++report_.states_removed;
    });
  }

 private:
  static bool is_due(const TemporaryName& name, int64_t age) {
    switch (name.kind) {
      case TemporaryKind::kNew:
        return age > kTemporaryAge;
      case TemporaryKind::kBad:
        return age > kQuarantineAge;
      case TemporaryKind::kFailed:
        return age > kFailureAge;
      case TemporaryKind::kJob:
        return age > kTemporaryAge && kill(name.pid, 0) != 0 && errno == ESRCH;
    }
    return false;
  }

  template <typename Visit>
  void for_each(int folder, Visit visit) {
    if (folder < 0) return;
    const auto names = base::list_directory(folder, ".");
    if (!names) {
      trouble(names.error().text());
      return;
    }
    for (const std::string& name : *names) {
      struct stat status;
      if (base::file_system().fstatat(folder, name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) {
        if (errno != ENOENT) {
          trouble(base::fail_errno(base::ErrorKind::kEnvironment, "stat", name, errno).error().text());
        }
        continue;
      }
      if (S_ISREG(status.st_mode) || S_ISDIR(status.st_mode)) visit(name, status, now_ - mtime_ns(status));
    }
  }

  bool remove(int folder, const std::string& shown, const std::string& name, bool tree) {
    if (!options_.dry_run) {
      if (tree) {
        const auto removed = base::remove_tree(layout_.path() + "/v1/" + shown);
        if (!removed) return trouble(removed.error().text());
      } else if (base::file_system().unlinkat(folder, name.c_str(), 0) != 0 && errno != ENOENT) {
        return trouble(
            base::fail_errno(base::ErrorKind::kEnvironment, "remove", shown, errno).error().text());
      }
    }
    if (options_.dry_run || options_.list_removed) report_.removed.push_back(shown);
    return true;
  }

  bool trouble(std::string text) {
    if (report_.trouble.empty()) report_.trouble = std::move(text);
    return false;
  }

  const Layout& layout_;
  const GcOptions& options_;
  const int64_t now_;
  GcReport& report_;
};

}  // namespace

void remove_leftovers(const Layout& layout, const GcOptions& options, int64_t now_ns, GcReport& report) {
  Leftovers leftovers(layout, options, now_ns, report);
  leftovers.remove_temporaries();
  leftovers.remove_states();
}

}  // namespace kc::store

#include "config/user_settings.h"

#include <doctest/doctest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

namespace {

using namespace kc;
using config::Environment;

// A home with a settings file.
class Home {
 public:
  Home() {
    std::string pattern = (std::filesystem::temp_directory_path() / "kc-home-XXXXXX").string();
    REQUIRE(mkdtemp(pattern.data()) != nullptr);
    path_ = pattern;
    std::filesystem::create_directories(folder());
    std::filesystem::permissions(folder(), std::filesystem::perms(0755));
    environment.home = path_;
  }
  ~Home() { std::filesystem::remove_all(path_); }
  Home(const Home&) = delete;
  Home& operator=(const Home&) = delete;

  std::string folder() const { return path_ + "/.config/kc"; }
  std::string file() const { return folder() + "/config.yaml"; }
  void write(std::string_view text, mode_t mode = 0644) const {
    std::ofstream(file(), std::ios::binary | std::ios::trunc) << text;
    REQUIRE(::chmod(file().c_str(), mode) == 0);
  }
  config::UserSettings read() const {
    auto settings = config::read_user_settings(environment);
    REQUIRE_MESSAGE(settings, (settings ? "" : settings.error().text()));
    return std::move(*settings);
  }
  /// What is wrong with the text, without the folder.
  std::string fault(std::string_view text, mode_t mode = 0644) const {
    write(text, mode);
    return fault();
  }
  std::string fault() const {
    const auto settings = config::read_user_settings(environment);
    REQUIRE_FALSE(settings);
    CHECK(settings.error().kind == base::ErrorKind::kInput);
    std::string out = settings.error().text();
    for (size_t at; (at = out.find(folder() + "/")) != std::string::npos;) out.erase(at, folder().size() + 1);
    return out;
  }

  Environment environment;

 private:
  std::string path_;
};

bool contains(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

TEST_CASE("a user without a settings file has none") {
  const Home home;
  CHECK(home.read().path.empty());
  CHECK(config::read_user_settings(Environment())->path.empty());
  CHECK(config::user_settings_path(Environment()).empty());
}

TEST_CASE("the settings file is that of XDG_CONFIG_HOME else of HOME") {
  Environment environment;
  environment.home = "/home/me";
  CHECK(config::user_settings_path(environment) == "/home/me/.config/kc/config.yaml");
  environment.xdg_config_home = "/etc/mine";
  CHECK(config::user_settings_path(environment) == "/etc/mine/kc/config.yaml");
  environment.xdg_config_home = "relative";  // ignored, as its specification says
  CHECK(config::user_settings_path(environment) == "/home/me/.config/kc/config.yaml");
}

TEST_CASE("every setting is read and paths are relative to the file") {
  const Home home;
  home.write(R"(# mine
trusted_keys: [keys/a.pub, /etc/kc/b.pub]
store_dir: store
store_mode: ro
store_limit: 2GiB
store_read_only_dirs:
  - /srv/kc
  - shared
jobs: 4
keep_going: 3
timeout: 90s
level: 9
frame_size: 64KiB
)");
  const config::UserSettings settings = home.read();
  CHECK(settings.path == home.file());
  CHECK(settings.trusted_keys == std::vector<std::string>{home.folder() + "/keys/a.pub", "/etc/kc/b.pub"});
  CHECK(settings.store_dir == home.folder() + "/store");
  CHECK(settings.store_mode == "ro");
  CHECK(settings.store_limit == 2ULL << 30);
  CHECK(settings.store_read_only_dirs == std::vector<std::string>{"/srv/kc", home.folder() + "/shared"});
  CHECK(settings.jobs == 4);
  CHECK(settings.keep_going == 3);
  CHECK(settings.timeout == std::chrono::seconds(90));
  CHECK(settings.level == 9);
  CHECK(settings.frame_size == 64U << 10);
}

TEST_CASE("a file of comments alone says nothing") {
  const Home home;
  for (const char* text : {"", "\n", "# nothing yet\n\n  # level: 3\n"}) {
    home.write(text);
    CHECK(home.read().path == home.file());
  }
}

TEST_CASE("variables come before the settings file") {
  config::UserSettings settings;
  settings.store_dir = "/of/file";
  settings.store_mode = "ro";
  settings.store_limit = 1;
  settings.jobs = 2;
  settings.store_read_only_dirs = std::vector<std::string>{"/tier"};
  Environment environment;
  config::apply(settings, environment);
  CHECK(environment.store_dir == "/of/file");
  CHECK(environment.store_mode == "ro");
  CHECK(environment.store_limit == 1);
  CHECK(environment.jobs == 2);
  CHECK(environment.store_read_only_dirs == std::vector<std::string>{"/tier"});
  environment = {};
  environment.store_dir = "/of/variable";
  environment.jobs = 7;
  config::apply(settings, environment);
  CHECK(environment.store_dir == "/of/variable");
  CHECK(environment.jobs == 7);
  CHECK(environment.store_mode == "ro");
}

TEST_CASE("an unknown setting is an error with its place and the nearest name") {
  const Home home;
  CHECK(home.fault("level: 3\ntrusted_key: [a]\n") ==
        "config.yaml:2:1: unknown setting \"trusted_key\" (did you mean \"trusted_keys\"?)");
  CHECK(contains(home.fault("colour: blue\n"), "there are trusted_keys, store_dir"));
}

TEST_CASE("a value that is wrong is an error with its place and what was expected") {
  const Home home;
  const std::pair<const char*, const char*> kFaults[] = {
      {"store_mode: rwx\n", "config.yaml:1:13: \"store_mode\" is \"rwx\"; expected rw, ro, off or refresh"},
      {"store_limit: much\n", "config.yaml:1:14: \"store_limit\" is \"much\"; expected a size"},
      {"jobs: 0\n", "config.yaml:1:7: \"jobs\" is \"0\"; expected a whole number from 1 to 1024"},
      {"jobs: [1]\n", "config.yaml:1:7: \"jobs\" is a list; expected a whole number"},
      {"keep_going: -1\n", "\"keep_going\" is \"-1\"; expected a number of failures"},
      {"timeout: soon\n", "\"timeout\" is \"soon\"; expected a duration"},
      {"level: 20\n", "\"level\" is \"20\"; expected a zstd level from 1 to 19"},
      {"frame_size: 1KiB\n", "\"frame_size\" is \"1KiB\"; expected a size from 4KiB"},
      {"trusted_keys: a.pub\n", "\"trusted_keys\" is \"a.pub\"; expected a list of paths"},
      {"trusted_keys: [[a]]\n", "\"trusted_keys\" is a list; expected a list of paths"},
      {"trusted_keys: ['']\n", "expected a list of paths"},
      {"store_dir:\n", "\"store_dir\" is nothing; expected a path"},
      {"store_read_only_dirs: {a: b}\n", "expected a list of paths"},
      {"- level\n", "the user's settings are a map, not a list"},
      {"level: 3\nlevel: 4\n", "config.yaml:2:1: "},
      {"level: [3\n", "config.yaml:"},
  };
  for (const auto& [text, expected] : kFaults) {
    CAPTURE(text);
    CHECK(contains(home.fault(text), expected));
  }
  CHECK(contains(home.fault(std::string(300'000, '#')), "config.yaml"));
}

TEST_CASE("a file that others can write is refused because it names keys") {
  const Home home;
  CHECK(contains(home.fault("level: 3\n", 0664), "can be written by others, so it is not used"));
  CHECK(contains(home.fault("level: 3\n", 0646), "can be written by others"));
  CHECK(contains(home.fault("level: 3\n", 0646), "chmod go-w"));
  home.write("level: 3\n", 0600);
  CHECK(home.read().level == 3);
  // Whoever can write the folder can put another file there.
  REQUIRE(::chmod(home.folder().c_str(), 0777) == 0);
  CHECK(contains(home.fault(), "the folder of the user's settings file can be written by others"));
}

TEST_CASE("a file that cannot be read is an error and not a file that is not there") {
  const Home home;
  std::filesystem::create_directories(home.file());
  CHECK(contains(home.fault(), "config.yaml"));
}

}  // namespace

#include "support/stub_driver/control.h"

#include <unistd.h>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <sstream>
#include <thread>

namespace kc::stub {
namespace {

struct Rule {
  std::string function;
  int code = 0;
  long at = 0;    // 0: any
  long from = 0;  // 0: any
  long image = -1;
  std::string symbol;
  long calls = 0;  // that fitted so far
};

struct State {
  std::mutex mutex;
  std::condition_variable released;
  bool told = false;
  int version = 0;
  bool no_device = false;
  std::vector<StubDevice> devices;
  std::vector<Rule> rules;
  std::map<std::string, long> slow;
  std::vector<std::string> held;
  uint64_t epoch = 0;  // raised by what ends the waiting
  std::map<int, std::string> texts;
  std::string jit;
  std::string log;
  std::map<std::string, long, std::less<>> calls;
  std::map<std::string, long, std::less<>> gauges;
};

// Never destroyed: threads may call while the process ends.
State& state() {
  static State* const all = new State;
  return *all;
}

[[noreturn]] void misspelled(const std::string& line) {
  std::fprintf(stderr, "stub driver: no such directive: %s\n", line.c_str());
  _exit(70);
}

std::string rest_of(std::istringstream& in) {
  std::string text;
  std::getline(in >> std::ws, text);
  return text;
}

Rule rule_of(std::istringstream& in, const std::string& line) {
  Rule rule;
  std::string word;
  if (!(in >> rule.function >> rule.code)) misspelled(line);
  while (in >> word) {
    std::string value;
    if (!(in >> value)) misspelled(line);
    if (word == "symbol") {
      rule.symbol = value;
      continue;
    }
    const long number = std::strtol(value.c_str(), nullptr, 0);
    if (word == "at") {
      rule.at = number;
    } else if (word == "from") {
      rule.from = number;
    } else if (word == "sm" || word == "mach") {
      rule.image = number;
    } else {
      misspelled(line);
    }
  }
  return rule;
}

void take_line(State& all, const std::string& line) {
  std::istringstream in(line);
  std::string word;
  if (!(in >> word)) return;
  if (word == "version") {
    if (!(in >> all.version)) misspelled(line);
  } else if (word == "device") {
    StubDevice device;
    in >> device.architecture;
    device.name = rest_of(in);
    if (device.architecture == "none") {
      all.no_device = true;
    } else {
      all.devices.push_back(device);
    }
  } else if (word == "fail") {
    all.rules.push_back(rule_of(in, line));
  } else if (word == "slow") {
    std::string function;
    in >> function;
    if (!(in >> all.slow[function])) misspelled(line);
  } else if (word == "hold") {
    all.held.push_back(rest_of(in));
  } else if (word == "text") {
    int code = 0;
    if (!(in >> code)) misspelled(line);
    all.texts[code] = rest_of(in);
  } else if (word == "jit") {
    all.jit = rest_of(in);
  } else if (word == "log") {
    all.log = rest_of(in);
  } else {
    misspelled(line);
  }
}

void tell_locked(State& all, std::string_view text) {
  all.told = true;
  all.version = 0;
  all.no_device = false;
  all.devices.clear();
  all.rules.clear();
  all.slow.clear();
  all.held.clear();
  all.texts.clear();
  all.jit.clear();
  all.log.clear();
  all.calls.clear();
  ++all.epoch;
  all.released.notify_all();
  std::string line;
  for (const char c : text) {
    if (c == '\n' || c == ';') {
      take_line(all, line);
      line.clear();
    } else {
      line += c;
    }
  }
  take_line(all, line);
}

bool fits(const Rule& rule, const Call& call) {
  return rule.function == call.function && (rule.image < 0 || rule.image == static_cast<long>(call.image)) &&
         (rule.symbol.empty() || rule.symbol == call.symbol);
}

void write_log(const State& all, const Call& call, int code) {
  if (all.log.empty()) return;
  std::FILE* const file = std::fopen(all.log.c_str(), "a");
  if (file == nullptr) return;
  std::fprintf(file, "%s %u %s %d\n", call.function.c_str(), call.image,
               call.symbol.empty() ? "-" : call.symbol.c_str(), code);
  std::fclose(file);
}

}  // namespace

void tell(std::string_view text) {
  State& all = state();
  const std::lock_guard lock(all.mutex);
  tell_locked(all, text);
}

void tell_from_environment(const char* variable) {
  State& all = state();
  const std::lock_guard lock(all.mutex);
  if (all.told) return;
  const char* const text = std::getenv(variable);
  tell_locked(all, text != nullptr ? text : "");
}

int version(int otherwise) {
  State& all = state();
  const std::lock_guard lock(all.mutex);
  return all.version != 0 ? all.version : otherwise;
}

std::vector<StubDevice> devices(const StubDevice& otherwise) {
  State& all = state();
  const std::lock_guard lock(all.mutex);
  if (all.no_device) return {};
  return all.devices.empty() ? std::vector{otherwise} : all.devices;
}

std::string text_of(int code) {
  State& all = state();
  const std::lock_guard lock(all.mutex);
  const auto found = all.texts.find(code);
  return found != all.texts.end() ? found->second : std::string();
}

std::string jit_text() {
  State& all = state();
  const std::lock_guard lock(all.mutex);
  return all.jit;
}

int enter(const Call& call) {
  State& all = state();
  std::unique_lock lock(all.mutex);
  ++all.calls[call.function];
  int code = 0;
  for (Rule& rule : all.rules) {
    if (!fits(rule, call)) continue;
    ++rule.calls;
    const bool now = rule.at != 0 ? rule.calls == rule.at : rule.calls >= rule.from;
    if (now && code == 0) code = rule.code;
  }
  write_log(all, call, code);
  const auto slow = all.slow.find(call.function);
  const long milliseconds = slow != all.slow.end() ? slow->second : 0;
  for (const std::string& function : all.held) {
    if (function != call.function) continue;
    const uint64_t epoch = all.epoch;
    ++all.gauges["waiting"];
    all.released.wait(lock, [&] { return all.epoch != epoch; });
    --all.gauges["waiting"];
    break;
  }
  lock.unlock();
  if (milliseconds > 0) std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
  return code;
}

void release() {
  State& all = state();
  const std::lock_guard lock(all.mutex);
  all.held.clear();
  ++all.epoch;
  all.released.notify_all();
}

long count(std::string_view name) {
  State& all = state();
  const std::lock_guard lock(all.mutex);
  if (const auto gauge = all.gauges.find(name); gauge != all.gauges.end()) return gauge->second;
  const auto calls = all.calls.find(name);
  return calls != all.calls.end() ? calls->second : 0;
}

void add(std::string_view gauge, long amount) {
  State& all = state();
  const std::lock_guard lock(all.mutex);
  all.gauges[std::string(gauge)] += amount;
}

void forget() {
  State& all = state();
  const std::lock_guard lock(all.mutex);
  all.gauges.clear();
}

}  // namespace kc::stub

extern "C" {

void kc_stub_tell(const char* text) {
  kc::stub::tell(text);
}
void kc_stub_release() {
  kc::stub::release();
}
long kc_stub_count(const char* name) {
  return kc::stub::count(name);
}
}

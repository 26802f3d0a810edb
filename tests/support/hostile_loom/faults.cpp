#include "support/hostile_loom/faults.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cfenv>
#include <chrono>
#include <clocale>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <stdexcept>
#include <string_view>
#include <thread>

#include "support/process_faults.h"

namespace kc::test::hostile {
namespace {

constexpr std::string_view kStages[] = {"index", "link", "compile", "emit"};
constexpr std::string_view kFaults[] = {"stdout", "stderr",  "sleep",    "allocate", "eat",    "chdir",
                                        "locale", "sigmask", "rounding", "warn",     "dlopen", "fail",
                                        "status", "throw",   "corrupt",  "segfault", "abort",  "overflow",
                                        "exit",   "kill",    "hang",     "count"};

std::atomic<uint64_t> g_poison{0};

/// A file's directives as one stage sees them.
class Orders {
 public:
  Orders(const Directives& directives, Stage stage)
      : directives_(directives),
        stage_(kStages[static_cast<size_t>(stage)]),
        is_default_(stage == Stage::kCompile) {}

  std::string name(std::string_view name) const {
    const std::string staged = std::string(name) + ":" + std::string(stage_);
    return is_default_ && !directives_.has(staged) ? std::string(name) : staged;
  }
  bool has(std::string_view what) const { return directives_.has(name(what)); }
  std::optional<std::string> find(std::string_view what) const { return directives_.find(name(what)); }
  std::optional<unsigned> number(std::string_view what) const { return directives_.number(name(what)); }
  std::optional<size_t> size(std::string_view what) const { return directives_.size(name(what)); }

 private:
  const Directives& directives_;
  std::string_view stage_;
  bool is_default_;
};

// `CODE:TEXT`
std::pair<std::string, std::string> split(const std::string& value) {
  const size_t colon = std::min(value.find(':'), value.size());
  return {value.substr(0, colon), value.substr(std::min(colon + 1, value.size()))};
}

[[noreturn]] void end_by(int number) {
  expect_end_by(number);
  raise(number);
  std::abort();
}

[[noreturn]] void segfault() {
  expect_end_by(SIGSEGV);
  // A page that may not be written, not address 0, which a sanitizer would report before it happens.
  auto* page =
      static_cast<volatile char*>(mmap(nullptr, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  *page = 1;
  std::abort();
}

// Not given back: a compiler that eats memory keeps it.
bool eat(size_t size) {
  constexpr size_t kPiece = 16U << 20;
  for (size_t eaten = 0; eaten < size; eaten += kPiece) {
    const size_t piece = std::min(kPiece, size - eaten);
    void* block = mmap(nullptr, piece, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (block == MAP_FAILED) return false;
    std::memset(block, 0xA5, piece);
  }
  return true;
}

Status allocate(Allocator allocator, size_t size) {
  void* block = nullptr;
  if (const Status status = allocator.control(allocator.self, kMalloc, &size, &block)) return status;
  std::memset(block, 0xA5, size);
  allocator.control(allocator.self, kFree, nullptr, &block);
  return 0;
}

void taint(const Orders& orders) {
  if (orders.has("chdir") && chdir("/proc") != 0) std::abort();
  if (orders.has("locale") && std::setlocale(LC_ALL, "C.UTF-8") == nullptr) std::abort();
  if (orders.has("rounding")) std::fesetround(FE_UPWARD);
  if (orders.has("sigmask")) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR2);
    pthread_sigmask(SIG_BLOCK, &set, nullptr);
  }
}

void say(const Orders& orders, const IndexFile& file, std::string_view what, uint32_t severity,
         Result& result) {
  const auto value = orders.find(what);
  if (!value) return;
  const auto [code, text] = split(*value);
  Diagnostic out;
  out.severity = severity;
  out.code = code;
  out.message = text;
  out.source = file.source;
  out.line = line_of(file.text->text, orders.name(what));
  out.column = 1;
  result.add(std::move(out));
}

void crash(const Orders& orders) {
  if (orders.has("throw")) throw std::runtime_error("the hostile library throws");
  if (orders.has("corrupt")) {
    g_poison = 0x5EEDBAD;
    spoil_artifacts();
    const auto text = orders.find("corrupt");
    const unsigned wait = text->empty() ? 100 : *orders.number("corrupt");
    std::this_thread::sleep_for(std::chrono::milliseconds(wait));
    segfault();
  }
  if (orders.has("segfault")) segfault();
  if (orders.has("abort")) end_by(SIGABRT);
  if (orders.has("overflow")) overflow_stack();
  if (const auto code = orders.number("exit")) std::exit(static_cast<int>(*code));
  if (const auto number = orders.number("kill")) end_by(static_cast<int>(*number));
  while (orders.has("hang")) pause();
}

// A file `libloomc.so.next` beside the library takes its place when it is loaded: as if somebody installed
// another one at that moment.
[[gnu::constructor]] void replace_when_loaded() {
  Dl_info self;
  if (dladdr(reinterpret_cast<void*>(&replace_when_loaded), &self) == 0) return;
  const std::string path = self.dli_fname;
  std::rename((path + ".next").c_str(), path.c_str());
}

}  // namespace

uint64_t poison() {
  return g_poison;
}

bool is_meant(const Directives& directives, const Occasion& occasion) {
  const auto targets = directives.all("only");
  if (!targets.empty() && std::ranges::find(targets, occasion.target) == targets.end()) return false;
  for (const std::string& condition : directives.all("when")) {
    const size_t equals = std::min(condition.find('='), condition.size());
    if (occasion.values == nullptr) return false;
    const auto found = occasion.values->find(condition.substr(0, equals));
    if (found == occasion.values->end() ||
        found->second != condition.substr(std::min(equals + 1, condition.size()))) {
      return false;
    }
  }
  return true;
}

Status act(const Occasion& occasion, Result& result) {
  const Directives& directives = occasion.file.text->directives;
  const Orders orders(directives, occasion.stage);
  const bool has_any = std::ranges::any_of(kFaults, [&](std::string_view name) { return orders.has(name); });
  if (!has_any || !is_meant(directives, occasion)) return 0;
  if (const auto mark = directives.find("once")) {
    const int file = open(mark->c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (file < 0) return 0;
    close(file);
  }
  if (const auto tally = orders.find("count")) std::ofstream(*tally, std::ios::app) << '1';
  std::fputs(orders.find("stdout").value_or("").c_str(), stdout);
  std::fputs(orders.find("stderr").value_or("").c_str(), stderr);
  std::fflush(stdout);
  std::fflush(stderr);
  if (const auto wait = orders.number("sleep")) std::this_thread::sleep_for(std::chrono::milliseconds(*wait));
  if (const auto size = orders.size("allocate")) {
    if (const Status status = allocate(occasion.allocator, *size)) return status;
  }
  if (const auto size = orders.size("eat"); size && !eat(*size)) {
    return fail(kResourceExhausted, "out of memory");
  }
  if (const auto part = orders.find("dlopen"); part && dlopen(part->c_str(), RTLD_NOW) == nullptr) {
    return fail(kNotFound, dlerror());
  }
  taint(orders);
  say(orders, occasion.file, "warn", kWarning, result);
  say(orders, occasion.file, "fail", kError, result);
  if (const auto value = orders.find("status")) {
    const auto [code, text] = split(*value);
    return fail(static_cast<Code>(std::atoi(code.c_str())), text);
  }
  crash(orders);
  return 0;
}

}  // namespace kc::test::hostile

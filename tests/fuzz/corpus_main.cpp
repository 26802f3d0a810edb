// Runs check() over the files of a corpus, as they are and damaged in a fixed way, so that what fuzzing found
// stays found without a fuzzer.
//
// usage: corpus_<name> FOLDER
//
// `whole-*` must be whole: they are what kc writes, or takes, today. `damaged-*` must not be. Any other file
// (the input of a finding, named after it) need only keep the promises. Each file has a process of its own; a
// broken promise, a crash or too much memory is printed with what was changed, and the rest goes on.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <new>
#include <string>
#include <vector>

#include "base/files.h"
#include "fuzz/fuzz.h"
#include "support/temp_folder.h"

namespace {

using kc::base::Bytes;
using kc::base::ByteView;

// More than any reader may need for a few KB. Sanitizers take several times as much themselves.
constexpr long kMostMemoryKiB = 512L << 10;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kMeasuresMemory = false;
#else
constexpr bool kMeasuresMemory = true;
#endif

// Of one file: enough to get into every part of a small one, a second at most with sanitizers.
constexpr size_t kTruncations = 64;
constexpr size_t kFlips = 256;

enum class Change : uint32_t { kNone, kCut, kFlip };
constexpr uint8_t kMasks[] = {0x01, 0x80, 0xFF};

// What a process is at, seen by its parent.
struct Step {
  Change change = Change::kNone;
  uint32_t at = 0;
  uint32_t mask = 0;
};

// `count` positions spread over [0, size), or all of them.
std::vector<size_t> spread(size_t size, size_t count) {
  std::vector<size_t> out;
  for (size_t i = 0; i < std::min(size, count); ++i) out.push_back(size <= count ? i : i * size / count);
  return out;
}

// The child: every change of one file. Its exit status says whether the file is what its name says.
int run_file(const std::string& name, const Bytes& file, volatile Step& step) {
  const bool whole = kc::fuzz::check(file);
  if (name.starts_with("whole-") && !whole) return 2;
  if (name.starts_with("damaged-") && whole) return 3;
  step.change = Change::kCut;
  for (const size_t size : spread(file.size(), kTruncations)) {
    step.at = static_cast<uint32_t>(size);
    // A copy of its own: reading beyond its end is then seen.
    kc::fuzz::check(Bytes(file.begin(), file.begin() + static_cast<ptrdiff_t>(size)));
  }
  step.change = Change::kFlip;
  Bytes changed = file;
  size_t count = 0;
  for (const size_t at : spread(file.size(), kFlips)) {
    const uint8_t mask = kMasks[count++ % std::size(kMasks)];
    step.at = static_cast<uint32_t>(at);
    step.mask = mask;
    changed[at] ^= mask;
    kc::fuzz::check(changed);
    changed[at] ^= mask;
  }
  return 0;
}

std::string text_of(const Step& step) {
  switch (step.change) {
    case Change::kNone:
      break;
    case Change::kCut:
      return "cut to " + std::to_string(step.at) + " bytes";
    case Change::kFlip:
      return "byte " + std::to_string(step.at) + " xor " + std::to_string(step.mask);
  }
  return "as it is";
}

// What went wrong, or nothing.
std::string fault_of(const std::string& name, const Bytes& file, Step& step) {
  step = Step();
  const pid_t child = fork();
  if (child < 0) return "fork failed";
  if (child == 0) _exit(run_file(name, file, step));
  int status = 0;
  rusage usage{};
  if (wait4(child, &status, 0, &usage) != child) return "wait4 failed";
  if (WIFSIGNALED(status)) return "signal " + std::to_string(WTERMSIG(status)) + ", " + text_of(step);
  if (WEXITSTATUS(status) == 2) return "is not whole: today's reader does not take it";
  if (WEXITSTATUS(status) == 3) return "is taken for whole";
  if (WEXITSTATUS(status) != 0) {
    return "exit " + std::to_string(WEXITSTATUS(status)) + ", " + text_of(step);
  }
  if (kMeasuresMemory && usage.ru_maxrss > kMostMemoryKiB) {
    return "took " + std::to_string(usage.ru_maxrss >> 10) + " MiB of memory";
  }
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: %s FOLDER\n", argv[0]);
    return 2;
  }
  const std::string folder = argv[1];
  const auto names = kc::base::list_directory(AT_FDCWD, folder);
  if (!names) {
    std::fprintf(stderr, "%s\n", names.error().text().c_str());
    return 2;
  }
  // What a process that died has left goes with this folder.
  const kc::test::TempFolder scratch;
  setenv("TMPDIR", scratch.path().c_str(), 1);
  void* shared = mmap(nullptr, sizeof(Step), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) return 2;
  auto* step = new (shared) Step;

  size_t whole = 0;
  size_t failed = 0;
  for (const std::string& name : *names) {
    const auto file = kc::base::read_file(kc::base::join_path(folder, name), 1U << 20);
    const std::string fault = file ? fault_of(name, *file, *step) : file.error().text();
    if (!fault.empty()) std::printf("%s: %s\n", name.c_str(), fault.c_str());
    if (!fault.empty()) ++failed;
    if (name.starts_with("whole-")) ++whole;
  }
  std::printf("%zu files, %zu of them whole, %zu failed\n", names->size(), whole, failed);
  if (whole == 0) std::printf("a corpus without a whole file tests nothing\n");
  return failed == 0 && whole != 0 ? 0 : 1;
}

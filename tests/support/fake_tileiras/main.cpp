// A stand-in for tileiras 13.4 with its command line, texts and exit codes, for tests without the real one.
//
//   fake_tileiras --install FOLDER [VARIANT]     lays itself into FOLDER as an installation
//   (support/fake_install.h)
//
// It reads Tile IR bytecode as far as the names of its entries, or the Tile IR header followed by directives
// (support/directives.h), and writes a small cubin whose code depends on the input, the
// options, its own variant and the ptxas beside it. Directives, carried out in this order:
//
//   @count=FILE           make FILE a byte longer
//   @once=FILE            do what comes next, up to @exit, only if FILE does not exist; it is made
//   @env                  print the environment on stderr, `env NAME=VALUE` a line, sorted
//   @stdout=T @stderr=T   print T
//   @spawn-grandchild     start a child that sleeps, and print `grandchild PID` on stdout
//   @sleep=MS             wait
//   @hang                 wait for ever, deaf to SIGTERM
//   @eat=SIZE             take that much memory and write to it; exit 5 when there is no more
//   @overflow             end by SIGSEGV at the end of the stack
//   @throw                end by an exception that nobody catches
//   @signal=N             end by that signal
//   @incompatible=ARCH    answer exit 5, as the real one does to 8-bit floats on sm_80, when ARCH is asked
//                         for; may be given several times. An ARCH that it does not know at all (sm_75) is
//                         exit 1, whatever the source says.
//   @exit=N               end with that code; no output is written
//   @entry=NAME           an entry of the output, may be given several times; default: those of the bytecode,
//   else
//                         `kernel`
//   @arch=NAME            the architecture that the output claims; default: as tileiras does, the one asked
//   for, with
//                         an `a` from sm_90 up
//   @suffix=none|a|f      the default's suffix instead
//   @registers=N @local=N @shared=N   facts of every entry
//   @size=N               bytes of code an entry
//   @code                 on a line of its own: what follows it is the code of each entry, as it stands, and
//                         no directive
//   @output=none|empty|garbage|truncated   what is written instead of a whole cubin
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "backend/backend.h"
#include "base/digest.h"
#include "base/files.h"
#include "support/cubin_writer.h"
#include "support/directives.h"
#include "support/fake_install.h"
#include "support/process_faults.h"
#include "target/target.h"
#include "util/process.h"
#include "util/text.h"

namespace kc::test {
namespace {

constexpr size_t kHeaderSize = 12;
constexpr std::string_view kCodeMark = "\n@code\n";
constexpr std::string_view kVersionText =
    "tileiras: NVIDIA (R) Cuda Tile IR optimizing assembler\n"
    "Copyright (c) 2005-2026 NVIDIA Corporation\n"
    "Built on Tue_Sep__1_09:35:26_PDT_2026\n"
    "Cuda compilation tools, release 13.4, V13.4.92\n"
    "Build fake\n";
constexpr const char* kGpus[] = {"80",  "86",  "87",  "88",  "89",  "90",
                                 "100", "103", "107", "110", "120", "121"};

struct Command {
  std::string input;
  std::string output;
  std::string gpu;
  std::string opt = "3";
  bool debug = false;
  std::string remarks_file;
  std::string all;  // what the code depends on besides the input
};

[[noreturn]] void quit(int code, std::string_view message) {
  std::fwrite(message.data(), 1, message.size(), stderr);
  std::fflush(stderr);
  std::_Exit(code);
}

void print_help() {
  std::puts("OVERVIEW: tileiras: NVIDIA (R) Cuda Tile IR optimizing assembler\n");
  std::puts("  --gpu-name=<value>             - Specify name of NVIDIA GPU to generate code for.");
  for (const char* gpu : kGpus) std::printf("    =sm_%-25s -   SM %s\n", gpu, gpu);
  std::puts("  --host-arch=<value>            - Specify the architecture for the generated host code.");
  std::puts("    =x86_64                      -   x86_64");
}

Command parse(const std::vector<std::string>& arguments) {
  Command out;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string& word = arguments[i];
    const auto value_of = [&](std::string_view name) -> std::optional<std::string> {
      if (word.starts_with(util::format("{}=", name))) return word.substr(name.size() + 1);
      if (word == name && i + 1 < arguments.size()) return arguments[++i];
      return std::nullopt;
    };
    if (auto output = value_of("-o")) {
      out.output = *output;
    } else if (auto gpu = value_of("--gpu-name")) {
      out.gpu = *gpu;
    } else if (auto remarks = value_of("--remarks-output-file")) {
      out.remarks_file = *remarks;
    } else if (word.starts_with("-O")) {
      out.opt = word.substr(2);
    } else if (word == "-g") {
      out.debug = true;
      out.all += word + " ";
    } else if (word == "--lineinfo" || word == "--sanitize=memcheck") {
      out.all += word + " ";
    } else if (word.starts_with("--remark")) {
      continue;
    } else if (word.starts_with('-')) {
      quit(1, util::format("tileiras: Unknown command line argument '{}'.  Try: 'tileiras --help'\n", word));
    } else {
      out.input = word;
    }
  }
  const bool is_known =
      std::ranges::any_of(kGpus, [&](const char* gpu) { return out.gpu == std::string("sm_") + gpu; });
  if (!is_known) {
    quit(1, util::format("tileiras: for the --gpu-name option: Cannot find option named '{}'!\n", out.gpu));
  }
  if (out.opt.size() != 1 || out.opt < "0" || out.opt > "3") {
    quit(2, util::format("error: invalid optimization level: {}\n", out.opt));
  }
  if (out.debug && out.opt != "0") {
    quit(2,
         "error: optimized debugging is currently not supported, change the optimization level to 0 or "
         "disable "
         "full debug info\n");
  }
  out.all += util::format("-O{} {}", out.opt, out.gpu);
  return out;
}

base::Bytes read_source(const std::string& path) {
  auto bytes = base::read_file(path, 256U << 20);
  if (!bytes)
    quit(1, util::format("error: unable to read input file '{}': No such file or directory\n", path));
  constexpr std::string_view kMagic{"\x7FTileIR\0", 8};
  if (!base::as_text(*bytes).starts_with(kMagic)) {
    quit(3, "error: input does not correspond to Tile IR bytecode\n");
  }
  const unsigned major = bytes->size() > 8 ? (*bytes)[8] : 0;
  const unsigned minor = bytes->size() > 9 ? (*bytes)[9] : 0;
  if (bytes->size() < kHeaderSize || major != 13 || minor < 1 || minor > 4) {
    quit(3, util::format("error: unsupported Tile IR bytecode version: {}.{}\n", major, minor));
  }
  return std::move(*bytes);
}

void print_environment() {
  std::vector<std::string> lines;
  for (char** variable = ::environ; *variable != nullptr; ++variable) lines.emplace_back(*variable);
  std::ranges::sort(lines);
  for (const std::string& line : lines) std::fprintf(stderr, "env %s\n", line.c_str());
}

// As 13.4 prints it without debug information.
void refuse_architecture(const Command& command, const Directives& directives) {
  for (const std::string& architecture : directives.all("incompatible")) {
    if (architecture != command.gpu) continue;
    quit(5, util::format(
                "loc(\"fake.py\":7:11): error: Incompatibility with architecture '{}': unsupported type "
                "'f8E4M3FN'\nerror: failed to compile Tile IR program\n",
                command.gpu));
  }
}

void eat(size_t size) {
  void* block = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (block == MAP_FAILED) quit(5, "error: out of memory\nerror: failed to compile Tile IR program\n");
  std::memset(block, 0xA5, size);
}

// What a test asks for before anything is written. Does not come back when it ends the program.
void act(const Command& command, const Directives& directives) {
  if (const auto tally = directives.find("count")) std::ofstream(*tally, std::ios::app) << '1';
  if (const auto mark = directives.find("once")) {
    const int file = open(mark->c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (file < 0) return;
    close(file);
  }
  if (directives.has("env")) print_environment();
  std::fputs(directives.find("stdout").value_or("").c_str(), stdout);
  std::fputs(directives.find("stderr").value_or("").c_str(), stderr);
  std::fflush(stdout);
  std::fflush(stderr);
  if (directives.has("spawn-grandchild")) {
    const pid_t child = fork();
    if (child == 0) {
      for (;;) pause();
    }
    std::printf("grandchild %d\n", static_cast<int>(child));
    std::fflush(stdout);
  }
  if (const auto milliseconds = directives.number("sleep")) {
    std::this_thread::sleep_for(std::chrono::milliseconds(*milliseconds));
  }
  if (directives.has("hang")) {
    signal(SIGTERM, SIG_IGN);
    for (;;) pause();
  }
  if (const auto size = directives.size("eat")) eat(*size);
  if (directives.has("overflow")) overflow_stack();
  if (directives.has("throw")) {
    expect_end_by(SIGABRT);
    throw std::runtime_error("the stand-in throws");
  }
  if (const auto number = directives.number("signal")) {
    expect_end_by(static_cast<int>(*number));
    raise(static_cast<int>(*number));
  }
  refuse_architecture(command, directives);
  if (const auto code = directives.number("exit")) std::_Exit(static_cast<int>(*code));
}

std::vector<std::string> entries(const Directives& directives, base::ByteView source) {
  std::vector<std::string> out = directives.all("entry");
  if (out.empty()) out = backend::entries_of("tileiras", "", source).value_or(std::vector<std::string>{});
  if (out.empty()) out = {"kernel"};
  return out;
}

// What a source brings as its code: the bytes behind the first line that is `@code`.
std::optional<base::Bytes> own_code(base::ByteView source) {
  const size_t at = base::as_text(source).find(kCodeMark);
  if (at == std::string_view::npos) return std::nullopt;
  const base::ByteView code = source.subspan(at + kCodeMark.size());
  return base::Bytes(code.begin(), code.end());
}

base::Bytes code_for(const base::Digest& seed, size_t size) {
  base::Bytes out;
  for (uint32_t block = 0; out.size() < size; ++block) {
    base::ByteWriter input;
    input.raw(seed.view());
    input.u32(block);
    const base::Digest digest = base::sha256(input.bytes());
    out.insert(out.end(), digest.bytes.begin(), digest.bytes.end());
  }
  out.resize(size);
  return out;
}

Cubin compile(const Command& command, const Directives& directives, base::ByteView source,
              const std::string& self, const std::string& variant) {
  // The real one runs the ptxas beside it, so the code is that one's too.
  const auto ptxas = base::read_file(base::join_path(base::parent_path(self), "ptxas"), 256U << 20);
  if (!ptxas) quit(5, "error: failed to compile Tile IR program\n");
  base::Sha256 hasher;
  hasher.update(source).update(command.all).update(variant).update(*ptxas);
  const base::Digest seed = hasher.finish();

  const auto asked = target::parse_target(command.gpu);
  const std::string suffix = directives.find("suffix").value_or(asked->sm >= 90 ? "a" : "none");
  Cubin out;
  out.architecture = command.gpu + (suffix == "none" ? "" : suffix);
  if (const auto name = directives.find("arch")) out.architecture = *name;
  const auto claimed = target::parse_target(out.architecture);
  out.sm = claimed ? claimed->sm : asked->sm;
  out.tool_options = "-O " + command.opt;
  out.kernels.clear();
  const std::optional<base::Bytes> code = own_code(source);
  for (const std::string& name : entries(directives, source)) {
    CubinKernel kernel;
    kernel.symbol = name;
    kernel.registers = directives.number("registers").value_or(32);
    kernel.min_stack = directives.number("local").value_or(0);
    kernel.shared_memory = directives.number("shared").value_or(0);
    kernel.parameters = {{0, 8}, {8, 4}, {12, 4}};
    kernel.parameter_bytes = 16;
    kernel.required_block = {128, 1, 1};
    kernel.text = code ? *code : code_for(seed, directives.number("size").value_or(512));
    out.kernels.push_back(std::move(kernel));
  }
  return out;
}

void write_output(const Command& command, const Directives& directives, base::Bytes cubin) {
  const std::string form = directives.find("output").value_or("whole");
  if (form == "none") return;
  if (form == "empty") cubin.clear();
  if (form == "garbage") cubin.assign(512, 0xA5);
  if (form == "truncated") cubin.resize(cubin.size() / 2);
  std::FILE* file = std::fopen(command.output.c_str(), "wb");
  if (file == nullptr) std::_Exit(2);  // without a word, as the real one
  const bool is_written = std::fwrite(cubin.data(), 1, cubin.size(), file) == cubin.size();
  if (std::fclose(file) != 0 || !is_written) quit(5, "error: failed to compile Tile IR program\n");
  if (!command.remarks_file.empty()) {
    std::ofstream(command.remarks_file)
        << "--- !Passed\nPass:            Memory\nFunction:        fake\n...\n";
  }
}

int run(const std::vector<std::string>& arguments) {
  const std::string self = util::self_path().value_or(std::string());
  if (!arguments.empty() && arguments[0] == "--install") {
    FakeInstallOptions options;
    if (arguments.size() > 2) options.variant = arguments[2];
    const auto installed = install_fake_tileiras(self, arguments.at(1), options);
    if (!installed) quit(1, installed.error().text() + "\n");
    std::puts(installed->c_str());
    return 0;
  }
  const std::string variant =
      variant_of("/proc/self/exe");  // of the file that runs, not of one renamed over it
  for (const std::string& word : arguments) {
    if (word == "--version") return std::fwrite(kVersionText.data(), 1, kVersionText.size(), stdout) == 0;
    if (word == "--list-versions") return std::puts("13.1\n13.2\n13.3\n13.4") < 0;
    if (word == "--help") return print_help(), 0;
  }
  const Command command = parse(arguments);
  const base::Bytes source = read_source(command.input);
  const std::string_view text = base::as_text(base::ByteView(source).subspan(kHeaderSize));
  const Directives directives(text.substr(0, text.find(kCodeMark)));
  act(command, directives);
  write_output(command, directives, write_cubin(compile(command, directives, source, self, variant)));
  return 0;
}

}  // namespace
}  // namespace kc::test

int main(int argc, char** argv) {
  return kc::test::run(std::vector<std::string>(argv + 1, argv + argc));
}

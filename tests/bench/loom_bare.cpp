// What somebody without kc would write to compile Loom kernels: the bare sequence of C API calls, one thread,
// nothing stored, nothing packed. The rival of kc in the loom cases of bench.py; it shares no code with kc.
//
// usage: loom_bare LIBRARY UNITS [--only N] [--out FOLDER]
//
// UNITS is text, fields separated by tabs:
//     file <set> root|library <identifier> <path>     a file of a source set, in order
//     unit <set> <root symbol> <target> [key=value...]
// --only N compiles the unit N, from 0, alone: one process a unit. --out writes each code object to
// FOLDER/<N>. The last line of output is `<units> units, <bytes> bytes`. For libraries of generation G4.
#include <dlfcn.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace {

using Handle = void*;
using Status = uintptr_t;

struct View {
  const char* data = nullptr;
  size_t size = 0;
};
struct Allocator {
  void* self;
  void* control;
};
struct Header {
  uint32_t type;
  uint32_t pad;
  size_t size;
  const void* next;
};
struct SourceOptions {
  Header header;
  uint32_t format, pad0;
  View identifier, contents;
  uint32_t storage, pad1;
  void *release, *user_data;
};
struct ContextOptions {
  Header header;
  uint64_t source_retention;
};
struct ContextTarget {
  Header header;
  Handle environment;
};
struct ProfileOptions {
  Header header;
  View identifier, target;
  uint32_t sramecc, xnack;
};
struct PipelineOptions {
  Header header;
  View identifier;
  uint32_t kind, control_flow, max_errors, pad;
};
struct IndexSource {
  View provider;
  uint32_t role, pad;
};
struct Binding {
  View key, value;
};
struct ConfigOptions {
  const Binding* bindings;
  size_t count;
  View json;
  uint32_t flags, pad;
};
struct LinkOptions {
  Header header;
  Handle index;
  View module_name;
  uint32_t mode, pad0;
  const View* roots;
  size_t root_count;
  uint32_t flags, pad1;
  ConfigOptions config;
  const size_t* providers;
  size_t provider_count;
};
struct EmitOptions {
  Header header;
  View format, identifier;
  uint32_t flags, pad;
};
struct ArtifactOptions {
  Header header;
  const View* roots;
  size_t root_count;
  const View* excluded;
  size_t excluded_count;
  Handle profile;
  const ConfigOptions* config;
  const EmitOptions* emit;
  uint32_t flags, pad;
};
struct Artifact {
  uint32_t kind, pad;
  View format, identifier;
  Handle contents;
};
struct Diagnostic {
  uint32_t severity, pad;
  View code, message;
};
static_assert(sizeof(LinkOptions) == 136 && sizeof(ArtifactOptions) == 88 && sizeof(ProfileOptions) == 64);

[[noreturn]] void die(const std::string& what) {
  std::fprintf(stderr, "loom_bare: %s\n", what.c_str());
  std::exit(1);
}

View view(std::string_view text) {
  return {text.data(), text.size()};
}

struct Unit {
  uint32_t set = 0;
  std::string root, target;
  std::vector<std::pair<std::string, std::string>> config;
};
struct File {
  bool is_library = false;
  std::string identifier, path;
};

class Compiler {
 public:
  explicit Compiler(const char* library) : library_(dlopen(library, RTLD_NOW | RTLD_LOCAL)) {
    if (library_ == nullptr) die(dlerror());
    allocator_ = function<Allocator()>("loomc_allocator_system")();
    make("loomc_target_environment_create_amdgpu", environment_);
    const ContextTarget target{{12, 0, sizeof target, nullptr}, environment_};
    const ContextOptions options{{3, 0, sizeof options, &target}, 0};
    check(function<Status(const void*, Allocator, Handle*)>("loomc_context_create")(&options, allocator_,
                                                                                    &context_),
          "context");
    const auto with_context = [&](const char* name, Handle& out) {
      check(function<Status(Handle, const void*, Allocator, Handle*)>(name)(context_, nullptr, allocator_,
                                                                            &out),
            name);
    };
    with_context("loomc_linker_create", linker_);
    with_context("loomc_compiler_create", compiler_);
    check(function<Status(const void*, Allocator, Handle*)>("loomc_workspace_create")(nullptr, allocator_,
                                                                                      &workspace_),
          "workspace");
    const PipelineOptions pipeline{{13, 0, sizeof pipeline, nullptr}, {}, 0, 0, 20, 0};
    Handle result = nullptr;
    check(function<Status(Handle, const void*, Allocator, Handle*, Handle*)>(
              "loomc_pass_program_create_from_target_pipeline")(context_, &pipeline, allocator_, &program_,
                                                                &result),
          "pass program");
    drop("loomc_result_release", result);
    link_ = function<Link>("loomc_link_module");
    compile_ = function<Compile>("loomc_compile_artifact");
    succeeded_ = function<bool(Handle)>("loomc_result_succeeded");
    artifact_count_ = function<size_t(Handle)>("loomc_result_artifact_count");
    artifact_at_ = function<const Artifact*(Handle, size_t)>("loomc_result_artifact_at");
    clone_ = function<Status(Handle, Allocator, View*)>("loomc_byte_sequence_clone");
    release_result_ = function<void(Handle)>("loomc_result_release");
    release_module_ = function<void(Handle)>("loomc_module_release");
    free_ = function<void(Allocator, void*)>("loomc_allocator_free");
  }

  void add_set(uint32_t set, const std::vector<File>& files) {
    Handle builder = nullptr;
    check(function<Status(Handle, const void*, Allocator, Handle*)>("loomc_link_index_builder_create")(
              context_, nullptr, allocator_, &builder),
          "index builder");
    for (const File& file : files) {
      std::ifstream in(file.path, std::ios::binary);
      std::ostringstream text;
      text << in.rdbuf();
      if (!in) die("cannot read " + file.path);
      const std::string bytes = text.str();
      const SourceOptions options{
          {1, 0, sizeof options, nullptr}, 1, 0, view(file.identifier), view(bytes), 1, 0, nullptr, nullptr};
      Handle source = nullptr;
      check(function<Status(const void*, Allocator, Handle*)>("loomc_source_create")(&options, allocator_,
                                                                                     &source),
            file.path);
      const IndexSource role{{}, file.is_library ? 1U : 0U, 0};
      check(function<Status(Handle, Handle, const void*, Handle*)>("loomc_link_index_builder_add_source")(
                builder, source, &role, nullptr),
            file.path);
      drop("loomc_source_release", source);
    }
    Handle result = nullptr;
    check(function<Status(Handle, Handle*, Handle*)>("loomc_link_index_builder_finish")(
              builder, &indices_[set], &result),
          "index");
    drop("loomc_result_release", result);
    drop("loomc_link_index_builder_release", builder);
  }

  std::string compile(const Unit& unit) {
    const View root = view(unit.root);
    std::vector<Binding> bindings;
    for (const auto& [key, value] : unit.config) bindings.push_back({view(key), view(value)});
    LinkOptions link{};
    link.header = {6, 0, sizeof link, nullptr};
    link.index = indices_.at(unit.set);
    link.mode = 1;
    link.roots = &root;
    link.root_count = 1;
    link.flags = 2;
    link.config = {bindings.data(), bindings.size(), {}, 1, 0};
    Handle module = nullptr;
    Handle result = nullptr;
    check(link_(linker_, workspace_, &link, &module, &result), unit.root);
    expect(result, unit);
    release_result_(result);

    const EmitOptions emit{{18, 0, sizeof emit, nullptr}, view("amdgpu-hsaco"), {}, 1, 0};
    ArtifactOptions options{};
    options.header = {42, 0, sizeof options, nullptr};
    options.roots = &root;
    options.root_count = 1;
    options.profile = profile(unit.target);
    options.emit = &emit;
    check(compile_(compiler_, workspace_, program_, module, &options, allocator_, &result), unit.root);
    expect(result, unit);
    std::string code;
    for (size_t i = 0; i < artifact_count_(result); ++i) {
      const Artifact* artifact = artifact_at_(result, i);
      if (artifact->kind != 0) continue;
      View bytes;
      check(clone_(artifact->contents, allocator_, &bytes), "code object");
      code.assign(bytes.data, bytes.size);
      free_(allocator_, const_cast<char*>(bytes.data));
    }
    release_result_(result);
    release_module_(module);
    return code;
  }

 private:
  using Link = Status(Handle, Handle, const void*, Handle*, Handle*);
  using Compile = Status(Handle, Handle, Handle, Handle, const void*, Allocator, Handle*);

  template <typename Signature>
  Signature* function(const char* name) {
    void* found = dlsym(library_, name);
    if (found == nullptr) die(std::string("no ") + name);
    return reinterpret_cast<Signature*>(found);
  }
  void make(const char* name, Handle& out) {
    check(function<Status(Allocator, Handle*)>(name)(allocator_, &out), name);
  }
  void drop(const char* name, Handle object) { function<void(Handle)>(name)(object); }

  void check(Status status, const std::string& what) {
    if (status != 0) die(what + ": status " + std::to_string(status & 31));
  }
  void expect(Handle result, const Unit& unit) {
    if (succeeded_(result)) return;
    const auto* first = function<const Diagnostic*(Handle, size_t)>("loomc_result_diagnostic_at")(result, 0);
    die(unit.root + "@" + unit.target + ": " +
        (first != nullptr ? std::string(first->message.data, first->message.size) : "failed"));
  }
  Handle profile(const std::string& target) {
    Handle& out = profiles_[target];
    if (out != nullptr) return out;
    const ProfileOptions options{{28, 0, sizeof options, nullptr}, {}, view(target), 0, 0};
    check(function<Status(Handle, const void*, Allocator, Handle*)>("loomc_target_profile_create_amdgpu")(
              environment_, &options, allocator_, &out),
          target);
    return out;
  }

  void* library_;
  Allocator allocator_{};
  Handle environment_ = nullptr, context_ = nullptr, linker_ = nullptr, compiler_ = nullptr,
         workspace_ = nullptr, program_ = nullptr;
  std::map<std::string, Handle> profiles_;
  std::map<uint32_t, Handle> indices_;
  Link* link_ = nullptr;
  Compile* compile_ = nullptr;
  bool (*succeeded_)(Handle) = nullptr;
  size_t (*artifact_count_)(Handle) = nullptr;
  const Artifact* (*artifact_at_)(Handle, size_t) = nullptr;
  Status (*clone_)(Handle, Allocator, View*) = nullptr;
  void (*release_result_)(Handle) = nullptr;
  void (*release_module_)(Handle) = nullptr;
  void (*free_)(Allocator, void*) = nullptr;
};

std::vector<std::string> fields(const std::string& line) {
  std::vector<std::string> out;
  std::istringstream in(line);
  for (std::string field; std::getline(in, field, '\t');) out.push_back(field);
  return out;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) die("usage: loom_bare LIBRARY UNITS [--only N] [--out FOLDER]");
  long only = -1;
  std::string out;
  for (int i = 3; i + 1 < argc; i += 2) {
    if (std::strcmp(argv[i], "--only") == 0) only = std::atol(argv[i + 1]);
    if (std::strcmp(argv[i], "--out") == 0) out = argv[i + 1];
  }
  std::map<uint32_t, std::vector<File>> sets;
  std::vector<Unit> units;
  std::ifstream in(argv[2]);
  for (std::string line; std::getline(in, line);) {
    const std::vector<std::string> field = fields(line);
    const auto set = static_cast<uint32_t>(std::stoul(field.at(1)));
    if (field[0] == "file") {
      sets[set].push_back({field.at(2) == "library", field.at(3), field.at(4)});
      continue;
    }
    Unit unit{set, field.at(2), field.at(3), {}};
    for (size_t i = 4; i < field.size(); ++i) {
      const size_t equals = field[i].find('=');
      unit.config.emplace_back(field[i].substr(0, equals), field[i].substr(equals + 1));
    }
    units.push_back(std::move(unit));
  }
  Compiler compiler(argv[1]);
  std::map<uint32_t, bool> added;
  size_t bytes = 0;
  for (size_t i = 0; i < units.size(); ++i) {
    if (only >= 0 && i != static_cast<size_t>(only)) continue;
    if (!added[units[i].set]) compiler.add_set(units[i].set, sets[units[i].set]);
    added[units[i].set] = true;
    const std::string code = compiler.compile(units[i]);
    bytes += code.size();
    if (!out.empty()) std::ofstream(out + "/" + std::to_string(i), std::ios::binary) << code;
  }
  std::printf("%zu units, %zu bytes\n", only >= 0 ? size_t{1} : units.size(), bytes);
  return 0;
}

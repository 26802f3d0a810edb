#include "build/state.h"

#include <algorithm>
#include <cmath>

#include "manifest/plan.h"

namespace kc::build {
namespace {

// The largest source that a build takes; what is larger cannot have been an input.
constexpr uint64_t kMaxInput = 1ULL << 30;

// Whether the file has the recorded content, or the folder the recorded names, although its tuple proves
// nothing; `tuple` is then what it had when that was looked at.
bool content_holds(const InputMemory& input, base::FileTuple& tuple) {
  if (input.digest.is_zero()) return false;
  if (!input.pattern.empty()) {
    const auto listing = manifest::list_folder(input.path, input.pattern);
    if (!listing || listing->digest != input.digest) return false;
    tuple = listing->tuple;
    return true;
  }
  const auto bytes = base::read_file(input.path, kMaxInput, &tuple);
  return bytes && base::sha256(*bytes) == input.digest;
}

// Whether the input is as recorded; its tuple is brought up to date when it was looked at again. `is_news`
// becomes true when the next build should know that.
bool input_holds(InputMemory& input, int64_t recorded_ns, bool& is_news) {
  const auto now = base::stat_tuple(input.path);
  if (!now) return false;
  const bool is_settled = base::is_settled(input.tuple, recorded_ns);
  if (*now == input.tuple && is_settled) return true;
  const bool is_file = input.pattern.empty();  // a folder's size says nothing about one pattern
  if (is_file && now->size != input.tuple.size) return false;
  base::FileTuple tuple;
  if (!content_holds(input, tuple)) return false;
  if (tuple == input.tuple && is_settled) return true;  // of a folder with links: looked at each time
  input.tuple = tuple;
  is_news = true;
  return true;
}

bool same_files(const backend::Compiler& a, const backend::Compiler& b) {
  return std::ranges::equal(
      a.files, b.files, [](const auto& x, const auto& y) { return x.path == y.path && x.tuple == y.tuple; });
}

void write_numbers(base::ByteWriter& out, const std::optional<artifact::Numbers>& numbers) {
  out.boolean(numbers.has_value());
  if (!numbers) return;
  for (const artifact::Metric metric : artifact::kMetrics) {
    const std::optional<uint64_t> value = numbers->of(metric);
    out.boolean(value.has_value());
    if (value) out.u64(*value);
  }
}

std::optional<artifact::Numbers> read_numbers(base::ByteReader& in) {
  if (!in.boolean()) return std::nullopt;
  const auto number = [&]() -> std::optional<uint64_t> {
    return in.boolean() ? std::optional(in.u64()) : std::nullopt;
  };
  artifact::Numbers out;  // in the order of kMetrics
  out.registers = number();
  out.local_memory = number();
  out.spills = number();
  out.shared_memory = number();
  out.code = number();
  return out;
}

}  // namespace

Memory memory_of(const State& state) {
  Memory out;
  out.reserve(state.units.size());
  for (const UnitMemory& unit : state.units) out[unit.name] = &unit;
  return out;
}

base::Digest state_id(const Options& options, const std::string& manifest, const std::string& output) {
  base::KeyHasher hasher(std::string_view{"kc-state-v1\0", 12});
  hasher.field(1, manifest);
  hasher.field(2, output);
  for (const std::string& unit : options.units) hasher.field(3, unit);
  for (const std::string& target : options.targets) hasher.field(4, target);
  hasher.field(5, uint64_t{options.allow_partial});
  if (options.level) hasher.field(6, static_cast<uint64_t>(*options.level));
  if (options.frame_size) hasher.field(7, *options.frame_size);
  if (options.release) hasher.field(8, *options.release);
  // Without a compiler nothing can be built that was built with this bundle's help.
  if (options.identity_from) {
    hasher.field(9, base::absolute_path(*options.identity_from).value_or(*options.identity_from));
  }
  if (options.sign) {
    hasher.field(10, base::absolute_path(*options.sign).value_or(*options.sign));
    // Who is trusted no more may have imported what that build has signed.
    for (const bundle::PublicKey& key : options.trust.keys) hasher.field(11, key.bytes);
  }
  if (options.warm) hasher.field(12, uint64_t{1});
  if (options.defaults.level) hasher.field(13, static_cast<uint64_t>(*options.defaults.level));
  if (options.defaults.frame_size) hasher.field(14, *options.defaults.frame_size);
  return hasher.finish();
}

base::Bytes encode_state(const State& state) {
  base::ByteWriter out;
  out.text(state.build_id);
  out.text(state.key_domain);
  out.i64(state.recorded_ns);
  out.i64(state.touched_s);
  out.text(state.output);
  base::write_tuple(out, state.output_tuple);
  out.u64(state.unit_count);
  out.u64(state.skipped_count);
  out.u32(static_cast<uint32_t>(state.inputs.size()));
  for (const InputMemory& input : state.inputs) {
    out.text(input.path);
    out.text(input.pattern);
    base::write_tuple(out, input.tuple);
    write_digest(out, input.digest);
  }
  out.u32(static_cast<uint32_t>(state.compilers.size()));
  for (const backend::Compiler& compiler : state.compilers) backend::write_compiler(out, compiler);
  out.u32(static_cast<uint32_t>(state.absent.size()));
  for (const auto& [backend, identity] : state.absent) {
    out.text(backend);
    write_digest(out, identity);
  }
  out.text(state.no_lock);
  out.boolean(state.locked);
  out.u32(static_cast<uint32_t>(state.units.size()));
  for (const UnitMemory& unit : state.units) {
    out.text(unit.name);
    out.boolean(unit.request_key.has_value());
    if (unit.request_key) write_digest(out, *unit.request_key);
    write_digest(out, unit.key);
    out.f64(unit.seconds);
    out.u64(unit.peak_bytes);
    write_numbers(out, unit.numbers);
  }
  return out.take();
}

std::optional<State> decode_state(base::ByteView bytes, bool with_units) {
  base::ByteReader in(bytes);
  State state;
  state.build_id = in.text();
  state.key_domain = in.text();
  state.recorded_ns = in.i64();
  state.touched_s = in.i64();
  state.output = in.text();
  state.output_tuple = base::read_tuple(in);
  state.unit_count = in.u64();
  state.skipped_count = in.u64();
  state.inputs.resize(in.count(80));
  for (InputMemory& input : state.inputs) {
    input.path = in.text();
    input.pattern = in.text();
    input.tuple = base::read_tuple(in);
    input.digest = read_digest(in);
  }
  state.compilers.resize(in.count(32));
  for (backend::Compiler& compiler : state.compilers) compiler = backend::read_compiler(in);
  state.absent.resize(in.count(36));
  for (auto& [backend, identity] : state.absent) {
    backend = in.text();
    identity = read_digest(in);
  }
  state.no_lock = in.text();
  state.locked = in.boolean();
  if (state.skipped_count > state.unit_count) return std::nullopt;
  if (!with_units) return in.ok() ? std::optional(std::move(state)) : std::nullopt;
  state.units.resize(in.count(54));
  for (UnitMemory& unit : state.units) {
    unit.name = in.text();
    if (in.boolean()) unit.request_key = read_digest(in);
    unit.key = read_digest(in);
    unit.seconds = in.f64();
    if (!std::isfinite(unit.seconds) || unit.seconds < 0) return std::nullopt;
    unit.peak_bytes = in.u64();
    unit.numbers = read_numbers(in);
  }
  return in.complete() ? std::optional(std::move(state)) : std::nullopt;
}

backend::KnownDigest known_digests(const std::vector<backend::Compiler>& compilers, int64_t recorded_ns) {
  return [&compilers, recorded_ns](const std::string& path,
                                   const base::FileTuple& tuple) -> std::optional<base::Digest> {
    if (!base::is_settled(tuple, recorded_ns)) return std::nullopt;
    for (const backend::Compiler& compiler : compilers) {
      for (const backend::IdentityFile& file : compiler.files) {
        if (file.path == path && file.tuple == tuple) return file.digest;
      }
    }
    return std::nullopt;
  };
}

Freshness check_state(State& state, const backend::SearchVariables& search, int64_t now_ns) {
  if (state.output.empty()) return Freshness::kChanged;
  // kc wrote the output itself and nothing else is expected to: its tuple needs no settling.
  const auto output = base::stat_tuple(state.output);
  if (!output || *output != state.output_tuple) return Freshness::kChanged;
  if (!state.no_lock.empty() && base::stat_tuple(state.no_lock)) return Freshness::kChanged;
  bool is_news = false;
  for (InputMemory& input : state.inputs) {
    if (!input_holds(input, state.recorded_ns, is_news)) return Freshness::kChanged;
  }
  for (backend::Compiler& known : state.compilers) {
    auto found = backend::find_compiler(known.backend, search,
                                        known_digests(state.compilers, state.recorded_ns), nullptr, &known);
    if (!found || found->identity != known.identity) return Freshness::kChanged;
    is_news = is_news || !same_files(*found, known);
    for (const backend::IdentityFile& file : found->files) {
      is_news = is_news || !base::is_settled(file.tuple, state.recorded_ns);
    }
    known = std::move(*found);
  }
  // A compiler that was not there and is now, or is named now, is the one to build with.
  for (const auto& [backend, identity] : state.absent) {
    if (backend::is_named(backend, search) || backend::find_compiler(backend, search, {})) {
      return Freshness::kChanged;
    }
  }
  if (!is_news) return Freshness::kUnchanged;
  state.recorded_ns = now_ns;
  return Freshness::kUnchangedRecord;
}

}  // namespace kc::build

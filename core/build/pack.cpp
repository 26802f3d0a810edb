// Pass: the spool becomes a bundle, and the bundle gets its name only when its bytes are new.
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>

#include "base/atomic_file.h"
#include "base/file_system.h"
#include "build/work.h"
#include "bundle/bundle.h"
#include "bundle/format.h"
#include "bundle/signature.h"
#include "config/settings.h"
#include "util/limits.h"
#include "util/text.h"
#include "util/time.h"

namespace kc::build {
namespace {

using base::Result;

// Code of toolkit 13.x runs on drivers of CUDA 13 from 580 on (CUDA Toolkit release notes: minor-version
// compatibility).
constexpr uint32_t kDriverOfToolkit13 = 580;

// A pair of buffers of this size compares two bundles without holding either.
constexpr size_t kCompareChunk = 1U << 20;

// As many signatures of people as anybody adds to one file; beyond that it is written anew, without them.
constexpr uint64_t kMostBlocks = 1U << 20;

bool has_code(const UnitResult& result) {
  return result.state == UnitState::kHit || result.state == UnitState::kCompiled;
}

bundle::Record record_of(const Work& work, size_t index) {
  const manifest::Unit& unit = work.prepared.unit(index);
  const manifest::Kernel& kernel = work.prepared.kernel(index);
  const UnitResult& result = work.results[index];
  bundle::Record record;
  record.kernel = kernel.name;
  record.specialization = unit.specialization_text;
  record.target = unit.target.text;
  record.found_target = result.found_target;
  record.backend = kernel.backend;
  record.entry = unit.entry;
  record.symbol = result.facts.symbol;
  record.is_default = unit.is_default;
  record.compiler = kernel.backend;
  record.compiler_version = result.compiler_version;
  record.compiler_identity = work.prepared.compiler(kernel.backend)->identity;
  record.toolkit = result.toolkit;
  if (unit.target.vendor == target::Vendor::kNvidia && result.toolkit.starts_with("13.")) {
    record.lowest_driver = kDriverOfToolkit13;
  }
  record.content_key = result.key.value_or(base::Digest());  // what has code has one
  record.facts = result.facts;
  record.metadata = kernel.metadata;
  if (!unit.selection.empty()) {
    const auto at = std::ranges::lower_bound(record.metadata, manifest::kSelectionName, {},
                                             [](const auto& pair) { return std::string_view(pair.first); });
    record.metadata.emplace(at, manifest::kSelectionName, unit.selection);
  }
  record.artifact_size = work.places[index].size;
  record.artifact_digest = work.places[index].digest;
  return record;
}

// A file that has the content of the bundle that was made, and behind it nothing but signatures of that.
struct Same {
  base::FileTuple tuple;
  uint64_t content_size = 0;
  base::Bytes blocks;
  std::vector<bundle::PublicKey> signers;
};

// Its tuple is taken before the bytes are compared, of the descriptor that is compared: another build may put
// another bundle there at any moment.
std::optional<Same> same_content(int fd, const std::string& path) {
  struct stat made;
  auto existing = base::open_at(AT_FDCWD, path, O_RDONLY | O_NONBLOCK);
  struct stat there;
  if (!existing || base::file_system().fstat(fd, &made) != 0 ||
      base::file_system().fstat(existing->get(), &there) != 0)
    return {};
  if (!S_ISREG(there.st_mode) || made.st_size > there.st_size) return {};
  const auto size = static_cast<uint64_t>(made.st_size);
  const auto rest = static_cast<uint64_t>(there.st_size) - size;
  if (rest > kMostBlocks) return {};
  for (uint64_t at = 0; at < size; at += kCompareChunk) {
    const size_t count = std::min<uint64_t>(kCompareChunk, size - at);
    const auto a = base::pread_exact(fd, at, count, path);
    const auto b = base::pread_exact(existing->get(), at, count, path);
    if (!a || !b || *a != *b) return {};
  }
  Same same;
  same.tuple = base::tuple_of(there);
  same.content_size = size;
  auto blocks = base::pread_exact(existing->get(), size, rest, path);
  const auto header = base::pread_exact(fd, 0, bundle::kHeaderSize, path);
  if (!blocks || !header) return {};
  const auto signatures = bundle::read_blocks(*blocks);
  if (!signatures) return {};
  const base::Bytes message =
      bundle::bundle_message(base::digest_from(base::ByteView(*header).last(bundle::kDigestSize)));
  for (const bundle::Signature& signature : *signatures) {
    if (!bundle::is_valid(signature, message)) return {};
    same.signers.push_back(signature.key);
  }
  same.blocks = std::move(*blocks);
  return same;
}

// Whether a bundle with these signatures is what was asked for. More of them than that do no harm: they may
// have been added by hand, and would be lost with every build.
bool is_signed_as_asked(const Work& work, const Same& same) {
  return !work.signing_key ||
         std::ranges::find(same.signers, work.signing_key->public_key()) != same.signers.end();
}

}  // namespace

Result<Packed> pack(Work& work, const std::string& output, bool partial) {
  std::vector<bundle::Record> records;
  std::vector<size_t> units;  // parallel to records
  const auto count = static_cast<size_t>(std::ranges::count_if(work.results, has_code));
  records.reserve(count);
  units.reserve(count);
  for (size_t i = 0; i < work.prepared.units.size(); ++i) {
    if (!has_code(work.results[i])) continue;
    records.push_back(record_of(work, i));
    units.push_back(i);
  }
  const manifest::Plan& plan = work.prepared.plan;
  bundle::Info info;
  info.name = plan.name;
  info.release = work.options.release.value_or(plan.release);
  info.partial = partial;
  info.subset = work.options.narrowed();
  bundle::WriteOptions options;
  options.level = work.options.level.value_or(plan.settings.level.value_or(config::kDefaultLevel));
  options.frame_size = static_cast<uint32_t>(
      work.options.frame_size.value_or(plan.settings.frame_size.value_or(config::kDefaultFrameSize)));
  options.threads = util::allowed_cpus();

  KC_ASSIGN(base::AtomicFile file, base::AtomicFile::create(AT_FDCWD, output, 0666));
  const auto artifact = [&](size_t index) -> Result<base::Bytes> {
    if (work.interrupted()) return base::fail(base::ErrorKind::kFailed, "interrupted");
    return work.spool->read(work.places[units[index]]);
  };
  Packed packed;
  const util::Stopwatch clock;
  KC_TRY(bundle::write_bundle(file.descriptor(), info, std::move(records), artifact, options));
  packed.seconds = clock.seconds();
  if (const auto there = same_content(file.descriptor(), output)) {
    if (is_signed_as_asked(work, *there)) {
      packed.state = OutputState::kUnchanged;
      packed.tuple = there->tuple;
      return packed;
    }
    KC_TRY(base::pwrite_all(file.descriptor(), there->blocks, there->content_size, output));
  }
  if (work.signing_key) {
    KC_TRY(bundle::sign_bundle(file.descriptor(), *work.signing_key, output));
  }
  if (work.interrupted()) return packed;  // the caller looks at the signal first
  KC_TRY(file.commit(base::Sync::kFull));
  packed.state = OutputState::kWritten;
  struct stat written;
  if (base::file_system().fstat(file.descriptor(), &written) != 0) {
    return base::fail_errno(base::ErrorKind::kEnvironment, "stat", output, errno);
  }
  packed.tuple = base::tuple_of(written);
  return packed;
}

}  // namespace kc::build

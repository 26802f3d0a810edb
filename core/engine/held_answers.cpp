#include "engine/held_answers.h"

#include <fcntl.h>
#include <unistd.h>

#include <limits>
#include <utility>
#include <variant>

#include "base/atomic_file.h"

namespace kc::engine {
namespace {

// A frame begins with its length, which decode() does not take.
constexpr size_t kLengthSize = 4;

// About what it takes in memory; its few other strings are small.
size_t bytes_of(const Done& done) {
  size_t bytes = sizeof done + done.artifact.code.size() + done.artifact.report.size() + done.message.size() +
                 done.output.size();
  for (const artifact::Diagnostic& diagnostic : done.artifact.diagnostics) {
    bytes += sizeof diagnostic + diagnostic.message.size() + diagnostic.file.size();
  }
  for (const artifact::KernelFacts& kernel : done.artifact.facts.kernels) {
    bytes += sizeof kernel + kernel.symbol.size() + kernel.arguments.size() * sizeof(artifact::Argument);
  }
  return bytes;
}

base::FileDescriptor make_unlinked_file(const std::string& folder) {
  const std::string path = base::join_path(folder, base::unique_name("held-"));
  auto file = base::open_at(AT_FDCWD, path, O_RDWR | O_CREAT | O_EXCL, 0600, base::ErrorKind::kEnvironment);
  if (!file) return {};
  ::unlink(path.c_str());
  return std::move(*file);
}

}  // namespace

std::optional<HeldAnswers::Place> HeldAnswers::spill(const Done& done) {
  if (!file_) file_ = make_unlinked_file(folder_);
  if (!file_) return std::nullopt;
  const base::Bytes frame = encode(done);
  const base::ByteView payload = base::ByteView(frame).subspan(kLengthSize);
  if (!base::pwrite_all(file_.get(), payload, file_end_, "held answers")) return std::nullopt;
  const Place place{file_end_, payload.size()};
  file_end_ += payload.size();
  ++in_file_;
  return place;
}

uint64_t HeldAnswers::put(Done done) {
  Kept kept;
  const size_t bytes = bytes_of(done);
  const std::optional<Place> place =
      in_memory_ + bytes > most_in_memory_ ? spill(done) : std::optional<Place>();
  if (place) {
    kept.place = *place;
  } else {
    kept.done = std::move(done);
    kept.bytes = bytes;
    in_memory_ += bytes;
  }
  kept_.emplace(++last_, std::move(kept));
  return last_;
}

std::optional<Done> HeldAnswers::take(uint64_t number) {
  auto node = kept_.extract(number);
  if (node.empty()) return std::nullopt;
  Kept& kept = node.mapped();
  if (kept.done) {
    in_memory_ -= kept.bytes;
    return std::move(kept.done);
  }
  const auto payload = base::pread_exact(file_.get(), kept.place.offset, kept.place.size, "held answers");
  // Nothing else lies behind it: the room is used again.
  if (--in_file_ == 0 && ::ftruncate(file_.get(), 0) == 0) file_end_ = 0;
  std::optional<Message> message = payload ? decode(*payload) : std::nullopt;
  Done* done = message ? std::get_if<Done>(&*message) : nullptr;
  if (done != nullptr) return std::move(*done);
  most_in_memory_ = std::numeric_limits<size_t>::max();  // that file is not trusted with another one
  return std::nullopt;
}

}  // namespace kc::engine

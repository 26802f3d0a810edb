#include "base/compress.h"

#include <zstd.h>

#include <cerrno>
#include <span>
#include <string>
#include <utility>

#include "base/spares.h"

namespace kc::base {
namespace {

struct FreeCompressor {
  void operator()(ZSTD_CCtx* context) const { ZSTD_freeCCtx(context); }
};
struct FreeDecompressor {
  void operator()(ZSTD_DCtx* context) const { ZSTD_freeDCtx(context); }
};

// Making one costs more than compressing a small entry.
constinit Spares<ZSTD_CCtx, FreeCompressor> compressors;
constinit Spares<ZSTD_DCtx, FreeDecompressor> decompressors;

std::unexpected<Error> out_of_memory(const char* what) {
  return std::unexpected(
      Error(ErrorKind::kEnvironment, std::string("out of memory for ") + what, {}, {}, ENOMEM));
}

// Whether `frame` is one that can hold `raw_size` bytes: before memory is taken for them.
Result<void> check_frame(ByteView frame, size_t raw_size) {
  // zstd takes a skippable frame, which holds no data, for an empty one.
  if (frame.size() < sizeof(uint32_t) || load_le<uint32_t>(frame, 0) != ZSTD_MAGICNUMBER) {
    return fail(ErrorKind::kFailed, "compressed data does not begin with a frame");
  }
  if (ZSTD_getFrameContentSize(frame.data(), frame.size()) != raw_size) {
    return fail(ErrorKind::kFailed, "compressed data does not have the size that was recorded for it");
  }
  // RFC 8878: a block holds at most 128 KiB and takes four bytes at least.
  constexpr size_t kMostOfBlock = 128U << 10;
  constexpr size_t kLeastBlock = 4;
  if (raw_size / kMostOfBlock > frame.size() / kLeastBlock) {
    return fail(ErrorKind::kFailed, "compressed data claims more bytes than it can hold");
  }
  const size_t frame_size = ZSTD_findFrameCompressedSize(frame.data(), frame.size());
  if (ZSTD_isError(frame_size) || frame_size != frame.size()) {
    return fail(ErrorKind::kFailed, "compressed data is cut or has bytes behind it");
  }
  return {};
}

Result<void> decompress_into(ByteView frame, std::span<uint8_t> out) {
  auto context = decompressors.take();
  if (context == nullptr) context.reset(ZSTD_createDCtx());
  if (context == nullptr) return out_of_memory("decompression");
  const size_t size = ZSTD_decompressDCtx(context.get(), out.data(), out.size(), frame.data(), frame.size());
  decompressors.give_back(std::move(context));
  if (ZSTD_isError(size) || size != out.size()) return fail(ErrorKind::kFailed, "compressed data is damaged");
  return {};
}

}  // namespace

Result<Bytes> compress(ByteView raw, int level) {
  Bytes out(ZSTD_compressBound(raw.size()));
  auto context = compressors.take();
  if (context == nullptr) context.reset(ZSTD_createCCtx());
  if (context == nullptr) return out_of_memory("compression");
  const size_t size = ZSTD_compressCCtx(context.get(), out.data(), out.size(), raw.data(), raw.size(), level);
  compressors.give_back(std::move(context));
  if (ZSTD_isError(size)) {
    return fail(ErrorKind::kInternal, std::string("zstd cannot compress: ") + ZSTD_getErrorName(size));
  }
  out.resize(size);
  out.shrink_to_fit();  // callers keep many of these, which need a tenth of the bound
  return out;
}

Result<Bytes> decompress(ByteView frame, size_t raw_size) {
  KC_TRY(check_frame(frame, raw_size));
  Bytes out(raw_size);
  KC_TRY(decompress_into(frame, out));
  return out;
}

Result<Buffer> decompress_to_buffer(ByteView frame, size_t raw_size) {
  KC_TRY(check_frame(frame, raw_size));
  Buffer out(raw_size);
  KC_TRY(decompress_into(frame, out.span()));
  return out;
}

const char* compressor_version() {
  return ZSTD_versionString();
}

}  // namespace kc::base

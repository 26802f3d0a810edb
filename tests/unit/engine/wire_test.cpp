// The protocol between kc and kc-engine, without either.
#include <doctest/doctest.h>
#include <sys/socket.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include "base/files.h"
#include "engine_support.h"

namespace {

namespace engine = kc::engine;
using engine::FrameReader;
using engine::Message;
using kc::base::ByteReader;
using kc::base::Bytes;
using kc::base::ByteView;
using kc::base::ByteWriter;
using kc::test::digest_of;
using kc::test::sample_messages;

constexpr size_t kHead = 4;

ByteView payload_of(const Bytes& frame) {
  return ByteView(frame).subspan(kHead);
}

// Through encode and decode; the kind must be the same.
template <typename T>
T sent_over(const T& message) {
  const Bytes frame = engine::encode(message);
  REQUIRE(kc::base::load_le<uint32_t>(frame, 0) == frame.size() - kHead);
  auto decoded = engine::decode(payload_of(frame));
  REQUIRE(decoded);
  REQUIRE(std::holds_alternative<T>(*decoded));
  CHECK(engine::encode(*decoded) == frame);
  return std::get<T>(std::move(*decoded));
}

}  // namespace

TEST_CASE("every message arrives with every field") {
  const auto greeting = sent_over(engine::Greeting{5, "0.1.0+abc"});
  CHECK(greeting.protocol == 5);
  CHECK(greeting.build_id == "0.1.0+abc");

  const auto job = sent_over(kc::test::sample_job());
  CHECK(job.id == 11);
  CHECK(job.backend == "tileiras");
  CHECK(job.unit == "matmul:T=64@sm_90");
  CHECK(job.key == digest_of("key"));
  CHECK(job.entry == "matmul");
  CHECK(job.target == "sm_90");
  CHECK(job.options == kc::backend::Pairs{{"debug", "false"}, {"opt", "2"}});
  CHECK(job.config == kc::backend::Pairs{{"T", "64"}});
  CHECK(job.sources == 21);
  CHECK(job.timeout == std::chrono::milliseconds(1500));
  CHECK(job.ignore_lock);
  CHECK(job.waited);

  const auto sources = sent_over(kc::test::sample_sources());
  CHECK(sources.set == 21);
  REQUIRE(sources.files.size() == 2);
  CHECK(sources.files[0].identifier == "a.loom");
  CHECK(sources.files[0].role == kc::backend::Role::kSource);
  CHECK(sources.files[0].bytes == Bytes{1, 2, 3});
  CHECK(sources.files[1].identifier == "b.loom");
  CHECK(sources.files[1].role == kc::backend::Role::kLibrary);
  CHECK(sources.files[1].bytes.empty());
  CHECK(sent_over(engine::Forget{22}).set == 22);

  CHECK(sent_over(engine::Started{13}).id == 13);

  const auto group = sent_over(engine::Group{14, 4711, false});
  CHECK(group.id == 14);
  CHECK(group.group == 4711);
  CHECK_FALSE(group.begins);

  const auto done = sent_over(kc::test::sample_done());
  CHECK(done.id == 12);
  CHECK(done.state == engine::JobState::kTimeout);
  CHECK(done.module == digest_of("module"));
  CHECK(done.content_key == digest_of("content"));
  CHECK(done.artifact == kc::test::sample_artifact());
  CHECK(done.message == "took too long");
  CHECK(done.hint == "wait longer");
  CHECK(done.output == "printed\n");
  CHECK(done.seconds == 1.25);
  CHECK(done.peak_bytes == 1ULL << 33);
  CHECK(done.signers == std::vector<std::string>{std::string(64, 'a'), ""});
  CHECK(done.holds_key);

  CHECK(sent_over(engine::Release{15}).id == 15);
}

TEST_CASE("an answer too large for a frame becomes a failure that says so") {
  engine::Done done = kc::test::sample_done();
  CHECK(engine::encode_answer(done) == engine::encode(done));
  done.artifact.code.assign(size_t{1} << 20, 1);
  const Bytes frame = engine::encode_answer(done, size_t{1} << 19);
  REQUIRE(frame.size() < 4096);
  const auto message = engine::decode(ByteView(frame).subspan(4));
  REQUIRE(message);
  const auto& told = std::get<engine::Done>(*message);
  CHECK(told.id == done.id);
  CHECK(told.state == engine::JobState::kFailed);
  CHECK(told.message.find("too large") != std::string::npos);
  CHECK(told.artifact.code.empty());
  CHECK(told.holds_key == done.holds_key);
}

TEST_CASE("a setup arrives with its compilers") {
  const kc::test::TempFolder folder;
  const std::string program = folder.write("program", "#!a program\n");
  const auto compiler = kc::test::install_compiler(program, folder / "cu13");
  const auto setup = sent_over(kc::test::sample_setup({compiler}));
  CHECK(setup.store_directory == "/a/store");
  CHECK(setup.read_only_directories == std::vector<std::string>{"/b/store", "/c/store"});
  CHECK(setup.store_mode == kc::store::Mode::kRefresh);
  CHECK(setup.work_folder == "/a/work");
  CHECK(setup.slots == 7);
  REQUIRE(setup.compilers.size() == 1);
  CHECK(setup.compilers[0].backend == compiler.backend);
  CHECK(setup.compilers[0].program == compiler.program);
  CHECK(setup.compilers[0].identity == compiler.identity);
  REQUIRE(setup.compilers[0].files.size() == compiler.files.size());
  for (size_t i = 0; i < compiler.files.size(); ++i) {
    CHECK(setup.compilers[0].files[i].role == compiler.files[i].role);
    CHECK(setup.compilers[0].files[i].path == compiler.files[i].path);
    CHECK(setup.compilers[0].files[i].tuple == compiler.files[i].tuple);
    CHECK(setup.compilers[0].files[i].digest == compiler.files[i].digest);
  }
}

TEST_CASE("a payload cut at any length is refused") {
  for (const Message& message : sample_messages()) {
    const Bytes frame = engine::encode(message);
    const ByteView payload = payload_of(frame);
    for (size_t size = 0; size < payload.size(); ++size) {
      // A copy of exactly this size, so that a read behind its end is seen by the sanitizer.
      const Bytes cut(payload.begin(), payload.begin() + static_cast<ptrdiff_t>(size));
      CHECK_FALSE_MESSAGE(engine::decode(cut), "message ", message.index(), " cut to ", size);
    }
  }
}

TEST_CASE("a payload with a byte more is refused") {
  for (const Message& message : sample_messages()) {
    const Bytes frame = engine::encode(message);
    Bytes longer(payload_of(frame).begin(), payload_of(frame).end());
    longer.push_back(0);
    CHECK_FALSE_MESSAGE(engine::decode(longer), "message ", message.index());
  }
}

TEST_CASE("a frame with any byte flipped is refused or read as exactly what it then says") {
  for (const Message& message : sample_messages()) {
    const Bytes frame = engine::encode(message);
    for (size_t at = 0; at < frame.size(); ++at) {
      for (const unsigned flip : {0x01U, 0x80U, 0xFFU}) {
        Bytes damaged = frame;
        damaged[at] = static_cast<uint8_t>(damaged[at] ^ flip);
        FrameReader reader;
        reader.feed(damaged);
        const auto read = reader.next();
        if (!read) {
          CHECK(read.error().kind == kc::base::ErrorKind::kInternal);
        } else if (*read) {
          CHECK_MESSAGE(engine::encode(**read) == damaged, "message ", message.index(), " byte ", at);
        } else {
          CHECK_MESSAGE(at < kHead, "only a greater length waits for more");
        }
      }
    }
  }
}

TEST_CASE("a state that only kc says and a role that is none are refused") {
  engine::Done done = kc::test::sample_done();
  done.state = engine::JobState::kTainted;
  CHECK(engine::decode(payload_of(engine::encode(done))));
  done.state = engine::JobState::kCrashed;
  CHECK_FALSE(engine::decode(payload_of(engine::encode(done))));

  engine::Sources sources = kc::test::sample_sources();
  sources.files[0].role = static_cast<kc::backend::Role>(2);
  CHECK_FALSE(engine::decode(payload_of(engine::encode(sources))));
}

TEST_CASE("frames of unknown types are refused") {
  for (const unsigned type : {0U, 10U, 11U, 127U, 255U}) {
    CHECK_FALSE(engine::decode(Bytes{static_cast<uint8_t>(type)}));
    CHECK_FALSE(engine::decode(Bytes{static_cast<uint8_t>(type), 0, 0, 0, 0}));
  }
}

TEST_CASE("a frame that is too long is refused at its length before a byte of it came") {
  for (const uint32_t length : {0U, engine::kMaxFrame + 1, 0xFFFFFFFFU}) {
    ByteWriter head;
    head.u32(length);
    FrameReader reader;
    reader.feed(head.bytes());
    const auto read = reader.next();
    REQUIRE_FALSE(read);
    CHECK(read.error().kind == kc::base::ErrorKind::kInternal);
  }
  ByteWriter head;
  head.u32(engine::kMaxFrame);
  FrameReader reader;
  reader.feed(head.bytes());
  const auto read = reader.next();
  REQUIRE(read);
  CHECK_FALSE(*read);
}

TEST_CASE("counts and lengths beyond the frame take no memory") {
  // As many as can be said of what follows. Taking memory for them would end this process.
  ByteWriter job;
  job.u8(5);
  job.u32(1);
  job.text("tileiras");
  job.text("unit");
  job.raw(digest_of("key").view());
  job.text("entry");
  job.text("sm_90");
  job.u32(0xFFFFFFFF);
  job.u32(0);
  CHECK_FALSE(engine::decode(job.bytes()));

  ByteWriter sources;
  sources.u8(3);
  sources.u32(1);
  const Bytes start = sources.bytes();
  sources.u32(0xFFFFFFFF);
  sources.u64(0);
  CHECK_FALSE(engine::decode(sources.bytes()));

  ByteWriter blob;
  blob.raw(start);
  blob.u32(1);
  blob.text("a.tilebc");
  blob.u8(0);
  blob.u64(UINT64_MAX);
  CHECK_FALSE(engine::decode(blob.bytes()));

  ByteWriter setup;
  setup.u8(2);
  setup.u32(0xFFFFFFFF);
  CHECK_FALSE(engine::decode(setup.bytes()));
}

TEST_CASE("a group that kill would take for everybody is refused") {
  for (const int32_t group : {-1, 0, 1, -4711}) {
    const Bytes frame = engine::encode(engine::Group{1, group, true});
    CHECK_FALSE_MESSAGE(engine::decode(payload_of(frame)), group);
  }
}

TEST_CASE("frames fed byte by byte come out one by one and whole") {
  const std::vector<Message> messages = sample_messages();
  FrameReader reader;
  std::vector<Bytes> out;
  for (const Message& message : messages) {
    for (const uint8_t byte : engine::encode(message)) {
      auto read = reader.next();
      REQUIRE(read);
      REQUIRE_FALSE(*read);
      reader.feed(ByteView(&byte, 1));
    }
    auto read = reader.next();
    REQUIRE(read);
    REQUIRE(*read);
    out.push_back(engine::encode(**read));
  }
  REQUIRE(out.size() == messages.size());
  for (size_t i = 0; i < out.size(); ++i) CHECK(out[i] == engine::encode(messages[i]));
}

TEST_CASE("many frames fed at once come out in order") {
  // More than a MiB, so that what was read is thrown away in between.
  Bytes stream;
  engine::Sources sources = kc::test::sample_sources();
  sources.files[0].bytes.assign(300'000, 9);
  for (uint32_t i = 0; i < 10; ++i) {
    sources.set = i;
    const Bytes frame = engine::encode(sources);
    stream.insert(stream.end(), frame.begin(), frame.end());
  }
  FrameReader reader;
  reader.feed(stream);
  for (uint32_t i = 0; i < 10; ++i) {
    const auto read = reader.next();
    REQUIRE(read);
    REQUIRE(*read);
    CHECK(std::get<engine::Sources>(**read).set == i);
  }
  const auto read = reader.next();
  REQUIRE(read);
  CHECK_FALSE(*read);
}

TEST_CASE("send writes a frame larger than the socket holds and tells when the other side is gone") {
  int ends[2];
  REQUIRE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
  kc::base::FileDescriptor ours(ends[0]);
  kc::base::FileDescriptor theirs(ends[1]);
  engine::Sources sources = kc::test::sample_sources();
  sources.files[0].bytes.assign(4U << 20, 5);
  FrameReader reader;
  std::thread other([&] {
    Bytes buffer(64 << 10);
    for (;;) {
      const ssize_t got = ::recv(theirs.get(), buffer.data(), buffer.size(), 0);
      if (got <= 0) break;
      reader.feed(ByteView(buffer.data(), static_cast<size_t>(got)));
    }
  });
  const auto sent = engine::send(ours.get(), sources);
  ours.reset();
  other.join();
  REQUIRE(sent);
  const auto read = reader.next();
  REQUIRE(read);
  REQUIRE(*read);
  CHECK(engine::encode(**read) == engine::encode(sources));

  REQUIRE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
  ours = kc::base::FileDescriptor(ends[0]);
  kc::base::FileDescriptor(ends[1]).reset();
  const auto refused = engine::send(ours.get(), engine::Started{1});
  REQUIRE_FALSE(refused);
  CHECK(refused.error().kind == kc::base::ErrorKind::kInternal);
}

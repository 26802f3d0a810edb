// One running kc-engine as kc sees it.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/error.h"
#include "base/files.h"
#include "engine/death.h"
#include "engine/wire.h"
#include "util/process.h"
#include "util/time.h"

namespace kc::engine {

/// Never waits for the engine but in stop(): what it does not take at once is kept and written by flush().
/// One thread only. When it is destroyed nothing is left: not the process, nor what it started, nor its
/// folder.
class EngineProcess {
 public:
  /// Starts `program` and hands it `setup`, whose work folder is made and belongs to this object. That it
  /// greets, and as the right build, is seen by receive().
  static base::Result<std::unique_ptr<EngineProcess>> spawn(const std::string& program, const Setup& setup);
  ~EngineProcess() { stop(); }
  EngineProcess(const EngineProcess&) = delete;
  EngineProcess& operator=(const EngineProcess&) = delete;

  int socket() const { return peer_.socket.get(); }
  /// Readable when the process has ended, whoever may still hold the other end of the socket.
  int pidfd() const { return peer_.pidfd.get(); }
  bool wants_to_write() const { return !unsent_.empty(); }
  /// Queues a frame; flush() writes it.
  void send(base::ByteView frame);
  void flush();

  struct Heard {
    std::vector<Message> messages;  // Started and Done
    std::optional<Death> death;     // after the messages; the last that is heard
  };
  /// What can be read without waiting, but no more than a share, so that other engines are heard too.
  Heard receive();
  bool greeted() const { return greeted_; }
  /// When it must have greeted.
  util::Clock::time_point greeting_deadline() const { return greeting_deadline_; }
  /// It has not greeted in time.
  Death silent();

  /// The order to end; stop() then waits for it, so that several can be ended at once. A second at most.
  void begin_stop();
  void stop();
  /// Keeps what it printed from filling memory: all but the end goes.
  void trim_log();

 private:
  EngineProcess(util::Peer peer, base::FileDescriptor log, std::string work_folder);
  bool read_some();
  std::optional<Death> take_messages(Heard& heard);
  std::optional<Death> hear(Message message, Heard& heard);
  void hear_the_rest();
  Death killed(Death::Cause cause, std::string detail = {});
  Death death();
  std::string log_end() const;

  util::Peer peer_;
  base::FileDescriptor log_;  // its stdout and stderr
  std::string work_folder_;
  FrameReader frames_;
  base::Bytes unsent_;
  std::set<pid_t> groups_;  // of its children
  bool greeted_ = false;
  bool closed_ = false;  // its end of the connection
  uint64_t log_trimmed_ = 0;
  util::Clock::time_point greeting_deadline_;
  std::optional<util::Clock::time_point> stop_deadline_;
};

}  // namespace kc::engine

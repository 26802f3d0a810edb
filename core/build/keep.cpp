#include "build/keep.h"

#include <unistd.h>

#include <utility>

#include "backend/content_key.h"
#include "build/keys.h"
#include "build/repro.h"
#include "util/process.h"
#include "util/text.h"

namespace kc::build {
namespace {

using engine::JobState;

// Whether the compiler did what no source may make it do, and not just said no.
bool is_misbehaviour(JobState state) {
  return state == JobState::kCrashed || state == JobState::kTimeout || state == JobState::kTainted;
}

}  // namespace

Keeper::Keeper(Work& work) : work_(work), host_(util::host_name()), user_(std::to_string(geteuid())) {}

base::Digest Keeper::content_of(uint32_t index, const engine::Done& done) const {
  const ChosenUnit& chosen = work_.prepared.units[index];
  if (!chosen.has_request) return chosen.key;
  if (done.content_key) return *done.content_key;
  const std::string& backend = work_.prepared.kernel(index).backend;
  return backend::content_key(content_key_inputs(work_.prepared.unit(index),
                                                 *backend::find_description(backend),
                                                 work_.prepared.compiler(backend)->identity, {}));
}

const InputFiles& Keeper::files_of(uint32_t index) {
  const manifest::Unit& unit = work_.prepared.unit(index);
  if (listed_ == nullptr || listed_->kernel != unit.kernel || listed_->sources != unit.sources) {
    files_ = work_.prepared.input_files(index);
    listed_ = &unit;
  }
  return files_;
}

void Keeper::put(uint32_t index, const base::Digest& content, engine::Done& done,
                 const base::Digest& code_digest, bool unsupported) {
  if (work_.store == nullptr) return;
  const manifest::Unit& unit = work_.prepared.unit(index);
  store::Entry entry;
  entry.key = content;
  entry.backend = work_.prepared.kernel(index).backend;
  entry.target = unit.target.text;
  entry.entry = unit.entry;
  entry.kernel = unit.name;
  entry.artifact = std::move(done.artifact);
  entry.code_digest = code_digest;
  entry.unsupported = unsupported;
  entry.seconds = done.seconds;
  entry.peak_bytes = done.peak_bytes;
  backend::ContentKeyInputs inputs =
      content_key_inputs(unit, *backend::find_description(entry.backend),
                         work_.prepared.compiler(entry.backend)->identity, files_of(index));
  inputs.module = done.module;
  entry.key_fields = backend::content_key_fields(inputs);
  entry.origin.kc_version = engine::build_id();
  entry.origin.host = host_;
  entry.origin.user = user_;
  entry.origin.time_s = base::wall_clock_ns() / 1'000'000'000;
  work_.store->put(entry);
  done.artifact = std::move(entry.artifact);
  put_record(index, content);
}

void Keeper::put_record(uint32_t index, const base::Digest& content) {
  const ChosenUnit& chosen = work_.prepared.units[index];
  if (work_.store == nullptr || !chosen.has_request) return;
  const std::string& backend = work_.prepared.kernel(index).backend;
  store::Record record;
  record.request = chosen.key;
  record.content = content;
  record.unit = work_.prepared.unit(index).name;
  record.time_s = base::wall_clock_ns() / 1'000'000'000;
  record.key_fields = request_key_fields(work_.prepared.unit(index), *backend::find_description(backend),
                                         work_.prepared.compiler(backend)->identity, files_of(index));
  work_.store->put_record(record);
}

void Keeper::keep_failure(uint32_t index, const engine::Done& done, base::Error& error, UnitResult& details) {
  if (work_.store == nullptr) return;
  const base::Digest& key = work_.prepared.units[index].key;
  if (!is_misbehaviour(done.state)) {
    if (!done.output.empty())
      details.output_path = work_.store->keep_output(key, base::as_bytes(done.output));
    return;
  }
  const std::string folder =
      work_.store->keep_repro(key, repro_of(work_.prepared, index, done.message, done.output));
  if (folder.empty()) return;
  details.output_path = done.output.empty() ? folder : folder + "/output.txt";
  const std::string again = util::format("`{}` compiles it again", repro_command(folder));
  error.hint = error.hint.empty() ? again : error.hint + "; " + again;
}

}  // namespace kc::build

// The way from a file to a plan: read, check each field, resolve each kernel, count, expand.
#include <cerrno>
#include <utility>

#include "base/files.h"
#include "config/yaml_reader.h"
#include "manifest/draft.h"
#include "manifest/expand.h"
#include "manifest/names.h"
#include "manifest/plan.h"
#include "manifest/resolve.h"

namespace kc::manifest {
namespace {

// The file's name without its last suffix.
std::string stem_of(const std::string& path) {
  const std::string name = base::file_name(path);
  const size_t dot = name.rfind('.');
  return dot == 0 ? name : name.substr(0, dot);
}

std::string in_folder(const std::string& folder, const std::string& path) {
  return folder == "." ? path : base::join_path(folder, path);
}

// What may have been meant by a manifest that is not there.
std::string hint_for_missing(const std::string& path) {
  const std::string folder = base::parent_path(path);
  const base::Result<std::vector<std::string>> names = base::list_directory(AT_FDCWD, folder);
  if (!names) return "there is no folder " + in_quotes(folder);
  return util::did_you_mean(base::file_name(path), *names);
}

base::Error unreadable(base::Error error, const std::string& path) {
  if (error.sys_errno == ENOENT) {
    error.place.file = path;
    error.message = "the manifest does not exist";
    error.hint = hint_for_missing(path);
  }
  return error;
}

// Name and output, which follow from the file's name when they are not written.
void name_plan(const ManifestDraft& draft, const std::string& path, Plan& plan, Faults& faults) {
  if (draft.name.is_faulty()) return;
  plan.name = draft.name ? draft.name->text : stem_of(path);
  if (!draft.name && !is_kernel_name(plan.name)) {
    faults.error({}, "the file's name gives no name for the bundle: " + in_quotes(plan.name),
                 "write `name:`");
  }
  const std::string output = draft.output ? normal_path(draft.output->text) : plan.name + ".kcb";
  plan.output = in_folder(plan.folder, output);
}

}  // namespace

Loaded load(const std::string& path, const std::vector<BackendRules>& backends) {
  Loaded out;
  Input input{path, {}, {}};
  const base::Result<base::Bytes> bytes = base::read_file(path, kMaxManifestBytes, &input.tuple);
  if (!bytes) {
    out.errors.push_back(unreadable(bytes.error(), path));
    return out;
  }
  input.digest = base::sha256(base::ByteView(*bytes));
  config::YamlLimits limits;
  limits.bytes = kMaxManifestBytes;
  config::YamlRead yaml = config::read_yaml(path, base::as_text(*bytes), limits);
  Faults faults(path);
  faults.append(std::move(yaml.errors));
  if (!yaml.document) {
    out.errors = faults.take_errors();
    return out;
  }

  const ManifestDraft draft = read_manifest(yaml.document->root(), faults);
  Plan plan;
  plan.folder = base::parent_path(path);
  plan.inputs.push_back(std::move(input));
  plan.release = draft.release.value.value_or(0);
  plan.settings = draft.settings.value.value_or(Settings());
  name_plan(draft, path, plan, faults);

  SourceTable sources(plan.folder, plan.sources);
  const ResolveContext context{backends, draft.targets, sources, faults};
  std::vector<ResolvedKernel> kernels;
  if (draft.kernels) {
    kernels.reserve(draft.kernels->size());
    for (const KernelDraft& kernel : *draft.kernels) kernels.push_back(resolve_kernel(kernel, context));
  }
  if (check_extent(kernels, faults)) {
    expand(kernels, plan.settings.timeout.value_or(kDefaultTimeout), sources, plan, faults);
  }
  if (faults.empty()) {
    warn_of_unused_targets(draft.targets, kernels, faults);
    out.plan = std::move(plan);
  }
  out.errors = faults.take_errors();
  out.warnings = faults.take_warnings();
  return out;
}

}  // namespace kc::manifest

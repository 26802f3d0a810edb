// The way from files to a plan: read, check each field, resolve each kernel, count, expand.
#include <algorithm>
#include <cerrno>
#include <iterator>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/files.h"
#include "manifest/draft.h"
#include "manifest/expand.h"
#include "manifest/manifest_files.h"
#include "manifest/names.h"
#include "manifest/paths.h"
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

// The top manifest has no place where it is named.
base::Error unreadable_top(base::Error error, const std::string& path) {
  if (error.sys_errno == ENOENT) {
    error.place.file = path;
    error.message = "the manifest does not exist";
    error.hint = hint_for_missing(path);
  }
  return error;
}

// Name and output, which follow from the file's name when they are not written.
void name_plan(const ManifestDraft& draft, const std::string& path, Plan& plan, Faults& faults) {
  if (!draft.is_read || draft.name.is_faulty()) return;
  plan.name = draft.name ? draft.name->text : stem_of(path);
  if (!draft.name && !is_kernel_name(plan.name)) {
    faults.error({}, "the file's name gives no name for the bundle: " + in_quotes(plan.name),
                 "write `name:`");
  }
  const std::string output = draft.output ? normal_path(draft.output->text) : plan.name + ".kcb";
  plan.output = opened_path(plan.folder, output);
}

// A file that was read for two reasons is one input.
void remove_repeated(std::vector<Input>& inputs) {
  std::unordered_set<std::string> seen;
  std::erase_if(inputs,
                [&](const Input& input) { return !seen.insert(input.path + '\0' + input.pattern).second; });
}

}  // namespace

Loaded load(const std::string& path, const std::vector<BackendRules>& backends, uint64_t max_units,
            util::Nanoseconds default_timeout) {
  Loaded out;
  Plan plan;
  Input top;
  top.path = path;
  base::Result<base::Bytes> bytes = base::read_file(path, kMaxManifestBytes, &top.tuple);
  if (!bytes) {
    out.errors.push_back(unreadable_top(std::move(bytes.error()), path));
    return out;
  }
  top.digest = base::sha256(base::ByteView(*bytes));
  plan.folder = base::parent_path(path);
  plan.inputs.push_back(std::move(top));
  Faults faults(path);
  ManifestFiles files(plan.folder, plan.inputs, faults);
  files.read(base::as_text(*bytes));

  const ManifestDraft& draft = files.files().front().draft;
  plan.release = draft.release.value.value_or(0);
  plan.settings = draft.settings.value.value_or(Settings());
  name_plan(draft, path, plan, faults);

  SourceTable sources(plan.folder, plan.sources, draft.allow_absolute_paths);
  SourceLists lists(plan.folder, plan.inputs, faults);
  Tables tables(plan.folder, plan.inputs, faults);
  const ResolveContext context{backends, sources, lists, tables, faults, max_units};
  std::vector<const ManifestDraft*> drafts;
  for (const ManifestFile& file : files.files()) {
    drafts.push_back(&file.draft);
    if (file.draft.defaults) check_defaults(*file.draft.defaults, context);
  }
  std::vector<ResolvedKernel> kernels;
  for (const ManifestFile* file : files.in_kernel_order()) {
    if (!file->draft.kernels) continue;
    for (const KernelDraft& kernel : *file->draft.kernels) {
      std::vector<ResolvedKernel> resolved = resolve_kernel(kernel, file->defaults, context);
      std::move(resolved.begin(), resolved.end(), std::back_inserter(kernels));
    }
  }
  report_names_twice(kernels, faults);
  if (check_extent(kernels, max_units, faults)) {
    expand(kernels, plan.settings.timeout.value_or(default_timeout), context, plan);
  }
  if (faults.empty()) {
    warn_of_unused_defaults(drafts, kernels, faults);
    remove_repeated(plan.inputs);
    out.plan = std::move(plan);
  }
  out.errors = faults.take_errors();
  out.warnings = faults.take_warnings();
  return out;
}

}  // namespace kc::manifest

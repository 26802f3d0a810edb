#include "target/target.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/nearest.h"

namespace kc::target {
namespace {

using base::ErrorKind;

// NVIDIA. sm_101 became sm_110 with CUDA 13; cubins of both exist.
constexpr std::array<std::string_view, 22> kSms = {
    "sm_50", "sm_52", "sm_53", "sm_60", "sm_61",  "sm_62",  "sm_70",  "sm_72",  "sm_75",  "sm_80",  "sm_86",
    "sm_87", "sm_88", "sm_89", "sm_90", "sm_100", "sm_101", "sm_103", "sm_107", "sm_110", "sm_120", "sm_121"};
constexpr uint32_t kFirstWithA = 90;
constexpr uint32_t kFirstWithF = 100;

// The members of a family beyond its first: code for `sm_<first>f` runs on them too. Every other `f` name is
// a family of its own so far (CUDA Programming Guide, "Family-Specific Compatibility").
struct SmFamily {
  uint32_t first;
  uint32_t other;
};
constexpr SmFamily kSmFamilies[] = {{100, 103}, {120, 121}};

// AMD: what names a processor, what its code objects can be told about memory (target features), and the
// generic processor whose code it runs, empty where there is none.
struct Processor {
  std::string_view name;
  std::string_view generic;
  bool sramecc;
  bool xnack;
};
constexpr Processor kProcessors[] = {
    {"gfx900", "gfx9-generic", false, true},
    {"gfx902", "gfx9-generic", false, true},
    {"gfx904", "gfx9-generic", false, true},
    {"gfx906", "gfx9-generic", true, true},
    {"gfx908", "", true, true},
    {"gfx909", "gfx9-generic", false, true},
    {"gfx90a", "", true, true},
    {"gfx90c", "gfx9-generic", false, true},
    // gfx940 and gfx941 were removed from LLVM 20; compilers that still make code for them exist.
    {"gfx940", "gfx9-4-generic", true, true},
    {"gfx941", "gfx9-4-generic", true, true},
    {"gfx942", "gfx9-4-generic", true, true},
    {"gfx950", "gfx9-4-generic", true, true},
    {"gfx1010", "gfx10-1-generic", false, true},
    {"gfx1011", "gfx10-1-generic", false, true},
    {"gfx1012", "gfx10-1-generic", false, true},
    {"gfx1013", "gfx10-1-generic", false, true},
    {"gfx1030", "gfx10-3-generic", false, false},
    {"gfx1031", "gfx10-3-generic", false, false},
    {"gfx1032", "gfx10-3-generic", false, false},
    {"gfx1033", "gfx10-3-generic", false, false},
    {"gfx1034", "gfx10-3-generic", false, false},
    {"gfx1035", "gfx10-3-generic", false, false},
    {"gfx1036", "gfx10-3-generic", false, false},
    {"gfx1100", "gfx11-generic", false, false},
    {"gfx1101", "gfx11-generic", false, false},
    {"gfx1102", "gfx11-generic", false, false},
    {"gfx1103", "gfx11-generic", false, false},
    {"gfx1150", "gfx11-generic", false, false},
    {"gfx1151", "gfx11-generic", false, false},
    {"gfx1152", "gfx11-generic", false, false},
    {"gfx1153", "gfx11-generic", false, false},
    // gfx117x read as gfx11 but have a generic processor of their own.
    {"gfx1170", "gfx11-7-generic", false, false},
    {"gfx1171", "gfx11-7-generic", false, false},
    {"gfx1172", "gfx11-7-generic", false, false},
    {"gfx1200", "gfx12-generic", false, false},
    {"gfx1201", "gfx12-generic", false, false},
    {"gfx1250", "gfx12-5-generic", true, true},
    {"gfx1251", "gfx12-5-generic", true, true},
    {"gfx9-generic", "", false, true},
    {"gfx9-4-generic", "", true, true},
    {"gfx10-1-generic", "", false, true},
    {"gfx10-3-generic", "", false, false},
    {"gfx11-generic", "", false, false},
    {"gfx11-7-generic", "", false, false},
    {"gfx12-generic", "", false, false},
    {"gfx12-5-generic", "", true, true},
};

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

std::string quoted(std::string_view text) {
  // Names come from manifests and code objects: nothing that a terminal would act on may pass, and no more
  // than a name can be long.
  constexpr size_t kShown = 64;
  std::string out = "\"";
  for (const char c : text.substr(0, kShown)) out += c >= ' ' && c <= '~' ? c : '?';
  if (text.size() > kShown) out += "...";
  return out += '"';
}

std::unexpected<base::Error> bad_name(std::string_view text, const std::string& why, std::string hint) {
  return base::fail(ErrorKind::kInput, "target " + quoted(text) + " " + why, std::move(hint));
}

std::string did_you_mean(std::string_view name) {
  return "did you mean \"" + std::string(name) + "\"?";
}

// The name that was meant by something that is none: by its number (`sm90`, `compute_90a`), else by distance.
std::string hint_for(std::string_view text) {
  std::string number = "sm_";
  for (const char c : text) {
    if (is_digit(c)) number += c;
  }
  const bool amd = text.find("gfx") != std::string_view::npos || text.find("GFX") != std::string_view::npos;
  if (!amd && std::find(kSms.begin(), kSms.end(), number) != kSms.end()) return did_you_mean(number);
  std::vector<std::string_view> names(kSms.begin(), kSms.end());
  for (const Processor& processor : kProcessors) names.push_back(processor.name);
  const std::optional<size_t> index = base::nearest_index(text.substr(0, text.find(':')), names);
  return index ? did_you_mean(names[*index])
               : "targets are named like sm_90, sm_90a, gfx942 or gfx11-generic";
}

base::Result<Target> parse_nvidia(std::string_view text) {
  Target target;
  target.text = text;
  target.vendor = Vendor::kNvidia;
  std::string_view number = text.substr(3);
  if (number.ends_with('a') || number.ends_with('f')) {
    target.suffix = number.back();
    number.remove_suffix(1);
  }
  const bool well_formed = (number.size() == 2 || number.size() == 3) && number.front() != '0' &&
                           std::all_of(number.begin(), number.end(), is_digit);
  if (!well_formed) return bad_name(text, "is not the name of a GPU architecture", hint_for(text));
  for (const char c : number) target.sm = target.sm * 10 + static_cast<uint32_t>(c - '0');
  target.processor = "sm_" + std::string(number);
  if (target.suffix == 'a' && target.sm < kFirstWithA) {
    return bad_name(text, "does not exist: names with \"a\" begin with sm_90a",
                    did_you_mean(target.processor));
  }
  if (target.suffix == 'f' && target.sm < kFirstWithF) {
    return bad_name(text, "does not exist: names with \"f\" begin with sm_100f",
                    did_you_mean(target.processor));
  }
  return target;
}

const Processor* find_processor(std::string_view name) {
  const auto found = std::find_if(std::begin(kProcessors), std::end(kProcessors),
                                  [&](const Processor& processor) { return processor.name == name; });
  return found == std::end(kProcessors) ? nullptr : found;
}

base::Result<Target> parse_amd(std::string_view text) {
  Target target;
  target.text = text;
  target.vendor = Vendor::kAmd;
  const size_t colon = text.find(':');
  target.processor = text.substr(0, colon);
  const Processor* processor = find_processor(target.processor);
  if (processor == nullptr) return bad_name(text, "is not the name of a GPU architecture", hint_for(text));
  std::string_view rest = colon == std::string_view::npos ? std::string_view() : text.substr(colon);
  while (!rest.empty()) {
    rest.remove_prefix(1);  // the colon
    const size_t end = std::min(rest.find(':'), rest.size());
    const std::string_view feature = rest.substr(0, end);
    rest.remove_prefix(end);
    const std::string_view name = feature.substr(0, feature.empty() ? 0 : feature.size() - 1);
    const bool has_sign = feature.ends_with('+') || feature.ends_with('-');
    if (!has_sign || (name != "sramecc" && name != "xnack")) {
      return bad_name(text, "has a feature " + quoted(feature) + " that does not exist",
                      "features are sramecc+, sramecc-, xnack+ and xnack-");
    }
    if (!(name == "xnack" ? processor->xnack : processor->sramecc)) {
      return bad_name(text, "names a feature that " + target.processor + " does not have: " + quoted(name),
                      did_you_mean(target.processor));
    }
    Feature& field = name == "xnack" ? target.xnack : target.sramecc;
    if (field != Feature::kAny) return bad_name(text, "names the feature " + quoted(name) + " twice", "");
    field = feature.ends_with('+') ? Feature::kOn : Feature::kOff;
  }
  return target;
}

bool same_sm_family(uint32_t code, uint32_t device) {
  return std::any_of(std::begin(kSmFamilies), std::end(kSmFamilies),
                     [&](const SmFamily& family) { return code == family.first && device == family.other; });
}

Fit nvidia_runs_on(const Target& code, const Target& device) {
  if (code.sm == device.sm) return Fit::kExact;
  bool fits = false;
  if (code.suffix == 'f') {
    fits = same_sm_family(code.sm, device.sm);
  } else if (code.suffix == 0) {
    fits = code.sm / 10 == device.sm / 10 && code.sm < device.sm;
  }
  return fits ? Fit::kByRule : Fit::kNo;
}

// Code that was made for one state of a feature needs a device that is known to be in it.
bool feature_fits(Feature code, Feature device) {
  return code == Feature::kAny || code == device;
}

Fit amd_runs_on(const Target& code, const Target& device) {
  if (!feature_fits(code.sramecc, device.sramecc) || !feature_fits(code.xnack, device.xnack)) return Fit::kNo;
  if (code.processor == device.processor) return Fit::kExact;
  const Processor* processor = find_processor(device.processor);
  const bool covered =
      processor != nullptr && !processor->generic.empty() && processor->generic == code.processor;
  return covered ? Fit::kByRule : Fit::kNo;
}

}  // namespace

base::Result<Target> parse_target(std::string_view text) {
  if (text.starts_with("sm_")) return parse_nvidia(text);
  if (text.starts_with("gfx")) return parse_amd(text);
  return bad_name(text, "is not the name of a GPU architecture", hint_for(text));
}

std::vector<std::string_view> amd_processors() {
  std::vector<std::string_view> out;
  for (const Processor& processor : kProcessors) out.push_back(processor.name);
  return out;
}

bool found_answers_asked(const Target& found, const Target& asked) {
  if (found.vendor != asked.vendor || found.processor != asked.processor) return false;
  if (found.vendor == Vendor::kNvidia) return asked.suffix == 0 || found.suffix == asked.suffix;
  return found.sramecc == asked.sramecc && found.xnack == asked.xnack;
}

Fit runs_on(const Target& code, const Target& device) {
  if (code.vendor != device.vendor) return Fit::kNo;
  return code.vendor == Vendor::kNvidia ? nvidia_runs_on(code, device) : amd_runs_on(code, device);
}

uint32_t suitability(const Target& code, const Target& device) {
  // Steps that are larger than all that is added to them: a minor is below 10, two features are named at
  // most.
  constexpr uint32_t kRule = 100;
  constexpr uint32_t kFamilyRule = 200;
  constexpr uint32_t kSame = 300;
  const Fit fit = runs_on(code, device);
  if (fit == Fit::kNo) return 0;
  if (code.vendor == Vendor::kAmd) {
    const uint32_t named = (code.sramecc != Feature::kAny ? 1 : 0) + (code.xnack != Feature::kAny ? 1 : 0);
    return (fit == Fit::kExact ? kSame : kRule) + named;
  }
  if (fit == Fit::kExact) return kSame + (code.suffix == 'a' ? 2 : code.suffix == 'f' ? 1 : 0);
  return (code.suffix == 'f' ? kFamilyRule : kRule) + code.sm % 10;
}

std::string family_of(const Target& target) {
  if (target.vendor == Vendor::kNvidia) return "sm_" + std::to_string(target.sm / 10);
  // `gfx90a`: the last two characters are minor and stepping; `gfx9-4-generic`: the major ends at the dash.
  const size_t dash = target.processor.find('-');
  return target.processor.substr(0, dash != std::string::npos ? dash : target.processor.size() - 2);
}

}  // namespace kc::target

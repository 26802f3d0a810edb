// Why a kernel does not load, in words that lead to a cure. Pure text: no driver is asked.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "loader/bundles.h"
#include "loader/driver.h"

namespace kc::loader {

/// Of what a driver answered to `refused`: kernel, device, driver version, toolkit recorded, the number and
/// the driver's own words (its log too), what the bundle has for this kernel, the likely cause and its cure.
/// `tried`: all candidates that were refused, `refused` first. `has`: what the bundle has for the kernel, as
/// has_text() gives it; what was tried when empty. KC_ERROR_DRIVER_TOO_OLD when the entry's lowest driver or
/// toolkit is newer than the driver (a cubin of a newer minor toolkit does run on an older driver of the same
/// major), KC_ERROR_NO_CODE for 209 with a driver that is new enough, KC_ERROR_DRIVER otherwise.
Failure explain_refusal(const Refusal& refusal, const Entry& refused, const std::vector<Entry>& tried,
                        const Device& device, const std::vector<std::string>& has = {});

/// A driver's call outside of a load failed: `doing` is what it was for, "start the driver".
/// KC_ERROR_NO_DEVICE for 100 and 101, KC_ERROR_NO_DRIVER for a library that is only there to link with,
/// otherwise KC_ERROR_DRIVER.
Failure explain_call(kc_api api, const Refusal& refusal, std::string_view doing, std::string_view library);

/// Nothing fits: what the device is, what there is, what to add to the manifest.
Failure explain_no_code(std::string_view kernel, std::string_view configuration, const target::Target& device,
                        const std::vector<std::string>& found_targets);

/// Whether another candidate may be taken where this one was refused.
bool speaks_of_code(kc_api api, const Refusal& refusal);

/// A target as messages name it: "sm_90", or "sm_90 (assembled for sm_90a)" where the code says otherwise.
std::string has_text(std::string_view target, std::string_view found_target);

}  // namespace kc::loader

#include "backend/loom/run/report.h"

#include <cstddef>
#include <limits>
#include <string>

#include "util/json.h"

namespace kc::backend::loom {
namespace {

// Stops the parser at `allocation.spill_count` of the outermost object. No tree is built: that would take as
// long as compiling a small kernel.
class SpillCount : public nlohmann::json_sax<util::Json> {
 public:
  std::optional<uint32_t> found() const { return found_; }

  bool null() override { return ends_value(); }
  bool boolean(bool) override { return ends_value(); }
  bool number_integer(number_integer_t) override { return ends_value(); }
  bool number_unsigned(number_unsigned_t value) override {
    if (!is_wanted()) return true;
    if (value <= std::numeric_limits<uint32_t>::max()) found_ = static_cast<uint32_t>(value);
    return false;
  }
  bool number_float(number_float_t, const string_t&) override { return ends_value(); }
  bool string(string_t&) override { return ends_value(); }
  bool binary(binary_t&) override { return ends_value(); }
  bool start_object(std::size_t) override { return opens(); }
  bool key(string_t& name) override {
    if (depth_ == 1) is_in_allocation_ = name == "allocation";
    is_at_count_ = depth_ == 2 && is_in_allocation_ && name == "spill_count";
    return true;
  }
  bool end_object() override { return closes(); }
  bool start_array(std::size_t) override { return opens(); }
  bool end_array() override { return closes(); }
  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception&) override {
    return false;
  }

 private:
  bool is_wanted() const { return is_at_count_; }
  // A value of another kind in the wanted place ends the search too.
  bool ends_value() const { return !is_wanted(); }
  bool opens() {
    ++depth_;
    return !is_wanted();
  }
  bool closes() {
    --depth_;
    // Behind it nothing is wanted any more.
    return depth_ > 1 || !is_in_allocation_;
  }

  size_t depth_ = 0;
  bool is_in_allocation_ = false;
  bool is_at_count_ = false;
  std::optional<uint32_t> found_;
};

}  // namespace

std::optional<uint32_t> spill_count(base::ByteView report) {
  if (report.empty()) return std::nullopt;  // none was asked for, as mostly
  SpillCount finder;
  // Its result says whether the parser came to the end, which is not what is asked.
  static_cast<void>(util::Json::sax_parse(report.begin(), report.end(), &finder));
  return finder.found();
}

}  // namespace kc::backend::loom

#include "util/message_pack.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "util/text.h"

namespace kc::util {
namespace {

// Builds the value from the events of nlohmann's reader, which takes no memory for declared counts and goes
// no deeper once an event is refused: so every limit is kept here.
class Builder : public nlohmann::json_sax<Json> {
 public:
  explicit Builder(const MessagePackLimits& limits) : limits_(limits) {}

  bool null() override { return add(Json(nullptr)); }
  bool boolean(bool value) override { return add(Json(value)); }
  bool number_integer(int64_t value) override { return add(Json(value)); }
  bool number_unsigned(uint64_t value) override { return add(Json(value)); }
  bool number_float(double value, const std::string&) override { return add(Json(value)); }
  bool string(std::string& value) override { return add(Json(std::move(value))); }
  bool binary(Json::binary_t&) override { return refuse("it holds binary data or an extension"); }

  bool start_object(size_t count) override {
    if (count > limits_.keys) return refuse(format("a map of it has more than {} keys", limits_.keys));
    return open(Json::object(), count);
  }
  // A map has few keys: looking through them costs less than an index of them.
  bool key(std::string& name) override {
    auto& members = open_.back()->get_ref<Json::object_t&>();
    for (const auto& member : members) {
      if (member.first == name) return refuse(format("a map of it has the key {} twice", escape(name)));
    }
    members.emplace_back(std::move(name), nullptr);
    return true;
  }
  bool end_object() override { return close(); }
  bool start_array(size_t count) override { return open(Json::array(), count); }
  bool end_array() override { return close(); }
  bool parse_error(size_t position, const std::string&, const Json::exception&) override {
    return refuse(format("it is damaged at byte {}", position));
  }

  const std::string& fault() const { return fault_; }
  Json take() { return std::move(root_); }

 private:
  bool refuse(std::string why) {
    if (fault_.empty()) fault_ = std::move(why);
    return false;
  }

  bool add(Json value) {
    if (++values_ > limits_.values) return refuse(format("it has more than {} values", limits_.values));
    if (open_.empty()) {
      root_ = std::move(value);
    } else if (Json& parent = *open_.back(); parent.is_array()) {
      parent.get_ref<Json::array_t&>().push_back(std::move(value));
    } else {
      *last_of(parent) = std::move(value);  // of the key that was read before it
    }
    return true;
  }
  bool open(Json value, size_t count) {
    if (open_.size() == limits_.depth) return refuse(format("it is nested deeper than {}", limits_.depth));
    if (count > limits_.values - values_) return refuse(format("it has more than {} values", limits_.values));
    if (!add(std::move(value))) return false;
    // What is open stays where it is: its parent grows only when it is closed.
    open_.push_back(open_.empty() ? &root_ : last_of(*open_.back()));
    return true;
  }
  static Json* last_of(Json& parent) {
    if (parent.is_array()) return &parent.get_ref<Json::array_t&>().back();
    return &parent.get_ref<Json::object_t&>().back().second;
  }
  bool close() {
    open_.pop_back();
    return true;
  }

  const MessagePackLimits limits_;
  Json root_;
  std::vector<Json*> open_;
  size_t values_ = 0;
  std::string fault_;
};

}  // namespace

base::Result<Json> read_message_pack(base::ByteView bytes, const MessagePackLimits& limits) {
  if (bytes.size() > limits.bytes) {
    return base::fail(base::ErrorKind::kFailed, format("it is larger than {}", size_text(limits.bytes)));
  }
  Builder builder(limits);
  if (!Json::sax_parse(bytes.begin(), bytes.end(), &builder, Json::input_format_t::msgpack)) {
    return base::fail(base::ErrorKind::kFailed,
                      builder.fault().empty() ? std::string("it is damaged") : builder.fault());
  }
  return builder.take();
}

}  // namespace kc::util

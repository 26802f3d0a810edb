// Element types of the demo's kernels, on the host.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <string_view>

namespace kc::test {

enum class Element : uint8_t { kF32, kF16, kBf16, kE4m3 };

inline Element element_named(std::string_view name) {
  if (name == "f16") return Element::kF16;
  if (name == "bf16") return Element::kBf16;
  if (name == "e4m3") return Element::kE4m3;
  return Element::kF32;
}

inline unsigned size_of(Element element) {
  return element == Element::kF32 ? 4 : element == Element::kE4m3 ? 1 : 2;
}

/// How far apart neighbours near 1 are: what rounding to the type can cost, relative.
inline double step_of(Element element) {
  switch (element) {
    case Element::kF32:
      return 0x1p-23;
    case Element::kF16:
      return 0x1p-10;
    case Element::kBf16:
      return 0x1p-7;
    case Element::kE4m3:
      return 0x1p-3;
  }
  return 1;
}

/// A type of `mantissa` bits behind the point and `exponent` bits with this bias, of a value that is exact in
/// it, normal or zero: what the tests use.
inline uint32_t encode(double value, unsigned exponent_bits, unsigned mantissa_bits, int bias) {
  const uint32_t sign = std::signbit(value) ? 1U << (exponent_bits + mantissa_bits) : 0;
  if (value == 0) return sign;
  int exponent = 0;
  const double fraction = std::frexp(std::fabs(value), &exponent) * 2 - 1;  // in [0, 1)
  const auto mantissa =
      static_cast<uint32_t>(std::lround(std::ldexp(fraction, static_cast<int>(mantissa_bits))));
  return sign | ((static_cast<uint32_t>(exponent - 1 + bias) << mantissa_bits) + mantissa);
}

inline uint32_t encode(double value, Element element) {
  switch (element) {
    case Element::kF32:
      return std::bit_cast<uint32_t>(static_cast<float>(value));
    case Element::kF16:
      return encode(value, 5, 10, 15);
    case Element::kBf16:
      return encode(value, 8, 7, 127);
    case Element::kE4m3:
      return encode(value, 4, 3, 7);
  }
  return 0;
}

inline double decode(uint32_t bits, Element element) {
  if (element == Element::kF32) return std::bit_cast<float>(bits);
  if (element == Element::kBf16) return std::bit_cast<float>(bits << 16);
  const int mantissa_bits = element == Element::kF16 ? 10 : 3;
  const int exponent_bits = element == Element::kF16 ? 5 : 4;
  const int bias = element == Element::kF16 ? 15 : 7;
  const double sign = (bits >> (mantissa_bits + exponent_bits) & 1) != 0 ? -1 : 1;
  const auto exponent = static_cast<int>(bits >> mantissa_bits & ((1U << exponent_bits) - 1));
  const double mantissa = std::ldexp(static_cast<double>(bits & ((1U << mantissa_bits) - 1)), -mantissa_bits);
  if (exponent == 0) return sign * std::ldexp(mantissa, 1 - bias);
  if (element == Element::kF16 && exponent == 31) return mantissa == 0 ? sign * INFINITY : NAN;
  return sign * std::ldexp(1 + mantissa, exponent - bias);
}

}  // namespace kc::test

// Whether two declarations of a C function are called the same way, though their types have other names: each
// type counts as what it is in a register.
#pragma once

#include <cstddef>
#include <type_traits>

namespace kc::loader::testing {

template <typename T>
struct Passed {
  static_assert(std::is_integral_v<T> || std::is_enum_v<T> || std::is_pointer_v<T>);
  static constexpr bool kIsPointer = std::is_pointer_v<T>;
  static constexpr size_t kSize = sizeof(T);
};
template <typename A, typename B>
inline constexpr bool kPassedAlike =
    Passed<A>::kIsPointer == Passed<B>::kIsPointer&& Passed<A>::kSize == Passed<B>::kSize;

template <typename Ours, typename Theirs>
struct SameCall : std::false_type {};
template <typename R1, typename... A1, typename R2, typename... A2>
requires(sizeof...(A1) == sizeof...(A2)) struct SameCall<R1 (*)(A1...), R2 (*)(A2...)>
    : std::bool_constant<kPassedAlike<R1, R2> && (kPassedAlike<A1, A2> && ...)> {
};

// The checker must be able to say no.
static_assert(SameCall<int (*)(void**, size_t), unsigned (*)(int**, unsigned long)>::value);
static_assert(!SameCall<int (*)(void**, int), int (*)(void**, size_t)>::value);
static_assert(!SameCall<int (*)(void*), int (*)(size_t)>::value);
static_assert(!SameCall<int (*)(void*), int (*)(void*, int)>::value);

}  // namespace kc::loader::testing

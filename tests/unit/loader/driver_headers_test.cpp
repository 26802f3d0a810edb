// Our declarations of drivers' functions against the vendors' own headers, where these are installed: the
// comparison itself is made by the compiler, in driver_headers_cuda.cpp and driver_headers_hip.cpp.
#include <doctest/doctest.h>

#include <string>

TEST_CASE("our declarations of the CUDA driver API are those of cuda.h") {
#ifdef KC_CUDA_HEADER
  MESSAGE("compared with " KC_CUDA_HEADER);
#else
  MESSAGE("not run: there was no cuda.h when the tests were configured");
#endif
}

TEST_CASE("our declarations of the HIP runtime are those of hip_runtime_api.h") {
#ifdef KC_HIP_HEADER
  MESSAGE("compared with " KC_HIP_HEADER);
#else
  MESSAGE("not run: there was no hip/hip_runtime_api.h when the tests were configured");
#endif
}

# Settings of every target, and the one way to declare a library of core/.

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Build type" FORCE)
endif()

set(CMAKE_CXX_STANDARD 23)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
# The layout of the build tree is that of an installation, so that kc finds kc-engine the same way in both.
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)

add_library(kc_options INTERFACE)
target_compile_options(kc_options INTERFACE -Wall -Wextra -Wshadow -Wconversion -Wno-sign-conversion
                                            -Wnon-virtual-dtor -Wold-style-cast)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # GCC bug 105651: false alarms about every "literal" + std::string.
  target_compile_options(kc_options INTERFACE -Wno-restrict)
elseif(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  # std::stable_sort of libstdc++ 12 calls what it has deprecated itself; GCC still warns where kc does.
  target_compile_options(kc_options INTERFACE -Wno-deprecated-declarations)
endif()
if(KC_WERROR)
  target_compile_options(kc_options INTERFACE -Werror)
endif()
if(KC_FUZZERS)
  if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    message(FATAL_ERROR "KC_FUZZERS needs Clang, which brings libFuzzer: use the preset fuzz, or set "
                        "CMAKE_CXX_COMPILER (this compiler: ${CMAKE_CXX_COMPILER_ID}, ${CMAKE_CXX_COMPILER})")
  endif()
  if(KC_SANITIZE STREQUAL "thread")
    message(FATAL_ERROR "KC_FUZZERS goes with AddressSanitizer: leave KC_SANITIZE empty or address")
  endif()
  set(KC_SANITIZE address)
  # What libFuzzer steers by, without its main(): programs that are no fuzzers link as ever.
  target_compile_options(kc_options INTERFACE -fsanitize=fuzzer-no-link)
endif()
if(KC_SANITIZE STREQUAL "address")
  target_compile_options(kc_options INTERFACE -fsanitize=address,undefined -fno-sanitize-recover=all
                                              -fno-omit-frame-pointer)
  target_link_options(kc_options INTERFACE -fsanitize=address,undefined)
elseif(KC_SANITIZE STREQUAL "thread")
  target_compile_options(kc_options INTERFACE -fsanitize=thread -fno-omit-frame-pointer)
  target_link_options(kc_options INTERFACE -fsanitize=thread)
elseif(KC_SANITIZE)
  message(FATAL_ERROR "KC_SANITIZE is '${KC_SANITIZE}'; it must be empty, address or thread")
endif()

# kc_library(<name> [DEPENDS <target>...] [PRIVATE <target>...])
# A static library of all .cpp files of the current folder (not of folders below it).
function(kc_library name)
  cmake_parse_arguments(ARG "" "" "DEPENDS;PRIVATE;SOURCES" ${ARGN})
  if(NOT ARG_SOURCES)
    file(GLOB ARG_SOURCES CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cpp)
  endif()
  add_library(${name} STATIC ${ARG_SOURCES})
  target_include_directories(${name} PUBLIC ${PROJECT_SOURCE_DIR}/core)
  target_link_libraries(${name} PUBLIC ${ARG_DEPENDS} PRIVATE kc_options ${ARG_PRIVATE})
endfunction()

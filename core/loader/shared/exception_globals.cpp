// What each thread knows of the exceptions in flight (Itanium C++ ABI, Exception Handling, 2.2.2), in place
// of libstdc++'s own in the shared library. That one is compiled to call __tls_get_addr, for which the
// dynamic linker itself would be a library that libkcload needs; this one is compiled with TLS descriptors.

namespace {

struct Globals {
  void* caught_exceptions = nullptr;
  unsigned int uncaught_exceptions = 0;
};

thread_local constinit Globals globals;

}  // namespace

extern "C" {

Globals* __cxa_get_globals() noexcept;
Globals* __cxa_get_globals_fast() noexcept;

Globals* __cxa_get_globals() noexcept {
  return &globals;
}

Globals* __cxa_get_globals_fast() noexcept {
  return &globals;
}

}  // extern "C"

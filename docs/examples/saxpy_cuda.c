/* Opens a bundle, loads a kernel of it, launches it and checks its numbers: libkcload and the CUDA driver API
 * in C11, without a header of CUDA. The kernel is vec_add of manifests/demo, C = A + B; `a * x` of a saxpy is
 * taken into A first.
 *
 *     cc -std=c11 saxpy_cuda.c $(pkg-config --cflags --libs kcload) -ldl -lm -o saxpy_cuda
 *     ./saxpy_cuda demo.kcb
 *
 * Exit codes: 0 the numbers are right; 1 something failed; 77 there is no device, so nothing was run.
 */
#include <dlfcn.h>
#include <kc/loader.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { kTile = 1024, kCount = 100 * 1000 + 7 }; /* not a multiple of the tile */

/* What of the driver is called here, as cuda.h declares it. */
typedef int CUresult;
typedef struct CUctx_st* CUcontext;
typedef struct CUfunc_st* CUfunction;
typedef unsigned long long CUdeviceptr;

static CUresult (*cuDevicePrimaryCtxRetain)(CUcontext*, int);
static CUresult (*cuDevicePrimaryCtxRelease)(int);
static CUresult (*cuCtxSetCurrent)(CUcontext);
static CUresult (*cuCtxSynchronize)(void);
static CUresult (*cuMemAlloc)(CUdeviceptr*, size_t);
static CUresult (*cuMemFree)(CUdeviceptr);
static CUresult (*cuMemcpyHtoD)(CUdeviceptr, const void*, size_t);
static CUresult (*cuMemcpyDtoH)(void*, CUdeviceptr, size_t);
static CUresult (*cuLaunchKernel)(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                                  unsigned, void*, void**, void**);

/* The library has been loaded by libkcload already: this finds it again. */
static int find_driver(const char* library) {
  const struct {
    const char* name;
    void* to;
  } symbols[] = {
      {"cuDevicePrimaryCtxRetain", &cuDevicePrimaryCtxRetain},
      {"cuDevicePrimaryCtxRelease_v2", &cuDevicePrimaryCtxRelease},
      {"cuCtxSetCurrent", &cuCtxSetCurrent},
      {"cuCtxSynchronize", &cuCtxSynchronize},
      {"cuMemAlloc_v2", &cuMemAlloc},
      {"cuMemFree_v2", &cuMemFree},
      {"cuMemcpyHtoD_v2", &cuMemcpyHtoD},
      {"cuMemcpyDtoH_v2", &cuMemcpyDtoH},
      {"cuLaunchKernel", &cuLaunchKernel},
  };
  void* driver = dlopen(library, RTLD_NOW | RTLD_LOCAL);
  if (driver == NULL) {
    fprintf(stderr, "%s\n", dlerror());
    return 0;
  }
  for (size_t i = 0; i < sizeof symbols / sizeof symbols[0]; ++i) {
    void* symbol = dlsym(driver, symbols[i].name);
    if (symbol == NULL) {
      fprintf(stderr, "%s has no %s\n", library, symbols[i].name);
      return 0;
    }
    *(void**)symbols[i].to = symbol;
  }
  return 1;
}

/* Says what failed; the caller goes on to release what it has. */
static int failed(const char* what, kc_error* error) {
  fprintf(stderr, "%s: %s\n", what, kc_error_message(error));
  kc_error_free(error);
  return 1;
}

#define CHECK(call)                                            \
  do {                                                         \
    const CUresult result = (call);                            \
    if (result != 0) {                                         \
      fprintf(stderr, #call ": CUDA error %d\n", (int)result); \
      goto end;                                                \
    }                                                          \
  } while (0)

/* y = a * x + y on the device; 0 when the numbers are those of the CPU. */
static int run(const kc_kernel* kernel, const kc_device_info* device) {
  const float a = 2.5F;
  const size_t bytes = kCount * sizeof(float);
  float* ax = malloc(bytes);
  float* y = malloc(bytes);
  float* sum = malloc(bytes);
  CUdeviceptr on_device[3] = {0, 0, 0};
  CUcontext context = NULL;
  int code = 1;
  if (ax == NULL || y == NULL || sum == NULL) goto end;
  for (int i = 0; i < kCount; ++i) {
    ax[i] = a * (float)(i % 1000) * 0.25F;
    y[i] = 1000.0F - (float)(i % 777);
  }

  /* The context that kc_load() loaded into: the device's primary one. */
  CHECK(cuDevicePrimaryCtxRetain(&context, device->ordinal));
  CHECK(cuCtxSetCurrent(context));
  for (int i = 0; i < 3; ++i) CHECK(cuMemAlloc(&on_device[i], bytes));
  CHECK(cuMemcpyHtoD(on_device[0], ax, bytes));
  CHECK(cuMemcpyHtoD(on_device[1], y, bytes));

  /* An array of a tile kernel is a pointer, its lengths and its strides; the block is (1, 1, 1). */
  int32_t length = kCount;
  int32_t stride = 1;
  void* arguments[9] = {&on_device[0], &length,       &stride, &on_device[1], &length,
                        &stride,       &on_device[2], &length, &stride};
  CHECK(cuLaunchKernel((CUfunction)kc_kernel_function(kernel), (kCount + kTile - 1) / kTile, 1, 1, 1, 1, 1, 0,
                       NULL, arguments, NULL));
  CHECK(cuCtxSynchronize());
  CHECK(cuMemcpyDtoH(sum, on_device[2], bytes));

  for (int i = 0; i < kCount; ++i) {
    if (sum[i] != ax[i] + y[i]) { /* one rounding, on both sides the same */
      fprintf(stderr, "element %d: %.9g, expected %.9g\n", i, (double)sum[i], (double)(ax[i] + y[i]));
      goto end;
    }
  }
  code = 0;

end:
  for (int i = 0; i < 3; ++i) {
    if (on_device[i] != 0) cuMemFree(on_device[i]);
  }
  if (context != NULL) cuDevicePrimaryCtxRelease(device->ordinal);
  free(sum);
  free(y);
  free(ax);
  return code;
}

int main(int argc, char** argv) {
  kc_error* error = NULL;
  kc_bundle* bundle = NULL;
  kc_kernel* kernel = NULL;
  const kc_device* device = NULL;
  int code = 1;

  if (argc != 2) {
    fprintf(stderr, "usage: saxpy_cuda BUNDLE\n");
    return 2;
  }
  if (kc_open(argv[1], NULL, &bundle, &error) != KC_OK) return failed("open", error);

  const kc_status found = kc_device_get(KC_CUDA, 0, &device, &error);
  if (found == KC_ERROR_NO_DRIVER || found == KC_ERROR_NO_DEVICE) {
    printf("not run: no device\n");
    kc_error_free(error);
    code = 77;
  } else if (found != KC_OK) {
    code = failed("device", error);
  } else if (kc_load(bundle, "vec_add", "T=f32,TILE=1024", device, NULL, &kernel, &error) != KC_OK) {
    code = failed("load", error);
  } else {
    const kc_device_info* info = kc_device_get_info(device);
    if (find_driver(info->library)) code = run(kernel, info);
    if (code == 0) printf("ok: %s on %s\n", kc_entry_get_info(kc_kernel_entry(kernel))->unit, info->name);
  }
  kc_kernel_release(kernel);
  kc_close(bundle);
  return code;
}

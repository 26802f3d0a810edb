/* libkcload: opens a .kcb bundle, checks it, and loads kernels from it on NVIDIA and AMD GPUs.
 *
 *     kc_bundle* bundle;
 *     kc_kernel* kernel;
 *     const kc_device* device;
 *     kc_error* error;
 *     if (kc_open("demo.kcb", NULL, &bundle, &error) != KC_OK) fail(kc_error_message(error));
 *     if (kc_device_get(KC_CUDA, 0, &device, &error) != KC_OK) ...
 *     if (kc_load(bundle, "matmul", "TM=64,TN=128", device, NULL, &kernel, &error) != KC_OK) ...
 *     cuLaunchKernel((CUfunction)kc_kernel_function(kernel), ...);
 *     kc_kernel_release(kernel);
 *     kc_close(bundle);
 *
 * The rules that hold for every function here:
 *
 * - C11. The library throws no exception, ends no process, prints nothing, reads no environment variable and
 *   starts no thread. It keeps an OpenSSL library context of its own: what the host program or the machine
 * has configured for OpenSSL changes nothing here, nor the other way round.
 * - Any function may be called from any thread at any time, with the same handles; only the release of a
 * handle (kc_close, kc_entry_free, kc_kernel_release, kc_error_free) must not run together with other uses of
 * that handle. Handles keep what they need alive: they can be released in any order, and releasing NULL does
 * nothing.
 * - A function that can fail returns a kc_status. Its last argument is `kc_error** error`: NULL, or where a
 *   description is put on failure, which the caller owns (kc_error_free). It is set to NULL on success, and
 * on KC_ERROR_MEMORY, when there may be no room for one: all kc_error_* functions take NULL. Results are
 * written on success alone; handles are set to NULL on failure.
 * - Texts are UTF-8 and end with a zero byte; sizes are in bytes. Texts, arrays and structs that a function
 * returns belong to the handle they were asked of and live as long as it does. Structs that the library
 * returns may grow at their end in later versions; structs that it takes begin with their own size, so that
 * old callers stay right.
 * - After fork(), a child must not use handles of its parent.
 */
#ifndef KC_LOADER_H
#define KC_LOADER_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define KC_API __attribute__((visibility("default")))
#else
#define KC_API
#endif

/* ---- Errors ------------------------------------------------------------------------------------------ */

typedef enum kc_status {
  KC_OK = 0,
  KC_ERROR_ARGUMENT =
      1, /* NULL where a handle is needed, a malformed target or configuration, an index out of range */
  KC_ERROR_MEMORY = 2,          /* no memory on the host */
  KC_ERROR_IO = 3,              /* a file that cannot be opened or read */
  KC_ERROR_DAMAGED = 4,         /* not a bundle, cut short, or bytes that do not have their digest */
  KC_ERROR_VERSION = 5,         /* a bundle of a newer format than this library knows */
  KC_ERROR_UNTRUSTED = 6,       /* not signed as the policy demands; a key file that holds no key */
  KC_ERROR_POLICY = 7,          /* another name, a lower release, partial, too large */
  KC_ERROR_NOT_FOUND = 8,       /* the bundle has no such kernel, or not that configuration of it */
  KC_ERROR_NO_CODE = 9,         /* it has the kernel, but no code that runs on this device */
  KC_ERROR_NO_DRIVER = 10,      /* no driver library, or one that lacks a function */
  KC_ERROR_NO_DEVICE = 11,      /* the driver has no such device, or none at all */
  KC_ERROR_DRIVER_TOO_OLD = 12, /* the driver does not know code of this toolkit */
  KC_ERROR_DRIVER = 13,         /* the driver refused for another reason: kc_error_driver_code() */
  KC_ERROR_UNLOADED = 14,       /* kc_unload_all() came in between */
  KC_ERROR_INTERNAL = 15        /* a fault of this library */
} kc_status;

/* "KC_ERROR_DAMAGED"; "unknown status" for other numbers. Never NULL; valid for ever. */
KC_API const char* kc_status_name(kc_status status);

typedef struct kc_error kc_error;

/* What went wrong: what, where, why, and where the cause is known its cure, without a final line break. May
 * have several lines. For NULL: "out of memory". */
KC_API const char* kc_error_message(const kc_error* error);
KC_API kc_status kc_error_status(const kc_error* error);
/* The number that the driver gave (CUresult or hipError_t), 0 when no driver was asked. */
KC_API int kc_error_driver_code(const kc_error* error);
KC_API void kc_error_free(kc_error* error);

/* The library's own version, "1.0.0"; valid for ever. */
KC_API const char* kc_loader_version(void);

/* ---- Bundles ----------------------------------------------------------------------------------------- */

typedef struct kc_bundle kc_bundle;

/* What a bundle must be to be opened. All zero but struct_size is what NULL stands for: no signature is
 * demanded, any name and release will do, a bundle that lacks units is refused. Nothing is kept of what it
 * points to. */
typedef struct kc_policy {
  size_t struct_size; /* sizeof(kc_policy). Fields that a smaller one does not reach are zero; what a larger
                         one has beyond must be zero */
  /* Public keys, as PEM files (SubjectPublicKeyInfo, as `kc keygen` and `openssl pkey -pubout` write them)
   * and as raw Ed25519 keys of 32 bytes, one behind the other. At most 4,096 of each. */
  const char* const* key_files;
  size_t key_file_count;
  const uint8_t* keys;
  size_t key_count;
  /* How many different ones of these keys must have signed. With keys 0 means 1; without keys it must be 0.
   */
  size_t required_signatures;
  const char* name;     /* the bundle's own name; NULL: any */
  uint64_t min_release; /* a lower release is refused */
  int allow_partial;    /* not 0: also a bundle that lacks units of its plan, or was made of a part of it */
  /* Limits; 0: none but those of the format (a code object has at most 256 MiB). */
  uint64_t max_file_size; /* bytes */
  uint64_t
      max_code_size; /* bytes of one code object; larger ones are refused when read or loaded, not at open */
} kc_policy;

#define KC_POLICY_INIT \
  { sizeof(kc_policy), NULL, 0, NULL, 0, 0, NULL, 0, 0, 0, 0 }

/* Opens the file at `path`. Header, index digests and signatures are checked; everything else when it is
 * first read, each time from private memory, so that a file which is changed, cut or replaced meanwhile can
 * make a call fail but never give a wrong byte. The file stays open until the bundle and all that came from
 * it are released. */
KC_API kc_status kc_open(const char* path, const kc_policy* policy, kc_bundle** bundle, kc_error** error);
/* As kc_open, from a descriptor of a regular file, which is duplicated: the caller's own may be closed at
 * once. Its file position is not used. */
KC_API kc_status kc_open_fd(int fd, const kc_policy* policy, kc_bundle** bundle, kc_error** error);
/* As kc_open, from memory, of which nothing is copied: `size` bytes that must stay as they are until the
 * bundle and all entries and kernels that came from it are released. */
KC_API kc_status kc_open_memory(const void* data, size_t size, const kc_policy* policy, kc_bundle** bundle,
                                kc_error** error);
/* Several bundles as one: what is looked for is looked for in all of them, and where two have code that fits
 * equally well, the earlier one counts. Each keeps the policy it was opened with. The bundles given may be
 * released; one of them may be a set itself. `count` is 1 to 1,024; a set has at most 65,536 files. */
KC_API kc_status kc_join(kc_bundle* const* bundles, size_t count, kc_bundle** set, kc_error** error);
KC_API void kc_close(kc_bundle* bundle);

/* Reads and checks every byte, as `kc verify` does. The message of the error names the first faults. */
KC_API kc_status kc_verify(const kc_bundle* bundle, kc_error** error);

typedef struct kc_file_info {
  const char* path; /* as it was given; "fd 7", "memory" */
  const char* name;
  uint64_t release;
  int partial; /* units of the plan are missing */
  int subset;  /* made of a part of the plan */
  size_t entry_count;
  size_t signer_count;    /* keys of the policy that have signed it; 0 without keys */
  const uint8_t* signers; /* 32 bytes each */
} kc_file_info;

/* Of how many files a bundle is made: 1, or as many as were joined. 0 for NULL. */
KC_API size_t kc_file_count(const kc_bundle* bundle);
/* NULL when `index` is out of range. */
KC_API const kc_file_info* kc_file_get_info(const kc_bundle* bundle, size_t index);

/* ---- Entries: what a bundle has ---------------------------------------------------------------------- */

typedef struct kc_entry kc_entry;

typedef struct kc_argument {
  uint32_t offset; /* bytes from the beginning of the parameter block */
  uint32_t size;   /* bytes */
} kc_argument;

typedef struct kc_metadata {
  const char* name;
  const char* value; /* a zero byte is put behind it; it may hold others */
  size_t value_size; /* bytes, without that zero */
} kc_metadata;

#define KC_UNKNOWN UINT32_MAX

typedef struct kc_entry_info {
  const char* unit;   /* "matmul:TM=64,TN=128@sm_90" */
  const char* kernel; /* "matmul" */
  const char*
      configuration;        /* "TM=64,TN=128": keys sorted, as in the unit's name; "" without configuration */
  const char* target;       /* as the manifest asked: "sm_90" */
  const char* found_target; /* what the code object was assembled for: "sm_90a"; decides where it runs */
  const char* backend;      /* "tileiras", "loom" */
  const char* entry;        /* as the manifest names it */
  const char* symbol;       /* the function's name in the code object */
  int is_default;           /* the configuration that is taken when none is named */
  const char* compiler;
  const char* compiler_version;
  const char*
      toolkit; /* version of the tools that assembled it, "13.4"; "" when the code object does not say */
  uint32_t lowest_driver; /* NVIDIA: the least driver branch, 580; 0: no rule is known */
  uint8_t content_key[32];
  uint8_t code_digest[32]; /* SHA-256 of the code object */
  uint64_t code_size;      /* bytes */

  /* What a launch needs to know, as the code object says it. */
  uint32_t registers;        /* a thread: 32-bit registers (NVIDIA), VGPRs (AMD) */
  uint32_t scalar_registers; /* AMD: SGPRs a wave; KC_UNKNOWN otherwise */
  uint32_t spills;           /* AMD: spilled VGPRs and SGPRs; KC_UNKNOWN otherwise */
  uint32_t local_memory;     /* bytes a thread */
  uint32_t shared_memory;    /* static, bytes a block: LDS (AMD) */
  uint32_t argument_bytes;   /* size of the parameter block */
  size_t argument_count;
  const kc_argument* arguments; /* by offset; without those that AMD's runtime fills in itself */
  uint32_t required_block[3];   /* threads in x, y, z; 0, 0, 0: none is required */
  uint32_t max_threads;         /* a block; 0: not stated */
  uint32_t wave_size;           /* 32 or 64 */

  size_t metadata_count; /* of the manifest, sorted by name; without what `when` below says */
  const kc_metadata* metadata;
  /* Selection data: for which problems the kernel's table chose this configuration, "m=64,n=128;m=64,n=256":
   * rows separated by ';', each like a configuration. NULL without such columns. */
  const char* when;
} kc_entry_info;

/* Entries of all files, in their order, each sorted by kernel, configuration, target. 0 for NULL. */
KC_API size_t kc_entry_count(const kc_bundle* bundle);
KC_API kc_status kc_entry_at(const kc_bundle* bundle, size_t index, kc_entry** entry, kc_error** error);
/* The entry of a kernel that runs best on a device of `target` ("sm_90", "gfx942:sramecc+:xnack-").
 * `configuration`: pairs as in the unit's name, in any order; "" for a kernel without; NULL for the kernel's
 * default. In a value any byte but ',' '=' '%' may stand for itself, and any may be written as %XX. In a set
 * the default is that of the first file that has the kernel. KC_ERROR_NOT_FOUND and KC_ERROR_NO_CODE name
 * what there is instead. No driver is asked. */
KC_API kc_status kc_find(const kc_bundle* bundle, const char* kernel, const char* configuration,
                         const char* target, kc_entry** entry, kc_error** error);
/* Never NULL, unless `entry` is. */
KC_API const kc_entry_info* kc_entry_get_info(const kc_entry* entry);
/* The value of one piece of metadata, with its size where `size` is not NULL; NULL when there is none of that
 * name. */
KC_API const char* kc_entry_metadata(const kc_entry* entry, const char* name, size_t* size);

typedef enum kc_fit {
  KC_FIT_NONE = 0,
  KC_FIT_BY_RULE = 1, /* same major and lower minor, a family, a generic processor: a driver may refuse it */
  KC_FIT_EXACT = 2
} kc_fit;
/* Whether the entry's code runs on a device of `target`. */
KC_API kc_status kc_entry_fit(const kc_entry* entry, const char* target, kc_fit* fit, kc_error** error);

/* Copies the code object, checked, into `buffer`, of `size` bytes: at least code_size. */
KC_API kc_status kc_entry_read(const kc_entry* entry, void* buffer, size_t size, kc_error** error);
KC_API void kc_entry_free(kc_entry* entry);

/* ---- Devices ----------------------------------------------------------------------------------------- */

typedef enum kc_api {
  KC_CUDA = 1, /* NVIDIA, through the CUDA driver API: libcuda.so.1 */
  KC_HIP = 2   /* AMD, through the HIP runtime: libamdhip64.so.7, .6 or .5 */
} kc_api;

typedef struct kc_device kc_device;

typedef struct kc_device_info {
  kc_api api;
  int ordinal;                /* as the driver counts */
  const char* name;           /* "NVIDIA H200" */
  const char* target;         /* "sm_90", "gfx942:sramecc+:xnack-" */
  int driver_version;         /* as the driver says it: CUDA 13.0 is 13000; HIP 6.2.41133 is 60241133 */
  const char* driver_text;    /* "CUDA 13.0", "HIP 6.2.41133" */
  const char* library;        /* the driver library that was loaded */
  uint64_t memory;            /* bytes */
  uint32_t max_shared_memory; /* bytes a block without asking */
  uint32_t max_shared_memory_opt_in; /* bytes a block when asked for: kc_load_options.dynamic_shared_memory */
} kc_device_info;

/* How many devices the driver has; 0 where there is a driver and no device. The driver library is loaded at
 * the first call that needs it, and stays; a failure is tried anew by the next call. KC_ERROR_NO_DRIVER names
 * every place that was tried. */
KC_API kc_status kc_device_count(kc_api api, int* count, kc_error** error);
/* A device is never released: it belongs to the library and lives as long as the process. */
KC_API kc_status kc_device_get(kc_api api, int ordinal, const kc_device** device, kc_error** error);
KC_API const kc_device_info* kc_device_get_info(const kc_device* device);

/* ---- Kernels: loaded code ---------------------------------------------------------------------------- */

typedef struct kc_kernel kc_kernel;

typedef enum kc_context {
  KC_CONTEXT_PRIMARY = 0, /* CUDA: the device's primary context, which the CUDA runtime uses too; kept while
                             kernels are loaded */
  KC_CONTEXT_CURRENT =
      1 /* CUDA: the calling thread's current context, which must be one of the device, and must live until
           all kernels in it are released. HIP has no contexts: there the two are the same. */
} kc_context;

typedef struct kc_load_options {
  size_t struct_size; /* sizeof(kc_load_options) */
  kc_context context;
  uint32_t dynamic_shared_memory; /* bytes a block that launches will ask for, beside the kernel's own: what
                                     lies above the default limit is requested from the driver */
} kc_load_options;

#define KC_LOAD_OPTIONS_INIT \
  { sizeof(kc_load_options), KC_CONTEXT_PRIMARY, 0 }

/* Finds the kernel's code for the device, best match first, and loads it; when the driver refuses a match,
 * the next one is tried. Loaded means that the function's handle was got. Code that is loaded already on that
 * device and context is not loaded again, by whatever names and from whichever bundle it was asked for.
 * Several threads load at once; those that want the same code wait for the one that loads it. `options` may
 * be NULL. The calling thread's current context is the same afterwards as before. */
KC_API kc_status kc_load(const kc_bundle* bundle, const char* kernel, const char* configuration,
                         const kc_device* device, const kc_load_options* options, kc_kernel** loaded,
                         kc_error** error);
/* As kc_load, of this entry and no other. */
KC_API kc_status kc_load_entry(const kc_entry* entry, const kc_device* device, const kc_load_options* options,
                               kc_kernel** loaded, kc_error** error);
/* CUfunction or hipFunction_t. NULL for NULL and after kc_unload_all(). */
KC_API void* kc_kernel_function(const kc_kernel* kernel);
/* What was loaded. Belongs to the kernel. */
KC_API const kc_entry* kc_kernel_entry(const kc_kernel* kernel);
/* The code is unloaded with the last kernel that it serves. */
KC_API void kc_kernel_release(kc_kernel* kernel);
/* Unloads all code that this library has loaded in this process, whoever holds it, and lets go of primary
 * contexts: for use before contexts are destroyed or a device is reset. No kernel may be running. Kernels
 * stay to be released; a load that is under way ends with KC_ERROR_UNLOADED or is unloaded, too. */
KC_API void kc_unload_all(void);

#ifdef __cplusplus
}
#endif

#endif

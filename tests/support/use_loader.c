/* A program of libkcload's users, in C11, for tests of whole programs: loads kernels on a device, keeps all
 * of them, and says what became of each.
 *
 *     use_loader BUNDLE DEVICE KERNEL...      DEVICE as cuda:0; a KERNEL may be KERNEL:CONFIGURATION
 *
 * For each kernel a line `KERNEL STATUS CODE [UNIT]`, then its message, each line behind a `|`; at the end
 * `held N`, of the kernels that are still loaded then. Exit 1 when the bundle does not open (the same two
 * kinds of lines, with the name `open`) or there is no such device (`device`).
 */
#include <kc/loader.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void tell(const char* name, kc_status status, const char* unit, kc_error* error) {
  printf("%s %s %d%s%s\n", name, status == KC_OK ? "KC_OK" : kc_status_name(status),
         kc_error_driver_code(error), *unit != '\0' ? " " : "", unit);
  if (status == KC_OK) return;
  const char* line = kc_error_message(error);
  for (;;) {
    const size_t length = strcspn(line, "\n");
    printf("|%.*s\n", (int)length, line);
    if (line[length] == '\0') break;
    line += length + 1;
  }
}

int main(int argc, char** argv) {
  enum { kMost = 64 };
  kc_kernel* kernels[kMost];
  int count = 0;
  kc_bundle* bundle = NULL;
  const kc_device* device = NULL;
  kc_error* error = NULL;
  if (argc < 4 || argc - 3 > kMost || strchr(argv[2], ':') == NULL) return 2;
  kc_status status = kc_open(argv[1], NULL, &bundle, &error);
  if (status != KC_OK) {
    tell("open", status, "", error);
    kc_error_free(error);
    return 1;
  }
  const kc_api api = strncmp(argv[2], "hip", 3) == 0 ? KC_HIP : KC_CUDA;
  status = kc_device_get(api, atoi(strchr(argv[2], ':') + 1), &device, &error);
  if (status != KC_OK) {
    tell("device", status, "", error);
    kc_error_free(error);
    kc_close(bundle);
    return 1;
  }
  for (int i = 3; i < argc; ++i) {
    char* configuration = strchr(argv[i], ':');
    if (configuration != NULL) *configuration++ = '\0';
    kc_kernel* kernel = NULL;
    status = kc_load(bundle, argv[i], configuration, device, NULL, &kernel, &error);
    tell(argv[i], status, status == KC_OK ? kc_entry_get_info(kc_kernel_entry(kernel))->unit : "", error);
    kc_error_free(error);
    if (kernel != NULL) kernels[count++] = kernel;
  }
  kc_close(bundle); /* kernels keep what they need */
  int held = 0;
  for (int i = 0; i < count; ++i) held += kc_kernel_function(kernels[i]) != NULL;
  printf("held %d\n", held);
  for (int i = 0; i < count; ++i) kc_kernel_release(kernels[i]);
  return 0;
}

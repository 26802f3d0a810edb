// Source of the code objects here, which tests/unit/artifact/amdgpu_test.cpp reads. How they were made, and
// what is expected of them, stands there.
#ifndef SGPRS
#define SGPRS 24
#endif
#define X __builtin_amdgcn_workitem_id_x()

// A required block, local memory, arguments of several sizes with gaps between them.
__kernel __attribute__((reqd_work_group_size(64, 2, 1))) void reversed(__global float* out, int n,
                                                                       __global const float* in, float factor,
                                                                       char shift) {
  __local float tile[64];
  tile[X] = in[X];
  __builtin_amdgcn_s_barrier();
  const __constant long* offset =
      (const __constant long*)__builtin_amdgcn_implicitarg_ptr();  // makes hidden arguments
  if ((int)X < n) out[X + shift + offset[0]] = factor * tile[63 - X];
}

// A private array, and fewer registers than it needs.
__kernel __attribute__((amdgpu_num_vgpr(16), amdgpu_num_sgpr(SGPRS))) void crowded(__global float* out,
                                                                                   __global const float* in,
                                                                                   int from, int to) {
  float values[24];
  float sums[16];
  for (int i = 0; i < 24; ++i) values[i] = in[X * 24 + i];
#pragma unroll
  for (int i = 0; i < 16; ++i) sums[i] = in[X * 16 + i] * in[i];
  values[from] = sums[0];
#pragma unroll
  for (int i = 1; i < 16; ++i) out[X * 16 + i] = sums[i] * sums[(i * 7) % 16] + values[to];
}

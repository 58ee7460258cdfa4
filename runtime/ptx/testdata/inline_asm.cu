extern "C" __global__ void k(unsigned long long* bar, float* y, int n) {
  unsigned a = (unsigned)__cvta_generic_to_shared(bar);
  for (int i = 0; i < 2; ++i)
    asm volatile(
        "{\n.reg .pred p;\nLAB_WAIT:\nmbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n@p bra DONE;\nbra "
        "LAB_WAIT;\nDONE:\n}" ::"r"(a),
        "r"(i));
  asm volatile(
      "{\n.reg .pred p;\n.reg .b32 %%r<4>;\nLAB_WAIT:\nmov.b32 %%r1, %1;\nsetp.ne.u32 p, %%r1, 0;\n@p bra DONE;\nbra "
      "LAB_WAIT;\nDONE:\n}" ::"r"(a),
      "r"(n));
  float d[4];
  asm volatile("{.reg .v2 .f32 v; .reg .b64 t; mov.b64 t, 0x3f8000003f800000; mov.b64 {%0, %1}, t; }"
               : "=f"(d[0]), "=f"(d[1]));
  *y = d[0] + d[1];
}

extern "C" __global__ void k(const int* op, const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float v = x[i];
  switch (op[i]) {
    case 0:
      v = sinf(v);
      break;
    case 1:
      v = cosf(v);
      break;
    case 2:
      v = sqrtf(v);
      break;
    case 3:
      v = v * v + 3;
      break;
    case 4:
      v = expf(v);
      break;
    case 5:
      v = logf(v);
      break;
    case 6:
      v = 1 / v;
      break;
    case 7:
      v = v - 1;
      break;
    case 8:
      y[i + 1] = 2;
      break;
    case 9:
      v = fabsf(v);
      break;
    case 10:
      v = floorf(v);
      break;
    case 11:
      y[0] = v;
      break;
    default:
      v = 0;
  }
  y[i] = v;
}

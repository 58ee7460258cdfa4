// solstice-worker compile|judge|run|probe: started by solsticed only, with its channel at descriptor 3.
#include <cstdio>
#include <cstring>

#include "runtime/worker/worker.h"

int main(int argc, char** argv) {
  const char* role = argc > 1 ? argv[1] : "";
  if (std::strcmp(role, "compile") == 0) return solstice::worker::CompileMain(argc, argv);
  if (std::strcmp(role, "judge") == 0) return solstice::worker::JudgeMain(argc, argv);
  if (std::strcmp(role, "run") == 0) return solstice::worker::RunnerMain(argc, argv);
  if (std::strcmp(role, "probe") == 0) return solstice::worker::ProbeMain(argc, argv);
  std::fprintf(stderr, "solstice-worker is started by solsticed; it is of no use by itself\n");
  return 2;
}

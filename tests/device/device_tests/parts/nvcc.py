"""The same kernels by nvcc and by Solstice (tests/device/nvcc_compare).

$SOLSTICE_NVCC_CUBINS names a folder of cubins that `run.sh build` made, for a host without nvcc.
"""
import os
import shutil

NAME = "nvcc"
TITLE = "kernels by nvcc and by Solstice"
NEEDS_GPU = True
LIMIT_S = 90


def run(ctx, result):
    script = ctx.path("tests/device/nvcc_compare/run.sh")
    cuda = os.environ.get("SOLSTICE_CUDA_HOME", "/usr/local/cuda")
    cubins = os.environ.get("SOLSTICE_NVCC_CUBINS")
    if not os.path.exists(script):
        result.skipped = "there is no tests/device/nvcc_compare"
    elif not cubins and not os.access(os.path.join(cuda, "bin/nvcc"), os.X_OK):
        result.skipped = f"there is no nvcc in {cuda}/bin"
    elif shutil.which(os.environ.get("CXX", "g++")) is None:
        result.skipped = "there is no g++"
    if result.skipped:
        return
    # An installation of its own: compiling starts a private server for it.
    data_folder = ctx.folder("nvcc")
    environment = {**os.environ, "SOLSTICE": ctx.program("solstice"), "SOLSTICE_DATA_DIR": data_folder}
    from device_tests.parts.latency import end_private_server
    try:
        code, out, errors, _ = ctx.command([script, *(["time", cubins] if cubins else ["all"])], ctx.within(LIMIT_S),
                                           env=environment)
    finally:
        end_private_server(data_folder)
    result.lines += out.rstrip().splitlines()[-40:]
    result.check(code == 0, f"run.sh ended with {code}: {errors[-800:]}")

"""Solstice's latency of the fused RMSNorm beside what Nsight Compute measures of the same cubin, launched plainly by
launch_cubin.cc with the same geometry."""
import csv
import io
import os
import shutil
import statistics

from device_tests import catalogue, submissions
from device_tests.report import number
from device_tests.server import Server, ToolError

NAME = "ncu"
TITLE = "the fused RMSNorm's latency beside ncu's gpu__time_duration"
NEEDS_GPU = True
LIMIT_S = 90
DEFINITION = "fused_add_rmsnorm_h2048"
METRIC = "gpu__time_duration.sum"
WARM_UPS, LAUNCHES = 5, 40


class Kernel:
    """One kernel at one batch size. The plan is spelled out, so that the launcher can do the same."""

    def __init__(self, file, kernel, threads):
        self.file = file
        self.kernel = kernel
        self.threads = threads

    def plan(self):
        return [f"launch {self.kernel} grid=(batch_size) block=({self.threads})",
                "       args=(hidden_states, residual, weight, output, f32(1e-6))"]

    def arguments(self, batch, hidden):
        rows = f"buffer:{batch * hidden * 2}"
        return [rows, rows, f"buffer:{hidden * 2}", rows, "f32:1e-6"]


def kernels_for(batch):
    threads = 128 if batch <= 4 * 132 else 64
    return [Kernel("fused_add_rmsnorm.cu", "fused_add_rmsnorm<2048>", 256),
            Kernel("fused_add_rmsnorm_fast.cu", f"fused_add_rmsnorm_fast<2048, {threads}>", threads)]


def parse_durations(text):
    """Nanoseconds of each launch, from `ncu --csv --print-units base`."""
    lines = text.splitlines()
    head = next((i for i, line in enumerate(lines) if line.startswith('"ID"')), None)
    if head is None:
        return []
    rows = csv.DictReader(io.StringIO("\n".join(lines[head:])))
    scale = {"ns": 1, "nsecond": 1, "us": 1e3, "usecond": 1e3, "ms": 1e6, "msecond": 1e6}
    return [float(row["Metric Value"].replace(",", "")) * scale[row["Metric Unit"]] for row in rows
            if row.get("Metric Name") == METRIC]


def find_ncu():
    cuda = os.environ.get("SOLSTICE_CUDA_HOME", "/usr/local/cuda")
    return shutil.which("ncu") or shutil.which("ncu", path=os.path.join(cuda, "bin"))


def build_launcher(ctx, folder):
    compiler = shutil.which(os.environ.get("CXX", "g++"))
    if compiler is None:
        raise ToolError("no g++ to build launch_cubin.cc with")
    cuda = os.environ.get("SOLSTICE_CUDA_HOME", "/usr/local/cuda")
    program = os.path.join(folder, "launch_cubin")
    code, _, errors, _ = ctx.command([compiler, "-std=c++17", "-O1", f"-I{cuda}/include",
                                      ctx.path("tests/device/launch_cubin.cc"), "-o", program, "-ldl"], ctx.within(60))
    if code != 0:
        raise ToolError(f"launch_cubin.cc does not compile: {errors[-800:]}")
    return program


def compile_cubin(server, source, path, *options):
    """The linked name of the first kernel."""
    answer = server.call("compile", source, *options, "--emit", "cubin", "-o", path)
    if answer.document.get("status") != "PASSED":
        raise ToolError(f"{source} does not compile: {answer.document.get('reason') or answer.error}")
    return answer.document["compile"]["kernels"][0]["name"]


def profile(ctx, ncu, launch, cache_control):
    """Median microseconds of the recorded launches, and how many there were."""
    argv = [ncu, "--clock-control", "none", "--cache-control", cache_control, "--metrics", METRIC, "--csv",
            "--print-units", "base", "--kernel-name", "regex:^fused_add_rmsnorm", "--launch-skip", str(WARM_UPS),
            "--launch-count", str(LAUNCHES), *launch]
    code, out, errors, _ = ctx.command(argv, ctx.within(60))
    with open(os.path.join(ctx.out, "ncu.txt"), "a", encoding="utf-8") as file:
        file.write(f"$ {' '.join(argv)}\n{out}{errors}\n")
    durations = parse_durations(out)
    if code != 0 or not durations:
        raise ToolError(f"ncu ended with {code} and {len(durations)} launches: {out[-500:]} {errors[-500:]}")
    return statistics.median(durations) * 1e-3, len(durations)


def measure(ctx, server, definition, workload, kernel, tools, result):
    """A row of the table."""
    ncu, launcher, clear_cubin, folder = tools
    batch, hidden = workload["axes"]["batch_size"], definition.axes(workload)["hidden_size"]
    with open(ctx.path("examples", kernel.file), encoding="utf-8") as file:
        text = submissions.with_plan(file.read(), kernel.plan())
    stem = f"{kernel.file.removesuffix('.cu')}_{batch}"
    source = ctx.write(folder, stem + ".cu", text)
    answer = server.run(source, definition.name, "--workload", workload["uuid"], "--no-cache")
    result.check(answer.status == "PASSED", f"{stem}: {answer.status}: {answer.reason}")
    ours = answer.workloads[0].get("latency_us") if answer.workloads else None
    result.check(bool(ours), f"{stem}: no latency; timed by {answer.document.get('protocol')}")
    cubin = os.path.join(folder, stem + ".cubin")
    name = compile_cubin(server, source, cubin, "-d", definition.name)
    launch = [launcher, "run", cubin, name, str(batch), str(kernel.threads), str(WARM_UPS + LAUNCHES), clear_cubin,
              *kernel.arguments(batch, hidden)]
    cleared, count = profile(ctx, ncu, launch, "none")
    flushed, _ = profile(ctx, ncu, launch, "all")
    result.check(count == LAUNCHES, f"{stem}: ncu measured {count} launches, not {LAUNCHES}")
    _, copied, _, _ = ctx.command([launcher, "copy", str(definition.bytes(workload) // 2)], ctx.within(30))
    difference = f"{ours - cleared:+.2f} us ({100 * (ours - cleared) / cleared:+.1f} %)" if ours else "-"
    rate = number(definition.bytes(workload) / ours * 1e-3, 0) if ours else "-"
    return [kernel.kernel, str(batch), number(ours), number(cleared), number(flushed), difference, str(count), rate,
            copied.strip()]


def run(ctx, result):
    ncu = find_ncu()
    if ncu is None:
        result.fail("there is no ncu in PATH or in the toolkit")
        return
    definition = catalogue.definitions(ctx.root)[DEFINITION]
    folder = ctx.folder("ncu")
    table = [["kernel", "batch", "Solstice us", "ncu us, L2 read clear", "ncu us, its own flush", "Solstice - ncu",
              "launches", "GB/s", "copy of as many bytes"]]
    try:
        with Server(ctx, NAME) as server:
            clear_cubin = os.path.join(folder, "clear_l2.cubin")
            compile_cubin(server, ctx.path("tests/device/kernels/clear_l2.cu"), clear_cubin)
            tools = (ncu, build_launcher(ctx, folder), clear_cubin, folder)
            for workload in (definition.smallest("batch_size"), definition.largest("batch_size")):
                for kernel in kernels_for(workload["axes"]["batch_size"]):
                    table.append(measure(ctx, server, definition, workload, kernel, tools, result))
    finally:
        result.add_table(DEFINITION, table)

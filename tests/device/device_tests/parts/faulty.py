"""Each faulty example gets its status, an honest kernel passes right after it, and the GPU is left as it was."""
import glob
import os

from device_tests import catalogue, gpu, submissions
from device_tests.report import number, shortened
from device_tests.server import Server

NAME = "faulty"
TITLE = "faulty examples, what a hang costs, what stays on the GPU"
NEEDS_GPU = False
LIMIT_S = 120
HONEST = ("examples/fused_add_rmsnorm.cu", "fused_add_rmsnorm_h2048")
DEADLINE_S = 3
COMPILE_LIMIT_S = 8
HANG = "endless_loop.cu"


def usage_text(seen):
    return "-" if seen is None else f"{'+'.join(map(str, seen['memory_mib']))} MiB, {len(seen['processes'])} processes"


def judge_faulty(ctx, result, server, path, before, table):
    """`before` is what the idle server used of the GPU; returns what it uses afterwards."""
    name = os.path.basename(path)
    with open(path, encoding="utf-8") as file:
        definition, status = submissions.expected_of(file.read())
    answer = server.run(path, definition, "--quick", "--timeout", str(DEADLINE_S), "--no-cache")
    honest = server.run(ctx.path(HONEST[0]), HONEST[1], "--quick", "--no-cache")
    after = gpu.wait_until(lambda seen: gpu.usage(seen) == gpu.usage(before)) if ctx.gpu else None
    first = answer.workloads[0]["status"] if answer.workloads else "none"
    result.check(answer.status == status and first == status, f"{name}: expected {status}, got {answer.status}, first "
                 f"workload {first}: {answer.reason}")
    result.check(bool(answer.reason), f"{name}: no reason is given")
    result.check(honest.status == "PASSED", f"the honest kernel after {name}: {honest.status}: {honest.reason}")
    if ctx.gpu:
        result.check(gpu.usage(before) == gpu.usage(after), f"{name}: the GPU before: {before}, after: {after}")
    table.append([name, answer.status, number(answer.wall_s), honest.status, usage_text(before), usage_text(after),
                  shortened(answer.reason, 70)])
    return after


def judge_hang(ctx, result, server):
    """Compiled before, one workload: what is left is the deadline and what the service adds."""
    path = ctx.path("examples/faulty", HANG)
    definition = catalogue.definitions(ctx.root)["rmsnorm_h2048"]
    for deadline_s in (1, DEADLINE_S):
        answer = server.run(path, definition.name, "--workload", definition.smoke[0], "--timeout", str(deadline_s),
                            "--no-cache")
        result.check(answer.status == "TIMEOUT", f"{HANG}: {answer.status}")
        result.check(answer.wall_s <= deadline_s + 1,
                     f"a hang with a deadline of {deadline_s} s took {answer.wall_s:.2f} s")
        result.say(f"a hang with a deadline of {deadline_s} s: answered after {answer.wall_s:.2f} s, whole command "
                   f"(phases: {answer.document.get('phases')})")


def run(ctx, result):
    outside = gpu.settled() if ctx.gpu else None
    table = [["example", "status", "wall s", "honest after", "GPU before", "GPU after", "reason"]]
    paths = sorted(glob.glob(ctx.path("examples/faulty/*.cu")))
    try:
        with Server(ctx, NAME, ["--compile-timeout-s", str(COMPILE_LIMIT_S)]) as server:
            # The first evaluation loads what stays loaded.
            server.run(ctx.path(HONEST[0]), HONEST[1], "--quick", "--no-cache")
            usage = gpu.settled() if ctx.gpu else None
            for path in paths:
                usage = judge_faulty(ctx, result, server, path, usage, table)
            judge_hang(ctx, result, server)
        result.check(server.exit_code == 0, f"the server ended with {server.exit_code}")
    finally:
        result.add_table(f"{len(table) - 1} of {len(paths)} faulty examples", table)
    if ctx.gpu:
        left = gpu.wait_until(lambda seen: seen == outside)
        result.check(left == outside, f"GPU before the server: {outside}, after it: {left}")
        result.say(f"GPU before the server started: {usage_text(outside)}; after it ended: {usage_text(left)}")
        result.data = {"gpu_before": outside, "gpu_after": left}

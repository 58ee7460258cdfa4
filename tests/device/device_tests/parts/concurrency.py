"""Two submissions at once on one GPU, and a second server beside the first: what happens."""
import concurrent.futures
import time

from device_tests.report import number
from device_tests.server import Server, ToolError

NAME = "concurrency"
TITLE = "two submissions at once, two servers on one GPU"
NEEDS_GPU = False
LIMIT_S = 60
EXAMPLE, DEFINITION = "examples/fused_add_rmsnorm.cu", "fused_add_rmsnorm_h2048"


def judge(server):
    return server.run(server.ctx.path(EXAMPLE), DEFINITION, "--quick", "--no-cache")


def latencies(answer):
    return ", ".join(number(workload.get("latency_us")) for workload in answer.workloads)


def together(first, second):
    """Answers of both servers, and the wall time until both are there."""
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        started = time.monotonic()
        answers = [future.result() for future in [pool.submit(judge, first), pool.submit(judge, second)]]
        return answers, time.monotonic() - started


def run(ctx, result):
    rows = [["what", "status", "latencies us", "wall s"]]

    def note(what, answer, wall_s):
        rows.append([what, answer.status, latencies(answer), number(wall_s)])
        result.check(answer.status == "PASSED", f"{what}: {answer.status}: {answer.reason}")

    with Server(ctx, NAME) as server:
        judge(server)
        alone = judge(server)
        note("alone", alone, alone.wall_s)
        answers, wall_s = together(server, server)
        for answer in answers:
            note("two at once, one server", answer, wall_s)
        # What two servers do to each other is told, not judged.
        try:
            with Server(ctx, NAME) as other:
                judge(other)
                answers, wall_s = together(server, other)
                rows += [["two servers at once", answer.status, latencies(answer), number(wall_s)]
                         for answer in answers]
            result.say("a second server on the same device starts and judges")
        except ToolError as error:
            result.say(f"a second server on the same device: {error}")
        again = judge(server)
        note("alone again", again, again.wall_s)
    result.add_table("at once", rows)

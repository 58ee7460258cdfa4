"""How long `solstice run` of the RMSNorm example over all its workloads takes: with nothing running yet, with a warm
private server, and with a changed source."""
import os
import signal
import statistics
import time

from device_tests import server as servers
from device_tests.report import number

NAME = "latency"
TITLE = "whole-process wall time, cold and warm"
NEEDS_GPU = False
LIMIT_S = 80
EXAMPLE = "examples/rmsnorm_fast.cu"
DEFINITION = "rmsnorm_h2048"
COLD, WARM, CHANGED = 3, 5, 3
# The bounds of docs: seconds, whole process, on a GPU.
COLD_BOUND_S, WARM_BOUND_S = 3.0, 1.0


def private_servers(data_folder):
    """Pids of the solsticed that serve the folder."""
    found = []
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            with open(f"/proc/{entry}/cmdline", "rb") as file:
                words = file.read().decode(errors="replace").split("\0")
        except OSError:
            continue
        if os.path.basename(words[0]) == "solsticed" and os.path.realpath(data_folder) in words:
            found.append(int(entry))
    return found


def end_private_server(data_folder):
    for how, wait_s in ((signal.SIGTERM, 15), (signal.SIGKILL, 5)):
        deadline = time.monotonic() + wait_s
        for pid in private_servers(data_folder):
            try:
                os.kill(pid, how)
            except ProcessLookupError:
                pass
        while private_servers(data_folder) and time.monotonic() < deadline:
            time.sleep(0.05)
        if not private_servers(data_folder):
            return


def measure(ctx, data_folder, path, result, what, *options):
    arguments = ["--data-dir", data_folder, "run", path, "-d", DEFINITION, "--device", ctx.device, *options]
    answer = servers.client(ctx, arguments, 60, NAME)
    result.check(answer.status == "PASSED", f"{what}: {answer.status}: {answer.reason}")
    return answer


def row_of(what, answer, names):
    phases = answer.document.get("phases") or {}
    cached = (answer.document.get("compile") or {}).get("cached")
    return [what, number(answer.wall_s, 3), "cached" if cached else "compiled",
            *[number(phases.get(name, 0), 0) for name in names]]


def run(ctx, result):
    path = ctx.path(EXAMPLE)
    with open(path, encoding="utf-8") as file:
        source = file.read()
    answers = []
    folder = None
    try:
        for i in range(COLD):
            if folder is not None:
                end_private_server(folder)
            folder = ctx.folder("private")
            answers.append((f"cold {i + 1}", measure(ctx, folder, path, result, "cold")))
            result.check(not answers[-1][1].document.get("cached"), "a cold run was answered from a store")
        for i in range(WARM):
            answers.append((f"warm {i + 1}", measure(ctx, folder, path, result, "warm", "--no-cache")))
        for i in range(CHANGED):
            changed = ctx.write(ctx.folder("changed"), "rmsnorm_fast.cu", f"{source}// Changed, {i}.\n")
            answers.append((f"changed {i + 1}", measure(ctx, folder, changed, result, "changed", "--no-cache")))
    finally:
        if folder is not None:
            ctx.keep_server_log("private server", os.path.join(folder, "server.log"))
            end_private_server(folder)
        report(ctx, result, answers)


def report(ctx, result, answers):
    names = sorted({name for _, answer in answers for name in answer.document.get("phases") or {}},
                   key=lambda name: (name == "total_ms", name))
    result.add_table(f"{EXAMPLE} on {DEFINITION}: seconds of the whole process, milliseconds of its parts",
                     [["run", "wall s", "program", *[name.removesuffix("_ms") for name in names]],
                      *[row_of(what, answer, names) for what, answer in answers]])
    walls = {kind: [answer.wall_s for what, answer in answers if what.startswith(kind)]
             for kind in ("cold", "warm", "changed")}
    for kind, bound_s in (("cold", COLD_BOUND_S), ("warm", WARM_BOUND_S), ("changed", None)):
        if not walls[kind]:
            continue
        result.say(f"{kind}: median {statistics.median(walls[kind]):.3f} s, worst {max(walls[kind]):.3f} s"
                   + (f", at most {bound_s:.0f} s wanted" if bound_s else ""))
        if bound_s and ctx.gpu:
            result.check(max(walls[kind]) <= bound_s, f"{kind}: {max(walls[kind]):.3f} s, more than {bound_s} s")
    result.data = {"wall_s": walls, "phases": [{"run": what, **(answer.document.get("phases") or {})}
                                               for what, answer in answers]}

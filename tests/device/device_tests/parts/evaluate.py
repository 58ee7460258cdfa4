"""Every reference as a submission and every example, on every workload of the definitions they are for.

Cheap evaluations come first. Three quarters of the time are for timed ones; what is left then runs once more without
timing, so that its verdict is known, and the table has no latency for it.
"""
import concurrent.futures
import fnmatch
import statistics
import time

from device_tests import catalogue, submissions
from device_tests.context import OutOfTime
from device_tests.report import axes, number, shortened
from device_tests.server import Server, ToolError

NAME = "evaluate"
TITLE = "references and examples on every workload"
NEEDS_GPU = False
LIMIT_S = 560

TIMED_SHARE = 0.75
# Evaluations under way: compiling overlaps with what the device does.
WINDOW = 3
TIMEOUT_S = "30"
# How much longer a multiplication takes than on tensor cores.
SLOWNESS = {"gemm_mma.cu": 1, "gemm_tiled.cu": 10}
SLOWNESS_OF_REFERENCE = 40


class Item:
    """One submission on one definition."""

    def __init__(self, submission, source, definition, workloads):
        self.submission = submission
        self.source = source
        self.definition = definition
        self.workloads = {workload["uuid"]: workload for workload in workloads}
        self.results = {}
        self.note = ""

    def cost(self):
        slowness = SLOWNESS.get(self.submission, SLOWNESS_OF_REFERENCE)
        work = sum(self.definition.multiplications(workload) for workload in self.workloads.values())
        return slowness * work + 100 * sum(self.definition.bytes(workload) for workload in self.workloads.values())

    def missing(self):
        return [uuid for uuid in self.workloads if uuid not in self.results]

    def take(self, answer):
        for workload in answer.workloads:
            # A workload that was cut off by cancelling has no status of its own.
            if workload["uuid"] in self.workloads and workload["status"]:
                self.results[workload["uuid"]] = workload
        if answer.error:
            self.note = f"{answer.error.get('code')}: {answer.error.get('reason')}"


def matches(name, patterns):
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns.split(","))


def plan_items(ctx, folder):
    """Cheapest first."""
    known = catalogue.definitions(ctx.root)
    items = []

    def add(submission, source, definition):
        if matches(definition.name, ctx.evaluate.definitions) and matches(submission, ctx.evaluate.submissions):
            chosen = [workload for workload in definition.workloads if ctx.gpu or workload["uuid"] in definition.smoke]
            items.append(Item(submission, source, definition, chosen))

    for definition in known.values():
        text = submissions.reference_submission(ctx.root, definition)
        add("reference", ctx.write(folder, f"{definition.name}.cu", text), definition)
    for example in catalogue.examples(ctx.root):
        for name in example.definitions(known):
            if ctx.gpu or example.emulator:
                add(example.file, ctx.path("examples", example.file), known[name])
    return sorted(items, key=Item.cost)


def evaluate(server, item, until, timed):
    if time.monotonic() >= until:
        return
    options = ["--no-cache", "--timeout", TIMEOUT_S] + ([] if timed else ["--timer", "none"])
    if item.results:
        for uuid in item.missing():
            options += ["--workload", uuid]
    try:
        item.take(server.follow(item.source, item.definition.name, *options, until=until))
    except (ToolError, OutOfTime) as error:
        item.note = str(error)


def evaluate_all(ctx, server, items, until, timed):
    with concurrent.futures.ThreadPoolExecutor(WINDOW) as pool:
        running = {pool.submit(evaluate, server, item, until, timed): item for item in items}
        for done in concurrent.futures.as_completed(running):
            done.result()
            item = running[done]
            passed = sum(workload["status"] == "PASSED" for workload in item.results.values())
            ctx.progress(f"{item.submission} on {item.definition.name}: {passed} of {len(item.workloads)} PASSED"
                         + ("" if timed else " (untimed)"))


def row_of(item, uuid):
    definition, workload, found = item.definition, item.workloads[uuid], item.results.get(uuid, {})
    latency = found.get("latency_us")
    return [item.submission, definition.name, axes(definition.var_axes(workload)),
            number(found.get("max_absolute_error"), 4), number(found.get("max_relative_error"), 4),
            number(found.get("matched_ratio"), 4), number(latency), number(found.get("reference_latency_us")),
            number(found.get("speedup")),
            number(definition.bytes(workload) / latency * 1e-3, 0) if latency else "-",
            found.get("status", "not run")]


def summary_of(item):
    found = list(item.results.values())
    latencies = [workload["latency_us"] for workload in found if workload.get("latency_us")]
    errors = [workload["max_absolute_error"] for workload in found if workload.get("max_absolute_error") is not None]
    ratios = [workload["matched_ratio"] for workload in found if workload.get("matched_ratio") is not None]
    speedups = [workload["speedup"] for workload in found if workload.get("speedup")]
    passed = sum(workload["status"] == "PASSED" for workload in found)
    return [item.submission, item.definition.name, f"{passed}/{len(item.workloads)}", str(len(latencies)),
            number(max(errors, default=None), 4), number(min(ratios, default=None), 4),
            number(min(latencies, default=None)), number(max(latencies, default=None)),
            number(statistics.median(speedups) if speedups else None)]


def report(items, result):
    full = [["submission", "definition", "workload", "abs error", "rel error", "matched", "latency us", "reference us",
             "speed-up", "GB/s", "status"]]
    summary = [["submission", "definition", "passed", "timed", "abs error", "matched", "fastest us", "slowest us",
                "speed-up"]]
    for item in sorted(items, key=lambda item: (item.submission != "reference", item.submission, item.definition.name)):
        summary.append(summary_of(item))
        for uuid in item.workloads:
            full.append(row_of(item, uuid))
            found = item.results.get(uuid)
            status = found["status"] if found else f"not run {item.note}"
            reason = (found or {}).get("reason")
            result.check(status == "PASSED", f"{item.submission} on {item.definition.name}, "
                         f"{axes(item.definition.var_axes(item.workloads[uuid]))}: {status} {shortened(reason, 200)}")
    result.add_table("evaluations", summary)
    result.add_table("every workload", full, compact=False)
    everything = [workload for item in items for workload in item.results.values()]
    passed = sum(workload["status"] == "PASSED" for workload in everything)
    timed = sum(bool(workload.get("latency_us")) for workload in everything)
    compared = sum(workload.get("timed_compared") or 0 for workload in everything)
    result.say(f"{sum(len(item.workloads) for item in items)} workloads of {len(items)} evaluations: {passed} PASSED, "
               f"{timed} timed, {compared} timed runs compared")
    result.data["warnings"] = sorted({warning for workload in everything for warning in workload.get("warnings", [])})


def run(ctx, result):
    items = plan_items(ctx, ctx.folder("references"))
    # Time for the last commands to end, and for the report.
    left = ctx.left() - 8
    started = time.monotonic()
    try:
        with Server(ctx, NAME) as server:
            evaluate_all(ctx, server, items, started + TIMED_SHARE * left, timed=True)
            rest = [item for item in items if item.missing()]
            if rest:
                evaluate_all(ctx, server, rest, started + left, timed=False)
    finally:
        report(items, result)

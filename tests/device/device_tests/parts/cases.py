"""Every row of tests/cases/cases.json, as tests/cases/README.md says how it must end on a GPU."""
import concurrent.futures
import json
import os
import shutil
import sys

from device_tests.context import OutOfTime
from device_tests.report import shortened
from device_tests.server import Server, ToolError

NAME = "cases"
TITLE = "every row of tests/cases/cases.json"
NEEDS_GPU = False
LIMIT_S = 120
WINDOW = 4
HONEST = {"case": "03_fault_then_next_job", "definition": "03_fault_then_next_job",
          "kernel": "03_fault_then_next_job/kernel_ok.cu", "plan": "03_fault_then_next_job/launch.plan",
          "expect": "PASSED"}


def case_path(ctx, relative):
    return ctx.path("tests/cases", relative)


def read(path):
    # A workload file may be no UTF-8; sources and plans are.
    with open(path, encoding="utf-8") as file:
        return file.read()


def solution_of(ctx, row):
    """The row's solution.json; its plan travels as launch_plan lines."""
    kernel = case_path(ctx, row["kernel"])
    if row.get("generator"):
        _, source, _, _ = ctx.command([sys.executable, kernel, *row["generator"][1:]], ctx.within(60))
    else:
        source = read(kernel)
    spec = {"language": "cuda", "options": row.get("options") or [],
            "launch_plan": read(case_path(ctx, row["plan"])).splitlines()}
    return {"name": row["case"], "definition": row["case"], "spec": spec,
            "sources": [{"path": "kernel.cu", "content": source}]}


def definition_folder(ctx, row, folder):
    """A copy with another workload.jsonl where the row names one."""
    original = case_path(ctx, row["definition"])
    if not row.get("workload_file"):
        return original
    copy = os.path.join(folder, "definition")
    shutil.copytree(original, copy, symlinks=True)
    for name in ("workload.jsonl", "solstice.json"):
        os.chmod(os.path.join(copy, name), 0o644)
    shutil.copyfile(case_path(ctx, row["workload_file"]), os.path.join(copy, "workload.jsonl"))
    # Smoke workloads refer to the original's uuids.
    companion = json.loads(read(os.path.join(copy, "solstice.json")))
    ctx.write(copy, "solstice.json", json.dumps({**companion, "smoke_workloads": []}))
    blobs = os.path.join(copy, "blob")
    if os.path.isdir(blobs):
        os.symlink("/etc/hostname", os.path.join(blobs, "link_outside.safetensors"))
    return copy


def evaluate(ctx, server, row):
    folder = ctx.folder("case")
    solution = ctx.write(folder, "solution.json", json.dumps(solution_of(ctx, row)))
    options = []
    if row.get("timeout_s"):
        # Decided by a limit: fifty timed runs of seconds each would say no more.
        options += ["--timeout", str(row["timeout_s"]), "--timer", "none"]
    if row.get("allow_device_state"):
        options.append("--allow-device-state")
    for uuid in row.get("workloads") or []:
        options += ["--workload", uuid]
    if not row.get("workloads"):
        options.append("--quick")
    return server.run(solution, definition_folder(ctx, row, folder), *options, timeout_s=120)


def expected(row, on_gpu):
    """(statuses of which one is right, text that the reason must hold)"""
    status, reason = row["expect"], row.get("expect_reason_contains")
    if on_gpu and "expect_on_device" in row:
        status, reason = row["expect_on_device"], None
    if on_gpu and "expect_reason_on_device" in row:
        reason = row["expect_reason_on_device"]
    return (status if isinstance(status, list) else [status]), reason or ""


def waits_for(row, on_gpu):
    """Why the row means nothing here yet; empty: it does."""
    if row.get("later_issue"):
        return row["later_issue"]
    return "needs a GPU" if row.get("needs_device") and not on_gpu else ""


def judge(row, on_gpu, answer):
    """What is wrong with the answer; empty: nothing."""
    statuses, reason = expected(row, on_gpu)
    if answer.status not in statuses:
        return f"expected {' or '.join(statuses)}, got {answer.status}: {answer.reason}"
    if reason not in answer.reason:
        return f"the reason lacks {reason!r}: {answer.reason}"
    everything = json.dumps(answer.document)
    leaked = [text for text in row.get("log_excludes") or [] if text in everything]
    return f"the answer holds {leaked[0]!r}" if leaked else ""


def label(row):
    parts = [row["kernel"], os.path.basename(row["plan"])] + [f"[{option}]" for option in row.get("options") or []]
    if row.get("workload_file"):
        parts.append(os.path.basename(row["workload_file"]))
    if row.get("allow_device_state"):
        parts.append("allowed")
    return shortened(" ".join(parts), 90)


class Walk:
    def __init__(self, ctx, result):
        self.ctx = ctx
        self.result = result
        self.table = [["row", "outcome", "reason", ""]]
        self.waiting = 0

    def note(self, row, answer, wrong, what=""):
        name = label(row) + what
        self.result.check(not wrong, f"{name}: {wrong}")
        self.table.append([name, answer.status if answer else "none", shortened(answer.reason if answer else wrong),
                           "WRONG" if wrong else "right"])

    def row(self, server, row, what=""):
        try:
            answer = evaluate(self.ctx, server, row)
        except (ToolError, OutOfTime) as error:
            return row, None, f"no answer: {error}", what
        return row, answer, judge(row, self.ctx.gpu, answer), what

    def plain(self, rows):
        with Server(self.ctx, NAME) as server:
            for row in rows:
                if row.get("sequence"):
                    self.note(*self.row(server, row))
            with concurrent.futures.ThreadPoolExecutor(WINDOW) as pool:
                rest = [row for row in rows if not row.get("sequence")]
                for found in pool.map(lambda row: self.row(server, row), rest):
                    self.note(*found)

    def shifted(self, row, shift):
        """The next evaluation on that device is not harmed: scalar accesses are aligned even so."""
        with Server(self.ctx, NAME, ["--debug-pointer-shift-bytes", str(shift)]) as server:
            self.note(*self.row(server, row, f" shifted by {shift}"))
            self.note(*self.row(server, HONEST, f" after it, shifted by {shift}"))


def run(ctx, result):
    rows = json.loads(read(case_path(ctx, "cases.json")))
    walk = Walk(ctx, result)
    plain = []
    for row in rows:
        why = waits_for(row, ctx.gpu)
        if why:
            walk.waiting += 1
            walk.table.append([label(row), "-", why, "waits"])
        elif not row.get("pointer_shift_bytes"):
            plain.append(row)
    try:
        walk.plain(plain)
        ctx.progress(f"cases: {result.checked} rows, {len(result.failures)} wrong; shifted pointers next")
        for row in rows:
            for shift in row.get("pointer_shift_bytes") or []:
                walk.shifted(row, shift)
    finally:
        result.add_table("rows", walk.table, compact=False)
        wrong = [entry for entry in walk.table if entry[-1] in ("WRONG", "waits")]
        if wrong:
            result.add_table("rows that are wrong or wait", [walk.table[0], *wrong])
        result.say(f"{len(walk.table) - 1} rows: {result.checked - len(result.failures)} right, {len(result.failures)} "
                   f"wrong, {walk.waiting} wait")

"""What a hostile kernel can reach: single accesses at many distances, its own guards, a search for the right answer.

A GPU ends a kernel at its first fault, so each access is a submission of its own. The judge's context, with the
expected outputs, lives beside all of them.
"""
import concurrent.futures
import re

from device_tests import catalogue
from device_tests.report import shortened
from device_tests.server import Server

NAME = "isolation"
TITLE = "what a submission can reach"
NEEDS_GPU = False
LIMIT_S = 90
DEFINITION = "rmsnorm_h128"
MIB, GIB = 1 << 20, 1 << 30

# (what, formula of the address, writes too: None, writes only). x, w and y are the mappings of hidden_states, weight
# and output.
PROBES = [
    ("its own output", "y.tensor", False),
    ("its own input", "x.tensor", False),
    ("just past the output's mapping", "y.end()", True),
    ("just before the output's mapping", "y.begin() - 8", True),
    ("just past the input's mapping", "x.end()", True),
    ("just before the input's mapping", "x.begin() - 8", True),
    ("just past the weight's mapping", "w.end()", False),
    ("just before the weight's mapping", "w.begin() - 8", False),
    ("its own input", "x.tensor", None),
    ("halfway between input and output", "x.tensor / 2 + y.tensor / 2", False),
    ("address 0", "0ull", True),
    ("address 64 KiB", "65536ull", False),
    ("address 1 MiB", "1048576ull", False),
    ("address 4 GiB", "4ull << 30", False),
] + [(f"output {sign} {text}", f"y.tensor {sign} {distance}ull", writes)
     for distance, text, writes in [(2 * MIB, "2 MiB", True), (4 * MIB, "4 MiB", False), (32 * MIB, "32 MiB", True),
                                    (256 * MIB, "256 MiB", False), (GIB, "1 GiB", True), (64 * GIB, "64 GiB", False)]
     for sign in "+-"]
GUARDS = [("first guard bytes of the output's mapping", "y.begin()"), ("last guard bytes of it", "y.end() - 8")]


def parse_probe(text):
    """(read or wrote, own, the value's hexadecimal digits) of the probe's first line; None where it printed nothing."""
    found = re.search(r"probe: (read|wrote) own=([01])(?: value=([0-9a-f]+))?", text)
    return (found.group(1), found.group(2) == "1", found.group(3) or "") if found else None


def parse_scans(text):
    """{pass: (reached bytes, in its own output, elsewhere)} of the first run."""
    scans = {}
    for number, *values in re.findall(r"scan (\d): reached=(\d+) own_output=(\d+) elsewhere=(\d+)", text):
        scans.setdefault(int(number), tuple(map(int, values)))
    return scans


def wrong_with_probe(answer, writes):
    """What the outcome of one access shows to be wrong; empty: nothing."""
    if answer.status == "RUNTIME_ERROR":
        return ""
    printed = parse_probe(answer.device_output)
    if answer.status != "PASSED" or printed is None:
        return f"{answer.status}: {answer.reason}"
    if writes:
        return "a write outside its output went unpunished"
    # Every process has unused memory of the driver's own mapped; an answer would not be zero.
    return "" if printed[1] or int(printed[2] or "1", 16) == 0 else "it read memory that is none of its buffers'"


class Prober:
    def __init__(self, ctx, server):
        self.ctx = ctx
        self.server = server
        self.definition = catalogue.definitions(ctx.root)[DEFINITION]
        self.folder = ctx.folder("isolation")
        with open(ctx.path("tests/device/kernels/isolation.h"), encoding="utf-8") as file:
            self.shared = file.read()

    def judge(self, name, file, defines=()):
        with open(self.ctx.path("tests/device/kernels", file), encoding="utf-8") as opened:
            kernel = opened.read()
        head = "".join(f"#define {macro} {value}\n" for macro, value in defines)
        source = self.ctx.write(self.folder, f"{name}.cu", head + self.shared + kernel)
        return self.server.run(source, DEFINITION, "--workload", self.definition.smoke[0], "--no-cache",
                               "--timer", "none")

    def probe(self, number, address, write):
        return self.judge(f"probe_{number}", "probe.cu", [("PROBE_ADDRESS", address), ("PROBE_WRITE", int(write))])


def outcome(answer):
    printed = " ".join(answer.device_output.split()[:8]) if answer.status == "PASSED" else ""
    return f"{answer.status} {printed}".strip()


def probe_all(prober, result, table):
    tries = []
    for what, address, writes in PROBES:
        if writes is not None:
            tries.append((f"read: {what}", address, False))
        if writes is not False:
            tries.append((f"write: {what}", address, True))
    with concurrent.futures.ThreadPoolExecutor(3) as pool:
        answers = pool.map(lambda entry: prober.probe(entry[0], entry[1][1], entry[1][2]), enumerate(tries))
        for (what, _, write), answer in zip(tries, answers):
            wrong = wrong_with_probe(answer, write)
            result.check(not wrong, f"{what}: {wrong}")
            table.append([what, outcome(answer), shortened(answer.reason, 90)])
    # That a read can succeed at all, and is then reported, shows that the rest means something.
    for row in table[1:3]:
        result.check(row[1].startswith("PASSED probe: read own=1"), f"{row[0]}: {row[1]} {row[2]}")


def damage_guards(prober, result, table, on_gpu):
    answers = [(f"write: {what}", prober.probe(f"guard_{i}", address, True))
               for i, (what, address) in enumerate(GUARDS)]
    answers.append(("write: every guard byte around the output", prober.judge("slack", "slack.cu")))
    for what, answer in answers:
        right = answer.status == "RUNTIME_ERROR" and (not on_gpu or "guard" in answer.reason)
        result.check(right, f"{what}: {answer.status}: {answer.reason}")
        table.append([what, outcome(answer), shortened(answer.reason, 90)])


def search(prober, result, table, on_gpu):
    answer = prober.judge("scan", "scan.cu")
    what = "search of all its mappings for the answer"
    if not on_gpu:
        # The emulator faults on guard bytes.
        result.check(answer.status == "RUNTIME_ERROR", f"{what}: {answer.status}: {answer.reason}")
        table.append([what, outcome(answer), shortened(answer.reason, 90)])
        return
    scans = parse_scans(answer.device_output)
    result.check(answer.status == "PASSED", f"{what}: {answer.status}: {answer.reason}")
    result.check(set(scans) == {1, 2}, f"{what}: it printed {answer.device_output!r}")
    for number, when in ((1, "before its output is written"), (2, "after")):
        reached, own, elsewhere = scans.get(number, (0, -1, -1))
        result.check(elsewhere == 0, f"{what}, {when}: {elsewhere} matches outside its own output")
        result.check(own == number - 1, f"{what}, {when}: {own} matches in its own output")
        table.append([f"{what}, {when}",
                      f"reached {reached} bytes: {own} matches in its own output, {elsewhere} elsewhere", ""])


def run(ctx, result):
    table = [["tried", "outcome", "reason"]]
    try:
        with Server(ctx, NAME) as server:
            prober = Prober(ctx, server)
            probe_all(prober, result, table)
            damage_guards(prober, result, table, ctx.gpu)
            search(prober, result, table, ctx.gpu)
            honest = server.run(ctx.path("examples/rmsnorm_fast.cu"), DEFINITION, "--quick", "--no-cache")
            result.check(honest.status == "PASSED",
                         f"an honest kernel after all of it: {honest.status}: {honest.reason}")
    finally:
        result.add_table("tried, and what came of it", table)

"""The emulator on this host: the same examples pass there, and inputs and reference results are the same.

A server never gives out inputs or expected outputs, so their equality is checked by a program of its own,
tests/device/bin/agreement, where the bundle has it.
"""
import os

from device_tests import catalogue
from device_tests.report import axes, number
from device_tests.server import Server

NAME = "emulator"
TITLE = "the same on the emulator"
NEEDS_GPU = True
LIMIT_S = 90
EXAMPLES = [("examples/rmsnorm_fast.cu", "rmsnorm_h2048"), ("examples/fused_add_rmsnorm.cu", "fused_add_rmsnorm_h2048")]


def compare(ctx, result, gpu_server, emulator_server, table):
    known = catalogue.definitions(ctx.root)
    for path, name in EXAMPLES:
        options = [option for uuid in known[name].smoke for option in ("--workload", uuid)]
        answers = [server.run(ctx.path(path), name, "--no-cache", *options) for server in (gpu_server, emulator_server)]
        kinds = [(answer.document.get("device") or {}).get("kind") for answer in answers]
        result.check(kinds == ["cuda", "emulator"], f"{path} ran on {kinds}")
        for answer in answers:
            result.check(answer.status == "PASSED", f"{path}: {answer.status}: {answer.reason}")
        for on_gpu, emulated in zip(*[answer.workloads for answer in answers]):
            table.append([os.path.basename(path), axes(emulated["axes"]), on_gpu["status"], emulated["status"],
                          number(on_gpu["max_absolute_error"], 4), number(emulated["max_absolute_error"], 4)])


def agreement(ctx, result):
    program = ctx.path("tests/device/bin/agreement")
    if not os.access(program, os.X_OK):
        result.say("inputs and references were not compared: there is no tests/device/bin/agreement")
        return
    code, out, errors, wall_s = ctx.command([program], ctx.within(60), cwd=ctx.root)
    result.check(code == 0, f"agreement ended with {code}: {out[-600:]} {errors[-600:]}")
    result.lines += [f"agreement, {wall_s:.1f} s:", *out.rstrip().splitlines()[-60:]]


def run(ctx, result):
    table = [["example", "workload", "GPU", "emulator", "abs error GPU", "abs error emulator"]]
    with Server(ctx, NAME) as gpu_server, Server(ctx, NAME, device="emulator") as emulator_server:
        compare(ctx, result, gpu_server, emulator_server, table)
    result.add_table("smoke workloads", table)
    agreement(ctx, result)

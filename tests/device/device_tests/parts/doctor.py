"""What this installation has, in words and as JSON."""
import os

from device_tests.server import Server

NAME = "doctor"
TITLE = "what the host has"
NEEDS_GPU = False
LIMIT_S = 40


def run(ctx, result):
    with Server(ctx, NAME) as server:
        code, text, errors, _ = ctx.command([ctx.program("solstice"), "--server", server.address, "doctor"],
                                            ctx.within(30))
        answer = server.call("doctor", timeout_s=30)
    with open(os.path.join(ctx.out, "doctor.txt"), "w", encoding="utf-8") as file:
        file.write(text + errors)
    result.data = answer.document
    result.check(code == 0 and answer.code == 0, f"exit codes {code} and {answer.code}: {errors}")
    kinds = [device["kind"] for device in answer.document.get("devices", [])]
    result.check(("cuda" if ctx.gpu else "emulator") in kinds, f"devices are {kinds}")
    result.lines += text.rstrip().splitlines()

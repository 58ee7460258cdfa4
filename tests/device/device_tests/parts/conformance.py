"""What this GPU answers, instruction by instruction, and whether the emulator answers the same (tests/conformance).

The answers go to the results: as tests/conformance/answers/NAME.bin they are what every later build of the emulator is
checked against.
"""
import os

NAME = "conformance"
TITLE = "the emulator against this GPU, instruction by instruction"
NEEDS_GPU = True
LIMIT_S = 180
FUZZ_S = 60


def program_of(ctx):
    """In a bundle beside `agreement`; in a build tree among the programs. None: there is none."""
    for path in (ctx.path("tests/device/bin/conformance"), ctx.program("solstice-conformance")):
        if os.access(path, os.X_OK):
            return path
    return None


def tail(text, lines):
    return text.rstrip().splitlines()[-lines:]


def run(ctx, result):
    program = program_of(ctx)
    if program is None:
        result.skipped = "there is no tests/device/bin/conformance"
        return
    gpu = ctx.device if ctx.device.startswith("cuda:") else "cuda:0"
    answers, details = (os.path.join(ctx.out, name) for name in ("conformance.bin", "conformance.json"))
    code, out, errors, wall_s = ctx.command([program, "--device", gpu, "--record", answers], ctx.within(60))
    result.check(code == 0, f"recording ended with {code}: {out[-400:]} {errors[-600:]}")
    result.lines += [f"recorded in {wall_s:.1f} s:", *tail(out, 40)]
    if code != 0:
        return
    # The GPU says the same twice; then the emulator against it. Differences are listed, the first ones with operands.
    code, out, errors, _ = ctx.command([program, "--device", gpu, "--check", answers], ctx.within(60))
    result.check(code == 0, f"the GPU does not repeat its answers: {code}: {out[-600:]} {errors[-400:]}")
    code, out, errors, wall_s = ctx.command(
        [program, "--device", "emulator", "--check", answers, "--json", details], ctx.within(60))
    result.check(code == 0, f"the emulator answers otherwise: {code}: {errors[-400:]}")
    result.lines += [f"the emulator against them, {wall_s:.1f} s:", *tail(out, 120)]
    seconds = max(1, min(FUZZ_S, int(ctx.left() - 15)))
    code, out, errors, _ = ctx.command([program, "--device", gpu, "--fuzz", str(seconds), "--seed", "1"],
                                       ctx.within(seconds + 30))
    result.check(code == 0, f"random kernels: {code}: {errors[-600:]}")
    result.lines += [f"random kernels for {seconds} s:", *tail(out, 60)]

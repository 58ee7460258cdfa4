"""The command line: which parts, how long, where to."""
import argparse
import json
import os
import signal
import sys
import time
import traceback

from device_tests import context, parts
from device_tests.context import Context, OutOfTime
from device_tests.report import Result
from device_tests.server import ToolError

MAX_FILE_BYTES = 16 << 20


def parse(argv):
    names = [part.NAME for part in parts.ALL]
    parser = argparse.ArgumentParser(prog="tests/device/run.sh", description="Parts: " + ", ".join(names))
    parser.add_argument("--out", default=os.environ.get("OUT", "device_results"), help="folder of results ($OUT)")
    parser.add_argument("--only", default="", help="these parts, separated by commas")
    parser.add_argument("--skip", default="", help="not these")
    parser.add_argument("--device", default="auto", help="cuda, cuda:N or emulator (default: a GPU, if any)")
    parser.add_argument("--total", type=float, default=420, metavar="SECONDS", help="limit for all parts (%(default)s)")
    parser.add_argument("--limit", action="append", default=[], metavar="PART=SECONDS", help="another limit for a part")
    parser.add_argument("--definitions", default="*", help="part evaluate: these definitions, patterns with commas")
    parser.add_argument("--submissions", default="*",
                        help="part evaluate: `reference` and files of examples, patterns with commas")
    arguments = parser.parse_args(argv)
    arguments.limits = {}
    for entry in arguments.limit:
        name, _, seconds = entry.partition("=")
        try:
            arguments.limits[name] = float(seconds)
        except ValueError:
            parser.error(f"--limit {entry}: PART=SECONDS is needed")
    only, skip = [[name for name in text.split(",") if name] for text in (arguments.only, arguments.skip)]
    unknown = [name for name in [*only, *skip, *arguments.limits] if name not in names]
    if unknown:
        parser.error(f"unknown part {unknown[0]}; there are {', '.join(names)}")
    arguments.chosen = [part for part in parts.ALL if (not only or part.NAME in only) and part.NAME not in skip]
    return arguments


def run_part(ctx, part, limit_s):
    result = Result(part.NAME)
    started = time.monotonic()
    limit_s = min(limit_s, ctx.deadline - started)
    ctx.part_deadline = started + limit_s
    if part.NEEDS_GPU and not ctx.gpu:
        result.skipped = "no GPU"
        return result
    if ctx.left() < 1:
        result.fail("not run: the time for everything was used up")
        return result
    ctx.progress(f"{part.NAME}: {part.TITLE}")
    try:
        part.run(ctx, result)
    except OutOfTime as late:
        result.fail(f"not finished within {limit_s:.0f} s: {late}")
    except ToolError as error:
        result.fail(str(error))
    except Exception:  # a mistake of this script fails its part and no other
        result.fail(traceback.format_exc(limit=-4))
    result.seconds = time.monotonic() - started
    ctx.progress(f"{part.NAME}: {result.status} after {result.seconds:.1f} s")
    return result


def write_results(ctx, results):
    full = "\n\n".join(result.text(full=True) for result in results) + "\n"
    document = {"device": ctx.device, "seconds": round(ctx.elapsed(), 1),
                "parts": [result.json() for result in results]}
    for name, text in [("tables.txt", full), ("results.json", json.dumps(document, indent=1, default=str))]:
        with open(os.path.join(ctx.out, name), "w", encoding="utf-8") as file:
            file.write(text[:MAX_FILE_BYTES])


def main(argv):
    arguments = parse(argv)
    ctx = Context(arguments.out, arguments.device, arguments.total, arguments)
    # What was started ends with this program, however it ends.
    for signal_number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(signal_number, lambda *_: sys.exit(130))
    results = []
    try:
        ctx.progress(f"on {ctx.device}, programs in {ctx.programs}")
        for part in arguments.chosen:
            results.append(run_part(ctx, part, arguments.limits.get(part.NAME, part.LIMIT_S)))
            write_results(ctx, results)
        for result in results:
            ctx.log("\n" + result.text())
        counts = {status: sum(result.status == status for result in results)
                  for status in ("right", "FAILED", "skipped")}
        ctx.log(f"\n{counts['right']} parts right, {counts['FAILED']} failed, {counts['skipped']} skipped; "
                f"{ctx.elapsed():.0f} s; all tables and JSON in {ctx.out}")
        return 0 if counts["FAILED"] == 0 and counts["right"] > 0 else 1
    finally:
        ctx.close()


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except BrokenPipeError:
        context.warn("nobody reads the output")
        sys.exit(1)

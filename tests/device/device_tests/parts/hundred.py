"""A hundred submissions handed in at once, one of them faulty: exactly that one fails."""
import concurrent.futures
import random
import time

from device_tests import catalogue, submissions
from device_tests.server import Server

NAME = "hundred"
TITLE = "one faulty submission among a hundred"
NEEDS_GPU = False
LIMIT_S = 90
CLIENTS = 16
DEFINITION = "rmsnorm_h2048"
FAULTY = "wrong_result.cu"


def sources(ctx, definition, count):
    """Paths of `count` submissions, and the index of the faulty one."""
    folder = ctx.folder("hundred")
    honest = submissions.reference_submission(ctx.root, definition)
    with open(ctx.path("examples/faulty", FAULTY), encoding="utf-8") as file:
        faulty = file.read()
    wrong = random.randrange(count)
    texts = [faulty if i == wrong else submissions.variant(honest, i) for i in range(count)]
    return [ctx.write(folder, f"submission_{i}.cu", text) for i, text in enumerate(texts)], wrong


def run(ctx, result):
    count = 100 if ctx.gpu else 12
    definition = catalogue.definitions(ctx.root)[DEFINITION]
    paths, wrong = sources(ctx, definition, count)
    workload = definition.smoke[1]
    with Server(ctx, NAME) as server, concurrent.futures.ThreadPoolExecutor(CLIENTS) as pool:
        started = time.monotonic()
        handed_in = list(pool.map(lambda path: server.call("submit", path, "-d", DEFINITION, "--workload", workload,
                                                           "--no-cache"), paths))
        submitted_s = time.monotonic() - started
        refused = [answer.error for answer in handed_in if answer.error]
        result.check(not refused, f"{len(refused)} were refused, the first with {refused[:1]}")
        if refused:
            return
        answers = list(pool.map(lambda answer: server.call("watch", answer.document["evaluation_id"]), handed_in))
        wall_s = time.monotonic() - started
    failed = [i for i, answer in enumerate(answers) if answer.status != "PASSED"]
    result.check(failed == [wrong], f"expected submission {wrong} alone to fail, got "
                 + ", ".join(f"{i}: {answers[i].status} {answers[i].reason}" for i in failed[:5]))
    result.check(answers[wrong].status == "INCORRECT_NUMERICAL", f"the faulty one ended as {answers[wrong].status}")
    result.check(len({answer.document["solution_digest"] for answer in answers}) == count, "submissions are alike")
    result.say(f"{count} submissions: handed in after {submitted_s:.1f} s, all judged after {wall_s:.1f} s, "
               f"{count / wall_s:.1f} a second; failed: {failed}, the faulty one: {wrong} "
               f"({answers[wrong].status}: {answers[wrong].reason[:120]})")
    result.data = {"count": count, "wall_s": wall_s, "failed": failed, "faulty": wrong}

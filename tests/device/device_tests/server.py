"""A solsticed on a unix socket with a data folder of its own, and the command line against it."""
import json
import os
import select
import signal
import subprocess
import time

from device_tests.context import OutOfTime


class ToolError(Exception):
    """A program of ours did not answer as it always should."""


class Answer:
    def __init__(self, document, code, wall_s):
        self.document = document
        self.code = code
        self.wall_s = wall_s

    @property
    def error(self):
        return self.document.get("error") or {}

    @property
    def workloads(self):
        return self.document.get("workloads") or []

    @property
    def status(self):
        """The verdict, or the code of the error that refused the request or ended it."""
        return self.document.get("verdict") or self.error.get("code") or self.document.get("state")

    @property
    def reason(self):
        """Of the first workload that ended as the whole did, or of the error."""
        if self.error:
            return self.error.get("reason") or ""
        for workload in self.workloads:
            if workload["status"] == self.status and workload.get("reason"):
                return workload["reason"]
        return self.document.get("reason") or ""

    @property
    def device_output(self):
        return "".join(workload.get("device_output") or "" for workload in self.workloads)


def client(ctx, arguments, timeout_s, part=None):
    """`solstice --json ARGUMENTS`. ToolError if it prints no JSON object, OutOfTime if it does not end."""
    argv = [ctx.program("solstice"), "--json", *arguments]
    environment = {name: value for name, value in os.environ.items()
                   if name not in ("SOLSTICE_SERVER", "SOLSTICE_DATA_DIR")}
    code, out, err, wall_s = ctx.command(argv, ctx.within(timeout_s), env=environment)
    if code is None:
        raise OutOfTime(f"solstice {' '.join(arguments[:6])} did not end")
    try:
        document = json.loads(out)
    except ValueError:
        raise ToolError(f"solstice {' '.join(arguments)}: exit code {code}, no JSON: {out[:300]} {err[:600]}") from None
    if part and "workloads" in document:
        ctx.keep(part, document)
    return Answer(document, code, wall_s)


class Server:
    """Use in a `with`: it has started and answers, and has ended afterwards."""

    def __init__(self, ctx, part, flags=(), device=None):
        self.ctx = ctx
        self.part = part
        self.flags = list(flags)
        self.device = device or ctx.device
        self.folder = ctx.folder(f"server_{part}")
        self.address = "unix:" + os.path.join(self.folder, "s")
        self.log_path = os.path.join(self.folder, "server.log")
        self.process = None
        self.exit_code = None

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.stop()

    def start(self, timeout_s=60):
        ready_read, ready_write = os.pipe()
        argv = [self.ctx.program("solsticed"), "--listen", self.address,
                "--data-dir", os.path.join(self.folder, "data"),
                "--definition-root", self.ctx.path("definitions"),
                "--reference-kernels", self.ctx.path("reference_kernels"), "--accept-inline-definitions",
                "--device", self.device, "--ready-fd", str(ready_write), *self.flags]
        with open(self.log_path, "w", encoding="utf-8") as log:
            self.process = self.ctx.popen(argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                          pass_fds=[ready_write])
        os.close(ready_write)
        try:
            ready, _, _ = select.select([ready_read], [], [], self.ctx.within(timeout_s))
            line = os.read(ready_read, 200) if ready else b""
        finally:
            os.close(ready_read)
        if not line.startswith(b"ready"):
            self.stop()
            raise ToolError("solsticed did not start: " + self.log()[-1500:])

    def stop(self):
        if self.process is None:
            return
        if self.process.poll() is None:
            # The server alone: it ends its workers itself.
            self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.ctx.kill(self.process)
            self.process.wait()
        self.exit_code = self.process.returncode
        self.ctx.forget(self.process)
        self.process = None
        self.ctx.keep_server_log(f"{self.part} {self.device} {' '.join(self.flags)}", self.log_path)

    def log(self):
        with open(self.log_path, encoding="utf-8", errors="replace") as file:
            return file.read()

    def call(self, *arguments, timeout_s=120, keep=True):
        return client(self.ctx, ["--server", self.address, *arguments], timeout_s, self.part if keep else None)

    def run(self, source, definition, *options, timeout_s=120):
        return self.call("run", source, "-d", definition, *options, timeout_s=timeout_s)

    def follow(self, source, definition, *options, until):
        """Submits and follows, until `until` (time.monotonic); then cancels and returns what there is."""
        submitted = self.call("submit", source, "-d", definition, *options, timeout_s=60)
        identifier = submitted.document.get("evaluation_id")
        if identifier is None:
            return submitted
        try:
            return self.call("watch", identifier, timeout_s=max(0.1, until - time.monotonic()))
        except OutOfTime:
            self.call("cancel", identifier, timeout_s=30, keep=False)
            return self.call("show", identifier, timeout_s=30)

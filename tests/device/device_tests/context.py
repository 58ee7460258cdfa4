"""Where things are, what was started, how much time is left, and where results go."""
import gzip
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

from device_tests import gpu

SERVER_LOG_BYTES = 4 << 20
EVALUATIONS_BYTES = 96 << 20
# Flat and few; whatever an earlier run left under these names goes.
RESULT_FILES = ["log.txt", "tables.txt", "results.json", "evaluations.jsonl.gz", "servers.log", "doctor.txt", "ncu.txt",
                "conformance.bin", "conformance.json"]


class OutOfTime(Exception):
    """A part's time limit is over."""


def find_root():
    return os.path.realpath(os.path.join(os.path.dirname(__file__), "..", "..", ".."))


def find_programs(root):
    """Of an unpacked bundle, else of a build tree; $SOLSTICE_BIN before both."""
    named = os.environ.get("SOLSTICE_BIN")
    for folder in [named] if named else [os.path.join(root, "bin"), os.path.join(root, "build/release/bin")]:
        if os.path.exists(os.path.join(folder, "solsticed")):
            return os.path.realpath(folder)
    raise SystemExit("device tests: no programs found: unpack a bundle, build build/release, or set SOLSTICE_BIN")


class Context:
    """Thread-safe where parts use threads: `popen`, `kill`, `keep`, `log`."""

    def __init__(self, out, device, total_s, evaluate):
        self.root = find_root()
        self.programs = find_programs(self.root)
        self.device = device if device != "auto" else ("cuda" if gpu.present() else "emulator")
        self.gpu = self.device != "emulator"
        self.evaluate = evaluate
        self.out = out
        os.makedirs(out, exist_ok=True)
        for name in RESULT_FILES:
            if os.path.exists(os.path.join(out, name)):
                os.remove(os.path.join(out, name))
        self.work = tempfile.mkdtemp(prefix="solstice_device_")
        self.started = time.monotonic()
        self.deadline = self.started + total_s
        self.part_deadline = self.deadline
        self._lock = threading.Lock()
        self._children = {}
        self._log = open(os.path.join(out, "log.txt"), "w", encoding="utf-8")
        self._evaluations = gzip.open(os.path.join(out, "evaluations.jsonl.gz"), "wt", encoding="utf-8")
        self._evaluations_bytes = 0
        self._server_log_bytes = 0
        self._names = 0

    # ---- Paths -------------------------------------------------------------------------------------------------------

    def path(self, *parts):
        return os.path.join(self.root, *parts)

    def program(self, name):
        return os.path.join(self.programs, name)

    def folder(self, name):
        with self._lock:
            self._names += 1
            path = os.path.join(self.work, f"{self._names}_{name}")
        os.makedirs(path)
        return path

    def write(self, folder, name, text):
        path = os.path.join(folder, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path

    # ---- Time --------------------------------------------------------------------------------------------------------

    def elapsed(self):
        return time.monotonic() - self.started

    def left(self):
        return self.part_deadline - time.monotonic()

    def within(self, wanted_s):
        """A limit for one command, no longer than what the part has left."""
        left = self.left()
        if left <= 0:
            raise OutOfTime("its time is used up")
        return min(wanted_s, left)

    # ---- What is written ---------------------------------------------------------------------------------------------

    def log(self, text):
        with self._lock:
            print(text, flush=True)
            self._log.write(text + "\n")
            self._log.flush()

    def progress(self, text):
        self.log(f"[{self.elapsed():6.1f} s] {text}")

    def keep(self, part, document):
        """An evaluation as the client printed it."""
        line = json.dumps({"part": part, "evaluation": document}) + "\n"
        with self._lock:
            self._evaluations_bytes += len(line)
            if self._evaluations_bytes < EVALUATIONS_BYTES:
                self._evaluations.write(line)

    def keep_server_log(self, name, path):
        try:
            with open(path, encoding="utf-8", errors="replace") as file:
                text = f"==== {name} ====\n{file.read()}\n"
        except OSError:
            return
        with self._lock:
            text = text[: max(0, SERVER_LOG_BYTES - self._server_log_bytes)]
            self._server_log_bytes += len(text)
            with open(os.path.join(self.out, "servers.log"), "a", encoding="utf-8") as file:
                file.write(text)

    # ---- Processes ---------------------------------------------------------------------------------------------------

    def popen(self, argv, **options):
        """In a process group of its own, ended at the latest by close()."""
        child = subprocess.Popen(argv, start_new_session=True, **options)
        with self._lock:
            self._children[child.pid] = child
        return child

    def forget(self, child):
        with self._lock:
            self._children.pop(child.pid, None)

    def kill(self, child, how=signal.SIGKILL):
        # Not reaped yet, so the pid is still this child's and the group's.
        if child.poll() is None:
            try:
                os.killpg(child.pid, how)
            except ProcessLookupError:
                pass

    def command(self, argv, timeout_s, **options):
        """(exit code, stdout, stderr, wall seconds); exit code None where it had to be killed."""
        started = time.monotonic()
        child = self.popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                           errors="replace", **options)
        try:
            out, err = child.communicate(timeout=timeout_s)
            code = child.returncode
        except subprocess.TimeoutExpired:
            self.kill(child)
            out, err = child.communicate()
            code = None
        finally:
            self.forget(child)
        return code, out, err, time.monotonic() - started

    def close(self):
        with self._lock:
            children = list(self._children.values())
        for child in children:
            self.kill(child, signal.SIGTERM)
        deadline = time.monotonic() + 10
        for child in children:
            try:
                child.wait(max(0.1, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                self.kill(child)
                child.wait()
        self._evaluations.close()
        self._log.close()
        shutil.rmtree(self.work, ignore_errors=True)


def warn(text):
    print(f"device tests: {text}", file=sys.stderr)

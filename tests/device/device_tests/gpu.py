"""What nvidia-smi says: is there a GPU, how much of its memory is used, and by which processes."""
import shutil
import subprocess
import time


def _query(arguments):
    program = shutil.which("nvidia-smi")
    if program is None:
        return None
    try:
        done = subprocess.run([program, *arguments, "--format=csv,noheader,nounits"], capture_output=True, text=True,
                              timeout=20, check=False)
    except subprocess.TimeoutExpired:
        return None
    return done.stdout if done.returncode == 0 else None


def present():
    return bool((_query(["--query-gpu=name"]) or "").strip())


def parse_memory(text):
    """MiB of each GPU."""
    return [int(line) for line in text.split() if line.isdigit()]


def parse_processes(text):
    """(pid, MiB) of each compute process, sorted; MiB is None where the driver does not tell."""
    found = []
    for line in text.splitlines():
        fields = [field.strip() for field in line.split(",")]
        if len(fields) == 2 and fields[0].isdigit():
            found.append((int(fields[0]), int(fields[1]) if fields[1].isdigit() else None))
    return sorted(found, key=lambda entry: entry[0])


def snapshot():
    """None where there is no GPU to ask."""
    memory = _query(["--query-gpu=memory.used"])
    processes = _query(["--query-compute-apps=pid,used_memory"])
    if memory is None or processes is None:
        return None
    return {"memory_mib": parse_memory(memory), "processes": parse_processes(processes)}


def usage(seen):
    """One that does not depend on pids: a runner that ended is followed by another."""
    return (seen["memory_mib"], len(seen["processes"])) if seen else None


def wait_until(same, timeout_s=6.0):
    """Snapshots until `same` holds for one; the last one otherwise. A driver frees a process's memory a little after
    its end."""
    deadline = time.monotonic() + timeout_s
    while True:
        seen = snapshot()
        if seen is None or same(seen) or time.monotonic() > deadline:
            return seen
        time.sleep(0.2)


def settled(hold_s=0.8, timeout_s=8.0):
    """A snapshot that stayed the same for a while: of a server that has nothing to do."""
    deadline = time.monotonic() + timeout_s
    seen, since = snapshot(), time.monotonic()
    while seen is not None and time.monotonic() < deadline and time.monotonic() - since < hold_s:
        time.sleep(0.2)
        now = snapshot()
        if usage(now) != usage(seen):
            since = time.monotonic()
        seen = now
    return seen

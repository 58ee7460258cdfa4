"""Definitions, their workloads, and which example is for which: read from the files that everyone reads."""
import fnmatch
import glob
import json
import os
import re

DTYPE_BYTES = {"float64": 8, "int64": 8, "float32": 4, "int32": 4, "float16": 2, "bfloat16": 2, "int16": 2}


class Definition:
    def __init__(self, folder):
        with open(os.path.join(folder, "definition.json"), encoding="utf-8") as file:
            self.document = json.load(file)
        with open(os.path.join(folder, "solstice.json"), encoding="utf-8") as file:
            self.companion = json.load(file)
        with open(os.path.join(folder, "workload.jsonl"), encoding="utf-8") as file:
            self.workloads = [json.loads(line) for line in file if line.strip()]
        self.folder = folder
        self.name = self.document["name"]

    @property
    def family(self):
        return self.companion["reference"]["family"]

    @property
    def smoke(self):
        """Uuids."""
        return [entry if isinstance(entry, str) else entry["uuid"] for entry in self.companion["smoke_workloads"]]

    def axes(self, workload):
        values = {name: axis["value"] for name, axis in self.document["axes"].items() if axis["type"] == "const"}
        values.update(workload["axes"])
        return values

    def var_axes(self, workload):
        return {name: workload["axes"][name] for name, axis in self.document["axes"].items() if axis["type"] == "var"}

    def bytes(self, workload):
        """Of inputs and outputs, once each."""
        axes = self.axes(workload)
        total = 0
        for tensor in [*self.document["inputs"].values(), *self.document["outputs"].values()]:
            elements = 1
            for dimension in tensor["shape"] or []:
                elements *= axes[dimension] if isinstance(dimension, str) else dimension
            total += elements * DTYPE_BYTES[tensor["dtype"]]
        return total

    def multiplications(self, workload):
        """What the work grows with where memory is not what it waits for; 0 for the norms."""
        axes = self.axes(workload)
        return axes["M"] * axes["N"] * axes["K"] if self.family == "gemm" else 0

    def largest(self, axis):
        """The workload with the largest value of `axis`."""
        return max(self.workloads, key=lambda workload: workload["axes"][axis])

    def smallest(self, axis):
        return min(self.workloads, key=lambda workload: workload["axes"][axis])


def definitions(root):
    """By name."""
    folders = sorted(os.path.dirname(path) for path in glob.glob(os.path.join(root, "definitions/*/*/definition.json")))
    found = {}
    for folder in folders:
        definition = Definition(folder)
        found[definition.name] = definition
    return found


class Example:
    def __init__(self, file, patterns, emulator):
        self.file = file
        self.patterns = patterns
        self.emulator = emulator

    def definitions(self, names):
        return [name for name in names if any(fnmatch.fnmatchcase(name, pattern) for pattern in self.patterns)]


def parse_examples(readme):
    """The table of examples/README.md. A name that starts with "_" shares the start of the one before it."""
    examples = []
    for line in readme.splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if not line.startswith("| `") or len(cells) != 4:
            continue
        patterns = []
        for name in re.findall(r"`([^`]+)`", cells[1]):
            patterns.append(patterns[-1].rsplit("_h", 1)[0] + name if name.startswith("_") else name)
        examples.append(Example(cells[0].strip("`"), patterns, cells[3] == "yes"))
    return examples


def examples(root):
    with open(os.path.join(root, "examples/README.md"), encoding="utf-8") as file:
        return parse_examples(file.read())

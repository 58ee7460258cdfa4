#!/usr/bin/env python3
"""Writes definitions/flashinfer-bench/<name>/{definition.json,workload.jsonl,solstice.json}: three families of problems
that differ only in their sizes. Run it from anywhere after changing a table below; its output is committed."""
import json
import pathlib
import uuid

ROOT = pathlib.Path(__file__).resolve().parent / "flashinfer-bench"
NAMESPACE = uuid.uuid5(uuid.NAMESPACE_DNS, "definitions.solstice")

NORM = '''import torch


@torch.no_grad()
def run({arguments}):
    """Divide every row by its root mean square and scale it by the weight, all in float32."""
    rows = {rows}
    mean_square = rows.square().mean(dim=-1, keepdim=True)
    normalised = rows / torch.sqrt(mean_square + {epsilon})
    return (normalised * weight.float()).to(torch.bfloat16)
'''
GEMM = '''import torch


@torch.no_grad()
def run(A, B):
    """A times the transpose of B: sums in float32, rounded once to float16."""
    return (A.float() @ B.float().T).to(torch.float16)
'''

# hidden size -> (epsilon, batch sizes, batch sizes of the smoke workloads)
DECODE = [1, 7, 18, 32, 64, 539, 11949, 14521]
H2048 = [1, 6, 34, 64, 79, 12383, 16254]
H4096 = [1, 7, 15, 16, 34, 63, 64, 79, 170, 8804, 10827, 11832, 14418, 14509]
FUSED_ADD = {2048: (1e-6, H2048, [1, 6, 34]), 4096: (1e-5, H4096, [1, 7, 34]), 7168: (1e-6, DECODE, [1, 7, 32])}
PLAIN = {
    128: (1e-6, [4, 24, 32, 136, 192, 256, 316, 1088, 2048, 2528, 49532, 65016, 396256, 520128], [4, 24, 192]),
    512: (1e-6, DECODE, [1, 7, 32]),
    1536: (1e-6, DECODE, [1, 7, 32]),
    2048: (1e-6, H2048, [1, 6, 34]),
    4096: (1e-5, H4096, [1, 7, 34]),
    7168: (1e-6, DECODE, [1, 7, 32]),
}

# (N, K) -> (M of the workloads, M of the smoke workloads: N * K products each, so few for the large ones)
MIXED = [1, 2, 4, 5, 6, 8, 16, 17, 25, 32, 34, 63, 64, 93, 128, 172, 289, 492, 952, 8828, 11006, 12251, 12853, 14915, 16294]
STEPS = [1, 2, 4, 7, 8, 15, 16] + list(range(24, 257, 8)) + [35, 70, 972, 2053, 2379, 8192]
PRODUCTS = {
    (128, 2048): (MIXED, [1, 6, 34]),
    (256, 7168): ([1, 4, 14, 15, 16, 32, 53, 54, 55, 56, 57, 58, 63, 80, 901, 11948, 14104], [1, 4]),
    (2048, 4096): (MIXED + [15, 969, 11938, 15813], [1, 2]),
    (4096, 4096): (STEPS, [1, 2]),
    (4096, 14336): (STEPS, [1]),
    (5120, 2048): (MIXED, [1, 2]),
    (6144, 4096): (STEPS, [1, 2]),
    (28672, 4096): (STEPS, [1]),
}


def dump(value):
    return json.dumps(value, indent=2) + "\n"


def tensor(shape, dtype, description):
    return {"shape": shape, "dtype": dtype, "description": description}


def write(name, definition, axis, values, smoke, family, parameters):
    folder = ROOT / name
    folder.mkdir(parents=True, exist_ok=True)

    def identity(value):
        return str(uuid.uuid5(NAMESPACE, f"{name}/{axis}={value}"))

    lines = []
    for value in sorted(values):
        inputs = {key: {"type": "random"} for key in definition["inputs"]}
        lines.append(json.dumps({"uuid": identity(value), "axes": {axis: value}, "inputs": inputs}) + "\n")
    companion = {"version": 1, "reference": {"family": family}}
    if parameters:
        companion["parameters"] = parameters
    companion["smoke_workloads"] = [identity(value) for value in smoke]
    (folder / "definition.json").write_text(dump({"name": name, **definition}))
    (folder / "workload.jsonl").write_text("".join(lines))
    (folder / "solstice.json").write_text(dump(companion))


def write_norm(hidden, fused, epsilon, batches, smoke):
    name = f"{'fused_add_' if fused else ''}rmsnorm_h{hidden}"
    rows = ["batch_size", "hidden_size"]
    inputs = {"hidden_states": tensor(rows, "bfloat16", "Activations, one row a token.")}
    if fused:
        inputs["residual"] = tensor(rows, "bfloat16", "Added to the activations before they are normalised.")
    inputs["weight"] = tensor(["hidden_size"], "bfloat16", "Scale of every column.")
    summed = "hidden_states.float() + residual.float()" if fused else "hidden_states.float()"
    definition = {
        "op_type": "fused_add_rmsnorm" if fused else "rmsnorm",
        "description": ("Residual addition followed by root-mean-square normalisation" if fused
                        else "Root-mean-square normalisation") + f" of rows of {hidden}, epsilon {epsilon:g}.",
        "axes": {
            "batch_size": {"type": "var", "description": "Number of rows."},
            "hidden_size": {"type": "const", "value": hidden, "description": "Length of a row."},
        },
        "inputs": inputs,
        "outputs": {"output": tensor(rows, "bfloat16", "The normalised, scaled rows.")},
        "reference": NORM.format(arguments=", ".join(inputs), rows=summed, epsilon=f"{epsilon:g}"),
    }
    family = "fused_add_rmsnorm" if fused else "rmsnorm"
    write(name, definition, "batch_size", batches, smoke, family, {"epsilon": epsilon})


def write_gemm(n, k, values, smoke):
    definition = {
        "op_type": "gemm",
        "description": f"Matrix product C = A B^T in half precision with {n} columns and sums over {k}.",
        "axes": {
            "M": {"type": "var", "description": "Rows of A and C."},
            "N": {"type": "const", "value": n, "description": "Rows of B, columns of C."},
            "K": {"type": "const", "value": k, "description": "Length of the sums."},
        },
        "inputs": {
            "A": tensor(["M", "K"], "float16", "Left factor, row-major."),
            "B": tensor(["N", "K"], "float16", "Right factor, row-major, used transposed."),
        },
        "outputs": {"C": tensor(["M", "N"], "float16", "The product, row-major.")},
        "reference": GEMM,
    }
    write(f"gemm_n{n}_k{k}", definition, "M", values, smoke, "gemm", {})


if __name__ == "__main__":
    for size, (epsilon, batches, smoke) in FUSED_ADD.items():
        write_norm(size, True, epsilon, batches, smoke)
    for size, (epsilon, batches, smoke) in PLAIN.items():
        write_norm(size, False, epsilon, batches, smoke)
    for (columns, depth), (values, smoke) in PRODUCTS.items():
        write_gemm(columns, depth, values, smoke)

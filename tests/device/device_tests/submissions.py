"""Submissions made of other files: a reference as a submission, variants of a kernel."""
import os
import re

PLAN = "//@"


def formula(value):
    """A number as a launch plan writes it: integers and floats stay what they are."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ValueError(f"{value!r} is no number")
    return repr(value)


def from_reference(source, parameters):
    """A reference's source as a submission. `parameters` of a definition's companion are names that only references
    have, so they become lets, above the plan."""
    lines = source.splitlines()
    first = next((i for i, line in enumerate(lines) if line.lstrip().startswith(PLAN)), None)
    if first is None:
        raise ValueError("the reference has no launch plan")
    lets = [f"{PLAN} let {name} = {formula(value)}" for name, value in parameters.items()]
    return "\n".join(lines[:first] + lets + lines[first:]) + "\n"


def reference_submission(root, definition):
    path = os.path.join(root, "reference_kernels", definition.family, "kernel.cu")
    with open(path, encoding="utf-8") as file:
        return from_reference(file.read(), definition.companion.get("parameters", {}))


def with_plan(source, plan):
    """The source with other plan lines (given without //@)."""
    rest = [line for line in source.splitlines() if not line.lstrip().startswith(PLAN)]
    return "\n".join([f"{PLAN} {line}" for line in plan] + rest) + "\n"


def variant(source, number):
    """The same kernel in another text: another comment, another constant, another number of threads."""
    threads = 32 * (1 + number % 8)
    changed, times = re.subn(r"block=\(.*\)\s*$", f"block=({threads})", source, count=1, flags=re.MULTILINE)
    if times != 1:
        raise ValueError("the plan's block was not found")
    return f"// Variant {number}.\n{changed}\nconstexpr int kVariant = {number};\n"


EXPECTED = re.compile(r"^// Expected with (\w+): ([A-Z_]+)")


def expected_of(source):
    """(definition, status) that the first line of a faulty example promises."""
    found = EXPECTED.match(source)
    if found is None:
        raise ValueError("the first line promises no status")
    return found.group(1), found.group(2)

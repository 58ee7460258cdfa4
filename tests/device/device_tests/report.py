"""What a part found: checks, tables, data. And how tables look."""


def table(rows):
    """Columns aligned; the first row is the head. Numbers are written as given."""
    cells = [[str(cell) for cell in row] for row in rows]
    widths = [max(len(row[i]) for row in cells if i < len(row)) for i in range(max(map(len, cells)))] if cells else []
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in cells]
    return "\n".join(lines)


def number(value, digits=2):
    if value is None:
        return "-"
    return f"{value:.{digits}f}" if abs(value) >= 0.01 or value == 0 else f"{value:.1e}"


def axes(values):
    return " ".join(f"{name}={value}" for name, value in values.items())


def shortened(text, most=100):
    text = " ".join((text or "").split())
    return text if len(text) <= most else text[: most - 3] + "..."


class Result:
    """Of one part. `ok` is None while it is skipped, otherwise whether no check failed."""

    def __init__(self, name):
        self.name = name
        self.failures = []
        self.checked = 0
        self.skipped = None
        self.lines = []
        self.compact = []
        self.full = []
        self.data = {}
        self.seconds = 0.0

    def check(self, right, what):
        self.checked += 1
        if not right:
            self.failures.append(what)
        return right

    def fail(self, what):
        self.check(False, what)

    def say(self, line):
        self.lines.append(line)

    def add_table(self, title, rows, compact=True):
        """A compact table goes to the log and to the file of tables, any other to the file alone."""
        (self.compact if compact else self.full).append((title, rows))

    @property
    def status(self):
        if self.skipped is not None:
            return "skipped"
        if self.failures:
            return "FAILED"
        return "right" if self.checked else "FAILED"

    def text(self, full=False):
        out = [f"== {self.name}: {self.status}" + (f": {self.skipped}" if self.skipped is not None else "")]
        out += self.lines
        for title, rows in self.compact + (self.full if full else []):
            out += [f"-- {title}", table(rows)]
        most = len(self.failures) if full else 12
        out += [f"   WRONG: {shortened(failure, 300)}" for failure in self.failures[:most]]
        if len(self.failures) > most:
            out.append(f"   and {len(self.failures) - most} more")
        if self.skipped is None and not self.checked:
            out.append("   WRONG: nothing was checked")
        return "\n".join(out)

    def json(self):
        tables = [{"title": title, "rows": rows} for title, rows in self.compact + self.full]
        return {"part": self.name, "status": self.status, "skipped": self.skipped, "seconds": round(self.seconds, 1),
                "checked": self.checked, "failures": self.failures, "lines": self.lines, "tables": tables,
                "data": self.data}

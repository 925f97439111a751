"""The constants of a training stack from a sweep of one's own.

The table is a CSV with a line of names. A row is one measured plan:

    seconds                     of one step; or tokens_per_second, of all GPUs
    model                       a key of the catalog, such as llama3_8b; or the shape itself:
                                layers, width, heads, hidden, vocabulary, and where they differ from
                                a Llama of equal heads kv_heads, mlp_matrices (2 for a GPT),
                                head_width, tied (yes or no)
    sequence                    tokens of one
    data, tensor, pipeline      parts that each way of splitting makes
    micro_batches, micro_size   of a data-parallel rank in a step, and the sequences in each
    stage                       of ZeRO, 0 to 3
    recompute                   none, selective or full; selective where it is not said
    expert, context, chunks     1 where they are not said

Such as, with the lines of at least fourteen plans that differ:

    model,sequence,data,tensor,pipeline,micro_batches,micro_size,stage,seconds
    llama3_8b,4096,8,1,1,4,1,1,2.04
"""

import csv
from statistics import median

from lightspeed_models.llm.shipped import decoder, from_sizes
from lightspeed_models.plan import Plan
from lightspeed_models.stack import BOUND, Stack, stack
from lightspeed_models.stack_fit import HEALTHY, Timed
from lightspeed_show import si

SHAPE = ("layers", "width", "heads", "hidden", "vocabulary")
MORE_SHAPE = ("kv_heads", "mlp_matrices", "head_width")
PLAN = ("data", "tensor", "pipeline", "micro_batches", "micro_size", "stage")
MORE_PLAN = ("expert", "context", "chunks")
WORDS = ("model", "recompute", "tied")
TIMES = ("seconds", "tokens_per_second")
COLUMNS = (*TIMES, "sequence", *WORDS, *SHAPE, *MORE_SHAPE, *PLAN, *MORE_PLAN)
UNITS = {"host": "s", "ring": "s", "latency": "s", "fixed": "s"}
WHAT = {
    "share": "of the peak, all work of the GPU",
    "inside": "of the link in a node",
    "between": "of the network",
    "host": "a layer and micro-batch, whatever its size",
    "ring": "a layer, micro-batch and rank, tensor parallel over nodes",
    "latency": "a parameter tensor and data-parallel rank",
    "fixed": "a step",
}
SLOW = 2.0  # a step that takes this much longer than expected is told by name


class TableError(ValueError):
    """A table that is inconsistent as a whole."""


def counts(like):
    """Return the `Stack` whose fixed constants are used: a shipped one's, or the bound's."""
    if not like:
        return Stack(passes=8, logits_passes=8, optimizer_bytes=28)
    shipped = stack(like)
    health = {name: getattr(BOUND, name) for name in HEALTHY}
    return Stack(**{**vars(shipped), **health})


def read(path, cluster):
    """Return (`Timed` rows, row -> reason for rejection) of a table.

    Raises TableError for a table that makes no sense as a whole.
    """
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            table = csv.DictReader(file)
            names, lines = table.fieldnames or [], list(table)
    except OSError as error:
        raise TableError(f"{path}: {error.strerror}") from None
    except (UnicodeDecodeError, csv.Error) as error:
        raise TableError(f"{path} is not a table of text: {error}") from None
    names = [name.strip() for name in names]
    unknown = [name for name in names if name not in COLUMNS]
    if unknown:
        raise TableError(
            f"{path} has the columns {', '.join(unknown)}; those known are {', '.join(COLUMNS)}"
        )
    if len(set(names)) < len(names):
        raise TableError(f"{path} has two columns of one name")
    missing = [name for name in ("sequence", *PLAN) if name not in names]
    if missing or not set(TIMES) & set(names):
        raise TableError(f"{path} lacks {', '.join([*missing] or ['seconds'])}")
    if not {"model"} & set(names) and not set(SHAPE) <= set(names):
        raise TableError(f"{path} names no model: a column model, or {', '.join(SHAPE)}")
    rows, refused = [], {}
    for line, cells in enumerate(lines, start=2):
        name = f"line {line}"
        try:
            rows.append(timed(name, cells, cluster))
        except (ValueError, TypeError, ArithmeticError) as error:
            refused[name] = str(error)
    return rows, refused


def timed(name, cells, cluster):
    """Return the `Timed` of a line; raises ValueError with the fault."""
    if None in cells:
        raise ValueError("it has more cells than there are columns")
    row = {n.strip(): (text or "").strip() for n, text in cells.items()}
    row = {n: text for n, text in row.items() if text}
    numbers = {n: number(n, text) for n, text in row.items() if n not in WORDS}
    plan = Plan(
        **{n: needed(numbers, n) for n in PLAN},
        **{n: numbers[n] for n in MORE_PLAN if n in numbers},
        recompute=row.get("recompute", "selective"),
    )
    sequence = needed(numbers, "sequence")
    if {"seconds", "tokens_per_second"} <= row.keys():
        raise ValueError("it has both seconds and tokens_per_second: which one was measured?")
    if "seconds" in numbers:
        time = numbers["seconds"]
    elif "tokens_per_second" not in numbers:
        raise ValueError(f"{' and '.join(n for n in TIMES if n in cells)} is missing")
    else:
        rate = numbers["tokens_per_second"]
        if rate <= 0:
            raise ValueError(f"tokens_per_second is {rate:g}, and must be above zero")
        time = plan.sequences * sequence / rate
    return Timed(name, shape(row, numbers), sequence, plan, cluster, float(time))


def shape(words, numbers):
    """Return the model described by a line."""
    if "model" in words:
        return decoder(words["model"])
    sizes = {n: needed(numbers, n) for n in SHAPE}
    sizes |= {n: numbers[n] for n in MORE_SHAPE if n in numbers}
    tied = words.get("tied", "no").lower()
    if tied not in ("yes", "no", "true", "false", "1", "0"):
        raise ValueError(f"tied is {words['tied']!r}, and must be yes or no")
    return from_sizes(**sizes, tied_embeddings=tied in ("yes", "true", "1"))


def needed(numbers, name):
    """Return a number that a line must have."""
    if name not in numbers:
        raise ValueError(f"{name} is missing")
    return numbers[name]


def number(name, text):
    """Parse a cell as a number; a whole number for counts."""
    try:
        value = float(text)
    except ValueError:
        raise ValueError(f"{name} is {text!r}, and must be a number") from None
    if name in TIMES:
        return value
    if value % 1:  # also nan and inf: neither is a count
        raise ValueError(f"{name} is {text}, and must be a whole number")
    return int(value)


def report(fit, rows):
    """Return a fit as text for the reader."""
    lines = [f"{len(rows)} rows"]
    for name in HEALTHY:
        value = told(name, getattr(fit.stack, name))
        if name in fit.intervals:
            low, high = (told(name, end) for end in fit.intervals[name])
            value += f"  ({low} to {high})"
        lines.append(f"  {name:<8} {value:<34} {WHAT[name]}")
        if name in fit.untold:
            lines.append(f"  {'':<8} can't be told: {fit.untold[name]}")
    off = sorted(fit.errors)
    lines.append(
        f"error of the rows that were fitted: {median(off):.1%} in the median, "
        f"{off[int(0.9 * (len(off) - 1))]:.1%} at nine tenths"
    )
    # |predicted / measured - 1| of a step that takes twice as long as predicted is a half.
    late = [r.name for r, e in zip(rows, fit.errors, strict=True) if e >= 1 - 1 / SLOW]
    if late:
        lines.append(
            f"{len(late)} rows are off by a factor of {SLOW:g}, so it may not be the plan: "
            f"{', '.join(late[:8])}{' ...' if len(late) > 8 else ''}"
        )
    constants = ", ".join(
        f"{n}={v!r}" for n, v in vars(fit.stack).items() if v != getattr(BOUND, n)
    )
    lines += ["", "In Python:", f"  Stack({constants})"]
    return "\n".join(lines)


def told(name, value):
    """Format a constant with its unit."""
    return si(value, UNITS[name], 3) if name in UNITS else f"{value:.3f}"


def as_data(fit, refused):
    """Return a fit as plain data."""
    return {
        "stack": vars(fit.stack),
        "intervals": {name: list(ends) for name, ends in fit.intervals.items()},
        "untold": dict(fit.untold),
        "errors": list(fit.errors),
        "refused": refused,
    }

"""The tuning table of a real job, read from its log: what NCCL charged each algorithm on that
machine. Used in chapter 7.

With NCCL_DEBUG=INFO and NCCL_DEBUG_SUBSYS=INIT,TUNING the first rank of each communicator prints
latency (µs) and algbw (GB/s) for each collective, algorithm and protocol. The result is what
`tuning_table` of `lightspeed_models.nccl_tuner` computes, so its `choices` takes either.

Source: NVIDIA/nccl, src/graph/tuning.cc: blocks of three algorithms today, one wide table
("Latency/AlgBw") up to 2.17.
"""

import re

from lightspeed.errors import BadArgument
from lightspeed_models.nccl_tuner import PROTOCOLS, Cost

COLLECTIVES = {
    "Broadcast": "broadcast",
    "Reduce": "reduce",
    "AllGather": "all_gather",
    "ReduceScatter": "reduce_scatter",
    "AllReduce": "all_reduce",
}
_LINE = re.compile(
    r"^(?P<who>.*?)NCCL INFO\s+(?P<name>Algorithm|Latency/AlgBw|"
    + "|".join(COLLECTIVES)
    + r")\s*\|(?P<cells>.*)$"
)
_COST = re.compile(r"^\s*(\d+(?:\.\d+)?)\s*/\s*(\d+(?:\.\d+)?)\s*$")
HOW = (
    "Run the job with NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,TUNING; the first rank prints the"
    " table."
)


def read_tuning_tables(text):
    """Read each communicator's table from a log: collective -> (algorithm, protocol) -> `Cost`,
    without disabled entries.

    Raises BadArgument if there is no table, or if a line is truncated or not latency/bandwidth.

    >>> log = [
    ...     "h:1:1 [0] NCCL INFO Algorithm | Tree |",
    ...     "h:1:1 [0] NCCL INFO AllReduce | 16.8/ 0.5 | 31.0/ 0.0 | 36.4/ 1.9 |",
    ... ]
    >>> read_tuning_tables("\\n".join(log))[0]["all_reduce"]["Tree", "LL"].bandwidth
    500000000.0
    """
    tables, open_ones = [], {}  # who printed it -> (its table, the columns of its present block)
    for number, line in enumerate(text.splitlines(), 1):
        match = _LINE.match(line)
        if not match:
            continue
        who, name = match["who"], match["name"]
        cells = [cell.strip() for cell in match["cells"].split("|")]
        if name not in COLLECTIVES:
            columns = _columns(name, [cell for cell in cells if cell], number)
            table, columns_before = open_ones.get(who, (None, set()))
            # an algorithm again: the table of the next communicator
            if table is None or columns_before & set(columns):
                table, columns_before = {}, set()
                tables.append(table)
            open_ones[who] = (table, columns_before | set(columns))
            table.setdefault("columns", {})[who] = columns
            continue
        if who not in open_ones:
            raise _bad(number, line, 'a line "Algorithm | ..." of the same process above it')
        table, _ = open_ones[who]
        _fill(table.setdefault(COLLECTIVES[name], {}), table["columns"][who], cells, number, line)
    for table in tables:
        del table["columns"]
    if not any(tables):
        raise BadArgument(
            "read_tuning_tables", "text", text[:40], "a log with NCCL's tuning table", HOW
        )
    return tuple(tables)


def _columns(name, cells, number):
    """The (algorithm, protocol) of each column."""
    if name == "Algorithm":
        return [(cell, protocol) for cell in cells for protocol in PROTOCOLS]
    columns = [tuple(part.strip() for part in cell.split("/")) for cell in cells]
    for column in columns:
        if len(column) != 2 or column[1] not in PROTOCOLS:
            raise _bad(number, "/".join(column), "an algorithm and one of " + ", ".join(PROTOCOLS))
    return columns


def _fill(costs, columns, cells, number, line):
    if len(cells) != len(columns) + 1 or cells[-1]:
        raise _bad(
            number,
            line,
            f"{len(columns)} cells, each closed by a bar; the line is cut or another process wrote"
            " into it",
        )
    for column, cell in zip(columns, cells, strict=False):
        values = _COST.match(cell)
        if not values:
            raise _bad(number, cell, "latency/bandwidth, such as 16.8/ 0.5")
        latency, bandwidth = map(float, values.groups())
        if bandwidth > 0:
            costs[column] = Cost(latency * 1e-6, bandwidth * 1e9)


def _bad(number, value, expected):
    return BadArgument("read_tuning_tables", f"line {number}", value, expected, HOW)

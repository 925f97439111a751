"""Steps of a server against the least that its model takes: what a profile under CUDA graphs, which
has no shapes, can still be held to.
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass
from statistics import median

from lightspeed.catalog import accelerator
from lightspeed.decoder import Decoder
from lightspeed.inference import Replica, mixed_step
from lightspeed_tools.measure.instruments.gpu import catalog_key
from lightspeed_tools.trace.account import Account
from lightspeed_tools.trace.pieces import TraceError
from lightspeed_tools.trace.reader import Trace

# As vLLM names a step: requests and tokens of prompts, then of those that decode.
NAMED = re.compile(r"execute_context_\d+\((\d+)\)_generation_\d+\((\d+)\)")


@dataclass(frozen=True)
class Served:
    """Steps alike: tokens of prompts and rows that decode, how many, the median seconds from start
    to start, and the seconds of the bound.
    """

    tokens: int
    rows: int
    count: int
    time: float
    bound: float

    @property
    def share(self) -> float:
        """Of the roof."""
        return self.bound / self.time


def served(trace: Trace, account: Account, model: Decoder) -> list[Served]:
    """The steps of a server's profile, most frequent first. The bound is `mixed_step` of one GPU,
    or of all ranks in a tensor group, with weights in two bytes and empty caches: what is cached
    isn't in the file, so the bound is below the truth.

    Raises TraceError for a chip that the catalog lacks, and for steps without vLLM's names.
    """
    key = catalog_key(account.name) if account.name else None
    if key is None:
        raise TraceError(f"--model: {trace.path} names no chip of the catalog: {account.name!r}")
    chip, ways = accelerator(key), trace.world or 1
    link = getattr(chip, "link_bandwidth", None) or chip.hbm_bandwidth
    replica = Replica(float(chip.bf16), float(chip.hbm_bandwidth), float(link), ways)
    steps = sorted((m.start, m.end, m.name) for m in trace.marks if m.kind == "step")
    times: dict[tuple[int, int], list[float]] = defaultdict(list)
    for number, (start, end, name) in enumerate(steps):
        if found := NAMED.match(name):
            following = steps[number + 1][0] if number + 1 < len(steps) else end
            times[int(found[1]), int(found[2])].append((following - start) * 1e-9)
    if not times:
        raise TraceError(
            f"--model: {trace.path} has no steps named as vLLM names them"
            " (execute_context_1(512)_generation_8(8)), so tokens of a step aren't known"
        )
    listed = [
        Served(tokens, rows, len(found), median(found), float(
            mixed_step(model, replica, tokens, rows, 0, tokens / 2).time))
        for (tokens, rows), found in times.items()
    ]  # fmt: skip
    return sorted(listed, key=lambda s: -s.count)

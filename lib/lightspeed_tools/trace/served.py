"""Steps of a server against the least that its model takes: what a profile under CUDA graphs, which
has no shapes, can still be held to.
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass
from statistics import median

from lightspeed_models.cards import chip_of
from lightspeed_models.llm.decoder import Decoder
from lightspeed_models.llm.step import Replica, mixed_step
from lightspeed_tools.trace.account import Account
from lightspeed_tools.trace.pieces import TraceError
from lightspeed_tools.trace.reader import Trace

# As vLLM names a step, requests and tokens of prompts, then of those that decode; as it does with
# sums of queries and keys, and of their products; and as SGLang does.
NAMED = re.compile(r"execute_context_\d+\((?P<tokens>\d+)\)_generation_\d+\((?P<rows>\d+)\)")
SUMMED = re.compile(
    r"execute_\d+_context_\d+\(sq(?P<tokens>\d+)sk\d+sqsq(?P<squares>\d+)sqsk(?P<pairs>\d+)\)"
    r"_generation_(?P<rows>\d+)\(sq\d+sk(?P<keys>\d+)"
)
SGLANG = re.compile(r"step\[(?:DECODE bs=(?P<rows>\d+)|EXTEND bs=\d+ toks=(?P<tokens>\d+))\]")


@dataclass(frozen=True)
class Served:
    """Similar steps: tokens of prompts, rows that decode, mean cached tokens per row (0: unknown),
    their number, the median seconds from start to start, and the bound's seconds.
    """

    tokens: int
    rows: int
    cached: float
    count: int
    time: float
    bound: float

    @property
    def share(self) -> float:
        """The share of the roof reached."""
        return self.bound / self.time


def served(trace: Trace, account: Account, model: Decoder) -> list[Served]:
    """The steps of a server's profile, most frequent first. The bound is `mixed_step` of one GPU,
    or of all ranks in a tensor group, with weights in two bytes. Where names don't tell what is
    cached, caches count as empty, so that the bound is below the truth. The last step ends with
    what ran on the device; a lone one is as long as the device was busy, since what runs before a
    profile begins is seen as idle time.

    Raises TraceError for a chip that the catalog lacks, and for steps without a server's names.
    """
    chip, ways = chip_of(account.name), trace.world or 1
    if chip is None:
        raise TraceError(
            f"--model: {trace.path} names no chip of the catalog: {account.name!r}; state it with"
            " --hardware"
        )
    link = getattr(chip, "link_bandwidth", None) or chip.hbm_bandwidth
    replica = Replica(float(chip.bf16), float(chip.hbm_bandwidth), float(link), ways)
    steps = trace.step_marks()
    times: dict[tuple[int, int, float, float], list[float]] = defaultdict(list)
    for number, step in enumerate(steps):
        if match := NAMED.match(step.name) or SUMMED.match(step.name) or SGLANG.match(step.name):
            last = number + 1 == len(steps)
            following = max(step.end, account.end) if last else steps[number + 1].start
            if len(steps) == 1:
                following = step.start + account.span - account.idle
            n = {key: int(value or 0) for key, value in match.groupdict().items()}
            tokens, rows = n.get("tokens", 0), n.get("rows", 0)
            context = tokens / 2
            if n.get("pairs") and tokens:
                context = (n["pairs"] - n["squares"] / 2) / tokens
            cached = n.get("keys", 0) / rows if rows else 0.0
            times[tokens, rows, cached, context].append((following - step.start) * 1e-9)
    if not times:
        raise TraceError(
            f"--model: {trace.path} has no steps named as vLLM or SGLang names them"
            " (execute_context_1(512)_generation_8(8), step[DECODE bs=8]), so tokens of a step"
            " aren't known"
        )
    table = [
        Served(tokens, rows, cached, len(match), median(match), float(
            mixed_step(model, replica, tokens, rows, cached, context).time))
        for (tokens, rows, cached, context), match in times.items()
    ]  # fmt: skip
    return sorted(table, key=lambda s: -s.count)

"""A layer of experts over several GPUs: which experts a batch reads, how few rows each gets, and
what is sent to them and back. Derived in chapter 4.

Each token goes to `active` experts, which lie in equal parts over `ranks`: GPUs or nodes. What is
chosen together is counted as if it were chosen one by one; with 256 experts that is within 1 %.

Sources: Shazeer et al. (2017) and Lepikhin et al., GShard (2020), for experts in parallel;
DeepSeek-V3 technical report (2024) for copies once a node; DeepEP (2025) for its two kernels, one
of which sends a copy to each GPU and the other a copy to each expert.
"""

from lightspeed.elementwise import Result, Value
from lightspeed.inference import experts_read
from lightspeed.law import ELEMENT_BYTES, count, fraction, law, nonnegative
from lightspeed.parallel import WAYS, WIDTH

__all__ = ("copies_sent", "exchanged_bytes", "read_chance", "rows_per_expert")

TOKENS = count()


@law("", tokens=TOKENS, chance=fraction(hint="8 / 256 if no expert is a favourite."))
def read_chance(tokens: Value, chance: Value) -> Result:
    """Probability that a batch reads an expert, 1 - (1 - chance)^tokens. Its sum over experts is
    how many are read, whether or not the router prefers some of them.

    >>> 256 * read_chance(64, 8 / 256) == experts_read(64, 256, 8)
    True
    """
    return 1 - (1 - chance) ** tokens


@law("token", tokens=TOKENS, experts=count(), active_experts=count())
def rows_per_expert(tokens: Value, experts: Value, active_experts: Value) -> Result:
    """Mean number of rows in the product of an expert that is read: how often its weights are
    reused.

    >>> round(rows_per_expert(64, 256, 8), 1), round(64 * 8 / 256, 1)
    (2.3, 2.0)
    """
    return tokens * active_experts / experts_read(tokens, experts, active_experts)


@law("", active_experts=count(), ranks=WAYS)
def copies_sent(active_experts: Value, ranks: Value) -> Result:
    """Copies of a token if one goes to each rank that has an expert of it, on average:
    R (1 - (1 - 1/R)^k). One to each expert would be k.

    >>> round(copies_sent(8, 8), 2), round(copies_sent(8, 64), 2)
    (5.25, 7.58)
    """
    return ranks * (1 - (1 - 1 / ranks) ** active_experts)


@law(
    "byte",
    tokens=TOKENS,
    width=WIDTH,
    copies=nonnegative(hint="As `copies_sent`, or one for each expert."),
    ranks=WAYS,
    element_bytes=ELEMENT_BYTES,
)
def exchanged_bytes(
    tokens: Value, width: Value, copies: Value, ranks: Value, element_bytes: Value = 2
) -> Result:
    """Bytes that a rank sends for its `tokens`; one copy in `ranks` stays on the rank.

    Tokens go out in fp8, with a scale of four bytes for 128 numbers, and come back in bf16.

    >>> exchanged_bytes(4096, 7168, copies_sent(8, 8), 8) / exchanged_bytes(4096, 7168, 8, 8)
    0.6563910841941833
    """
    return tokens * copies * (1 - 1 / ranks) * width * element_bytes

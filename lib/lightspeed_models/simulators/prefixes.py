"""A cache of prefixes: what is found of each prompt, and what was thrown out before it came.

A prompt is a list of blocks, each with a key that stands for the block and all before it, as
Mooncake's `hash_ids` do. Whoever comes finds as many of its first blocks as are kept in one piece,
then all of its blocks are kept, and what was not asked for the longest goes first.
"""

from collections import OrderedDict
from collections.abc import Hashable, Iterable, Sequence

from lightspeed.law import checked, count


def found_tokens(
    prompts: Iterable[Sequence[Hashable]], lengths: Sequence[int], blocks: float, block: int
) -> list[int]:
    """Tokens of each prompt, in the order in which they come, that a cache of so many `blocks` of
    `block` tokens holds already. The last block of a prompt may be shorter.

    >>> found_tokens([[1, 2], [1, 3], [1, 2]], [20, 20, 20], 3, 16)
    [0, 16, 20]
    >>> found_tokens([[1, 2], [1, 3], [1, 2]], [20, 20, 20], 2, 16)
    [0, 16, 16]
    """
    checked("found_tokens", "blocks", blocks, count(infinite=True))
    checked("found_tokens", "block", block, count())
    cache: OrderedDict[Hashable, None] = OrderedDict()
    hits = []
    for keys, length in zip(prompts, lengths, strict=True):
        many = next((i for i, key in enumerate(keys) if key not in cache), len(keys))
        hits.append(min(length, many * block))
        # The first block is asked for last: without it the others are of no use.
        for key in reversed(keys):
            cache[key] = None
            cache.move_to_end(key)
        while len(cache) > blocks:
            cache.popitem(last=False)
    return hits


def shared(tokens: Sequence[int], lengths: Sequence[int]) -> float:
    """The share of all tokens of prompts that were found."""
    return sum(tokens) / sum(lengths)

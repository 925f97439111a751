"""The chip that a profile's device is, by the name that its driver has for it."""

from __future__ import annotations

import functools
import re

from lightspeed.catalog import Entry
from lightspeed.errors import BadArgument
from lightspeed_models.cards import card

# A chip with another link or memory than the catalog's of like name: no entry is better than that.
UNLIKE = re.compile(r"\bNVL\b|Laptop|Max-Q|4090 D\b|H20-3e|MIG ")
# What drivers say beyond the chip, and chips that differ from another in their links alone.
SAME = (
    (r"\bA800\b", "A100"), (r"A100-PG509-\d+", "A100 40GB"), (r"SXM\d", "SXM"),
    (r"\bGH200 (480|120)GB", "GH200"), (r"\bGH200 144G\w*", "GH200 144GB"),
    (r"\bV100-SXM-16GB", "V100-SXM"),
    (r"\b(AC|VF|HF|OAM|Generation|Graphics|Server Edition|Workstation Edition|Blackwell)\b", ""),
)  # fmt: skip


@functools.cache
def chip_of(name: str) -> Entry | None:
    """The catalog's chip of a device, or that a user states, None where there is none.

    >>> chip_of("NVIDIA A800-SXM4-80GB").key, chip_of("NVIDIA B300 SXM6 AC").key
    ('a100_80gb', 'b300')
    >>> chip_of("NVIDIA H100 NVL") is None
    True
    """
    if not name.strip() or UNLIKE.search(name):
        return None
    words = name
    for pattern, plain in SAME:
        words = re.sub(pattern, plain, words)
    for attempt in (words, re.sub(r"[\s-]SXM\b", "", words)):
        try:
            return card(attempt.strip())[0]
        except BadArgument:
            continue
    return None

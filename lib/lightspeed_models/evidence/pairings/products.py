"""The time of a matrix product: every chip predicted from constants that other chips set."""

from __future__ import annotations

import functools
import re

import numpy as np

from lightspeed.catalog import find
from lightspeed.roofline import time_bounds
from lightspeed_models.evidence.chips import constant, narrowed, work
from lightspeed_models.evidence.pairing import Judged, Pairing
from lightspeed_models.evidence.pairings.roofline import regime
from lightspeed_models.evidence.pairings.scaling import WITNESSES, conformal
from lightspeed_models.evidence.word_column import Words
from lightspeed_models.products import kernel, product_time

# Products of chips of one class run the same kernels. GB200 and B300 are not in the split: part of
# their tables is the same file as their sister's.
CLASSES = {
    "a100_80gb": "ampere",
    "h100_sxm": "hopper",
    "h200_sxm": "hopper",
    "b200": "blackwell",
    "gb300": "blackwell",
    "l40s": "ada",
    "rtx_pro_6000": "blackwell of GDDR",
    "arc_b60": "xe2",
}
# A format of 16 bits is the same everywhere, and one of fewer is not: its scales are applied by
# kernels of a class. L40S sets no constant, for most of its products fit its cache.
WIDE, SET_BY = "bfloat16", ("a100_80gb", "h100_sxm", "h200_sxm", "b200", "gb300")
CLOCK = 1.83e9  # Hz, where the catalog has none: H100's
FEWEST, ENOUGH = 50, 800  # rows of a fit; more are thinned
# From this release on the collector launches vLLM's fp8_block products one by one, where it replays
# a recorded graph of all others: the host sets the pace of what is short.
LIVE, LIVE_FROM = ("VLLM", "fp8_block"), (0, 22)
ALONE = "VLLM, live"
COPIED = "a chip part of whose tables is the same file as its sister's"
ALONE_IN_IT = "a chip in a format that too few products of other chips are in"
LARGE = 3e-4  # s at the peak: a product in which shares are all
LENGTHS = (1e-5, 1e-4)  # s: rows of one length are witnesses for each other
LEAST, MOST = (0.05, 0.05, 1.0, 100.0), (1.0, 1.0, 2e5, 2e6)  # shares, cycles of the loop, launch


def live(rows):
    """Mask of the products that the host launched one by one."""

    def late(name):
        library, _, version = name.partition(" ")
        numbers = re.findall(r"\d+", version)[:2]
        return library == LIVE[0] and tuple(map(int, numbers)) >= LIVE_FROM

    return (rows["format"] == LIVE[1]) & rows["library"].lookup(late, bool)


def in_both(rows, own, one, other):
    """The latency in format `one` over that in `other`, of each product among `own` that a library
    was timed with in both.
    """
    took = {}
    for i in np.flatnonzero(own):
        product = tuple(rows[name][i] for name in ("library", "m", "n", "k"))
        took.setdefault(product, {})[rows["format"][i]] = rows["latency"][i]
    return [t[one] / t[other] for t in took.values() if {one, other} <= t.keys()]


@functools.lru_cache(maxsize=2)
def columns(rows):
    """What `product_time` asks of each row, and what was measured, as arrays; `library` without
    its version, and with a mark where it launched one by one.
    """
    clock = rows["chip"].lookup(lambda key: find(key).clock if "clock" in find(key) else CLOCK)
    names = [name.rpartition(" ")[0] for name in rows["library"].names]
    library = np.array([*names, ALONE])[rows["library"].codes]
    library[live(rows)] = ALONE
    table = {**work(rows), "narrowed": narrowed(rows), "depth": rows["k"], "clock": clock}
    return table, library, rows["latency"]


def fit(table, library, measured):
    """Shares, loop and a launch for each library that fit these rows best."""
    from scipy.optimize import least_squares

    thin = np.arange(0, len(measured), max(1, len(measured) // ENOUGH), dtype=np.intp)
    table = {name: column[thin] for name, column in table.items()}
    names, of = np.unique(library[thin], return_inverse=True)

    def constants(logs):
        return kernel_of(np.exp(logs), of)

    def residuals(logs):
        return np.log(product_time.__wrapped__(**table, **constants(logs)) / measured[thin])

    least, most = (np.log([*ends[:3], *[ends[3]] * len(names)]) for ends in (LEAST, MOST))
    start = np.clip(np.log([0.6, 0.8, 4e3, *[8e3] * len(names)]), least, most)
    bounds = {"bounds": (least, most), "x_scale": 0.1, "max_nfev": 40}
    best = least_squares(residuals, start, loss="cauchy", f_scale=0.1, **bounds).x
    return np.exp(best), names


def kernel_of(constants, of):
    """The constants of each row, by the names of `product_time`."""
    compute, memory, loop, *launch = constants
    return {
        "compute_share": compute, "memory_share": memory, "loop": loop,
        "launch": np.asarray(launch)[of],
    }  # fmt: skip


def setters(rows, chip, number_format):
    """(mask of the rows of other chips, mask of those among them whose chips are of its class) in
    this format: what may set the constants for a chip.
    """
    others = [c for c in SET_BY if c != chip]
    sisters = [c for c in others if CLASSES[c] == CLASSES[chip]]
    same = rows["format"] == number_format
    return same & rows["chip"].isin(others), same & rows["chip"].isin(sisters)


def releases(rows, library, own, others, sisters):
    """(mask of own rows, mask of the rows that set their constants), a pair a release in `own`.

    A release brings its own kernels for the narrow formats, and a class of chips runs its own. So
    the best witness is the release on a sister, then its library there, then its library anywhere.
    """
    for name in rows["library"][own].present():
        mine = own & (rows["library"] == name)
        alike = library == library[mine][0]
        pools = (sisters & (rows["library"] == name), sisters & alike, others & alike, sisters)
        yield mine, next((by for by in pools if by.sum() >= FEWEST), others)


@functools.lru_cache(maxsize=2)
def left_out(rows):
    """(times, low and high ends of their intervals): each chip from the products of other chips,
    NaN where others don't say. An interval is how far off constants are on a chip that had no part
    in them, neither that chip nor the one that is predicted.
    """
    table, library, measured = columns(rows)
    times, sisterly = np.full((3, len(rows)), np.nan), np.zeros(len(rows), bool)
    teacher = learner(table, library, measured)
    for chip in CLASSES:
        for number_format in rows["format"].present():
            whole = (rows["chip"] == chip) & (rows["format"] == number_format)
            others, sisters = setters(rows, chip, number_format)
            if not whole.any() or others.sum() < FEWEST:
                continue
            pairs = [(whole, others)]
            if number_format != WIDE:
                pairs = releases(rows, library, whole, others, sisters)
            for own, by in pairs:
                times[0, own] = expected(table, library, own, *teacher(by))
                theirs = each_other(table, library, rows["chip"], by, teacher)
                times[1:, own] = interval(times[0, own], theirs, measured[by] / theirs)
                sisterly[own] = number_format != WIDE and not (by & ~sisters).any()
    # Of a narrow product one sister sets the constants, and how far off they are on another chip is
    # what sisters of other classes say of each other.
    for chip, mine in CLASSES.items():
        own = (rows["chip"] == chip) & ~(rows["format"] == WIDE) & ~np.isnan(times[0])
        by = sisterly & rows["chip"].isin([c for c, other in CLASSES.items() if other != mine])
        if own.any() and by.sum() >= FEWEST:
            times[1:, own] = interval(times[0, own], times[0, by], measured[by] / times[0, by])
    return tuple(times)


def learner(table, library, measured):
    """A function: mask -> the constants that its rows set, and the names of their launches.

    What A says of B without C is also what it says of C without B, so each fit is kept.
    """
    cache = {}

    def learnt(by):
        key = by.tobytes()
        if key not in cache:
            own = {name: column[by] for name, column in table.items()}
            cache[key] = fit(own, library[by], measured[by])
        return cache[key]

    return learnt


def each_other(table, library, chips, by, teacher):
    """Times of the rows of `by`, each chip from the others among them; one alone from them all."""
    times = np.full(len(library), np.nan)
    for chip in chips[by].present():
        own = by & (chips == chip)
        others = by & ~own
        if others.sum() >= FEWEST:
            times[own] = expected(table, library, own, *teacher(others))
        else:
            times[own] = expected(table, library, own, *teacher(by))
    return times[by]


def expected(table, library, mask, constants, names):
    """Times of some rows by these constants."""
    # A library that no other chip was measured with launches as the median does.
    launches = dict(zip(names, constants[3:], strict=True))
    usual = np.median(constants[3:])
    launch = [launches.get(name, usual) for name in library[mask]]
    kernel = kernel_of([*constants[:3], *launch], np.arange(mask.sum(), dtype=np.intp))
    return product_time.__wrapped__(**{n: c[mask] for n, c in table.items()}, **kernel)


def interval(mine, theirs, off):
    """Ends of an interval around each of my times, from how far off theirs are: those that are as
    long, for a short product varies more.
    """
    ends = np.ones((2, len(mine)))
    long_, short = np.digitize(mine, LENGTHS), np.digitize(theirs, LENGTHS)
    for length in np.unique(long_):
        alike = off[short == length]
        few = len(alike) < WITNESSES
        ends[:, long_ == length] = np.array(conformal(off if few else alike))[:, None]
    return mine * ends


def share_of_chip(rows, chip, number_format):
    """(products, share): of the large products of a chip, the share at which the law, with the
    other constants as of its class, is right in the median.
    """
    wide = number_format == WIDE
    kinds, family = ((WIDE,), "all") if wide else (("fp8", "fp8_static"), "blackwell")
    table, library, measured = columns(rows)
    own = (rows["chip"] == chip) & rows["format"].isin(kinds)
    own &= table["flops"] / table["peak"] > LARGE
    own &= wide | (library == "TRTLLM")
    table = {name: column[own] for name, column in table.items()}
    constants = vars(kernel(number_format, family, "TensorRT-LLM"))

    def median(share):
        took = product_time.__wrapped__(**table, **constants | {"compute_share": share})
        return np.median(took / measured[own])

    low, high = LEAST[0], MOST[0]
    for _ in range(30):
        middle = (low * high) ** 0.5
        low, high = (middle, high) if median(middle) > 1 else (low, middle)
    return int(own.sum()), low


def judge(rows, wide):
    """Products in 16 bits, or in fewer."""
    predicted, low, high = left_out(rows)
    scope = (rows["format"] == WIDE) == wide
    mask = scope & ~np.isnan(predicted)
    mine, places = rows.where(mask), np.flatnonzero(mask)
    if wide and len(mine):
        job = work(mine)
        regimes = regime(time_bounds(**job), job["size"], constant(mine["chip"], "l2_capacity"))
    else:
        slow = live(mine)
        names = [f"{f}, host" if s else f for f, s in zip(mine["format"], slow, strict=True)]
        regimes = Words.of(names)
    return Judged(
        predicted[mask], mine["latency"], regimes, lambda i: rows.name(places[i]),
        low[mask], high[mask], left=tuple(untold(rows, scope & ~mask)),
    )  # fmt: skip


def untold(rows, mask):
    """(chip, format and how many rows, why not) of the rows of a mask: there may be millions."""
    for chip in rows["chip"][mask].present():
        of = mask & (rows["chip"] == chip)
        for kind in rows["format"][of].present():
            count = int((of & (rows["format"] == kind)).sum())
            why = ALONE_IN_IT if chip in CLASSES else COPIED
            yield f"{chip}, {kind}, {count:,} rows", why


PAIRINGS = tuple(
    Pairing(
        key=key,
        title=f"The expected time of matrix products {title}",
        law="lightspeed_models.products.product_time",
        set="gemm",
        chapter="02",
        judge=functools.partial(judge, wide=wide),
        fitted=f"two shares, the loop and a launch for each {by}, on the products of the other "
        f"chips{more}",
        left_out="chip",
        lesson=lesson,
    )
    for key, title, wide, by, more, lesson in (
        (
            "product-time",
            "in 16 bits",
            True,
            "library",
            "",
            "Launch and loop are latencies, so they shrink with the clock. A chip whose cache "
            "holds the operands (L40S) is faster than its memory, and one of another maker (Arc "
            "B60) launches otherwise.",
        ),
        (
            "product-time-narrow",
            "in 8 and 4 bits",
            False,
            "release of a library",
            " of its class, or of its library where those have none",
            "A narrow product starts from wide activations, and the pass that makes them narrow is "
            "part of its time. Launches differ by release, and where no graph is replayed the host "
            "sets the pace, which no constant of a chip can tell. Tiles and waves counted whole "
            "explain nothing more; constants set by the very release and chip leave 14 % in the "
            "mean.",
        ),
    )
)

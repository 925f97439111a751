"""What the evidence says, as lines for the terminal and as JSON."""

from collections import Counter

from lightspeed_models.evidence.pairing import pairings
from lightspeed_models.evidence.residuals import weigh
from lightspeed_show.format import plain, si


def chosen(word=None):
    """The pairings that a word names: a law, a set or a pairing; without one, all.

    Raises ValueError, naming what there is.
    """
    matches = [one for one in pairings().values() if word is None or one.matches(word)]
    if matches:
        return matches
    raise ValueError(f"there is no '{word}'")


def choices():
    """Every word that names a pairing."""
    return sorted({w for one in pairings().values() for w in (one.key, one.set, one.law)})


def run(word=None, data=None):
    """(`Residuals` of every pairing that a word names, sentences on sets that `data` lacks)."""
    targets, by_key, missing = chosen(word), {}, []
    for one in targets:
        try:
            by_key[one.key] = weigh(one, data)
        except FileNotFoundError as error:
            missing.append(f"{one.set}: {error}; the shipped sample stands in")
    if data is not None and not any(one.rows.full for one in by_key.values()):
        raise ValueError("; ".join(dict.fromkeys(missing)))
    residuals = [by_key[one.key] if one.key in by_key else weigh(one) for one in targets]
    return residuals, list(dict.fromkeys(missing))


def in_words(residuals):
    """The lines of one pairing's `Residuals`."""
    p, record = residuals.pairing, residuals.rows.record
    lines = [
        p.title,
        f"  law      {p.law}, {kind(p)}",
        f"  rows     {rows_in_words(residuals)}",
        f"  source   {source(record)}",
        f"  fitted   {p.fitted}",
        "",
        *_table(residuals),
        "",
        *_furthest_rows(residuals),
    ]
    if residuals.judged.left:
        lines += ["  not judged, because the law can't answer:"]
        lines += [f"    {n:,} × {reason}" for reason, n in left_out_for(residuals)]
    if residuals.rows.refused:
        lines += ["  refused, because no true row can say it:"]
        lines += [f"    {n:,} × {reason}" for reason, n in residuals.rows.reasons().most_common()]
    return lines


def _furthest_rows(residuals):
    if not residuals.worst:
        return [f"  which rows these are: lightspeed evidence {residuals.pairing.key} --data DIR"]
    rows = (f"    {plain(ratio)}  {name}" for name, ratio in residuals.worst)
    return [f"  {furthest(residuals).lower()} (predicted / measured):", *rows]


def left_out_for(residuals):
    """(reason, how many) of the rows that the law can't answer for, the commonest first."""
    return Counter(reason for _, reason in residuals.judged.left).most_common()


def furthest(residuals):
    """What the rows at the end of the scale are called: no bound is passed that holds."""
    if not residuals.pairing.bound:
        return "Furthest off"
    return "Furthest beyond it" if residuals.all.beaten else "Closest to it"


def as_json(residuals):
    """The same as plain data."""
    p, rows = residuals.pairing, residuals.rows
    return {
        "pairing": p.key,
        "law": p.law,
        "set": p.set,
        "repository": rows.record.repository,
        "commit": rows.record.commit,
        "licence": rows.record.licence,
        "unverified": rows.record.unverified,
        "full": rows.full,
        "rows": len(rows),
        "quantity": p.quantity,
        "unit": p.unit,
        "bound": p.bound,
        "excuse": p.excuse,
        "fitted": p.fitted,
        "all": _as_dict(residuals.all),
        "regimes": [_as_dict(one) for one in residuals.by_regime],
        "worst": [{"row": name, "ratio": ratio} for name, ratio in residuals.worst],
        "left": [{"name": name, "reason": reason} for name, reason in residuals.judged.left],
        "refused": [
            {"row": one.row, "name": one.name, "reason": one.reason} for one in rows.refused
        ],
    }


def _as_dict(error):
    return {
        "regime": error.regime,
        "rows": error.rows,
        "median_error": error.median,
        "p90_error": error.p90,
        "ratio_5_50_95": error.ratios,
        "beaten": error.beaten,
        "excused": error.excused,
        "covered": error.covered,
    }


def kind(pairing):
    """Whether a law is a bound or an estimate, and of what."""
    kinds = {"least": "a bound from below", "most": "a bound from above", "": "an estimate"}
    return f"{kinds[pairing.bound]} of the {pairing.quantity}"


def rows_in_words(residuals):
    """How many rows, and of how many they are a sample."""
    record, answers = residuals.rows.record, residuals.all.rows
    used = "" if answers == len(residuals.rows) else f", {answers:,} of them judged"
    total = len(residuals.rows) + len(residuals.rows.refused)
    which = "all" if residuals.rows.full or total >= record.full_rows else "a sample"
    of = "" if which == "all" else f" of {record.full_rows:,}"
    return f"{len(residuals.rows):,} ({which}{of}){used}"


def source(record):
    """Repository, commit and licence; and that what comes of MLPerf is unverified."""
    note = "; derived from MLPerf results: unverified" if record.unverified else ""
    commits = record.commit if "," in record.commit else record.commit[:7]
    return f"{record.repository} {commits}, {record.licence}{note}"


def _table(residuals):
    rows = table_rows(residuals)
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  " + "  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])])
        for row in rows
    ]


def table_rows(residuals):
    """The head of the table of errors, then all rows, then each regime."""
    p = residuals.pairing
    head = ["regime", "rows", "median error", "p90 error", "5, 50, 95 % of predicted/measured"]
    head += ["beaten"] if p.bound else []
    head += ["of these: " + p.excuse] if p.excuse else []
    head += ["in the interval"] if residuals.judged.low is not None else []
    rows = [head]
    for one in (residuals.all, *residuals.by_regime):
        row = [one.regime, f"{one.rows:,}", si(one.median, "%"), si(one.p90, "%")]
        row += [", ".join(plain(r) for r in one.ratios)]
        row += [si(one.beaten, "%")] if p.bound else []
        row += [si(one.excused, "%") if one.excused is not None else "–"] if p.excuse else []
        row += [si(one.covered, "%")] if residuals.judged.low is not None else []
        rows.append(row)
    return rows

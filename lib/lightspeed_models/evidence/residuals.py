"""How far off a law is: error, share of rows that beat a bound, by regime, and the worst rows."""

import json
from collections import Counter
from dataclasses import asdict, dataclass
from importlib.resources import files

import numpy as np

from lightspeed.errors import one_of
from lightspeed_models.evidence.pairing import Judged, Pairing, pairings
from lightspeed_models.evidence.sets import Dataset, dataset, records
from lightspeed_models.evidence.word_column import Words

WORST = 5
# A bound counts as beaten beyond the error of a clock and of a data sheet's rounding.
SLACK = 0.02


@dataclass(frozen=True)
class Error:
    """Of some rows: how many, |predicted / measured - 1| in the median and at 90 %, and the ratio
    predicted / measured at 5, 50 and 95 %. `beaten`: share of rows beyond a bound (None for an
    estimate); `excused`: share of those for which the pairing names a reason. `covered`: share of
    rows inside the interval that the prediction stated (None where it stated none).
    """

    regime: str
    rows: int
    median: float
    p90: float
    ratios: tuple[float, float, float]
    beaten: float | None
    excused: float | None
    covered: float | None


@dataclass(frozen=True, eq=False)
class Residuals:
    """What a set says of a law: over all rows, by regime, and the rows furthest off."""

    pairing: Pairing
    rows: Dataset
    judged: Judged
    all: Error
    by_regime: tuple[Error, ...]
    worst: tuple[tuple[str, float], ...]

    @property
    def ratio(self):
        """Predicted over measured, of every row."""
        return self.judged.predicted / self.judged.measured

    def regime(self, name):
        """The `Error` of one regime, or of "all"."""
        errors = {error.regime: error for error in (self.all, *self.by_regime)}
        return errors[one_of("regime", "name", name, tuple(errors))]


@dataclass(frozen=True, eq=False)
class Counted(Dataset):
    """What is known of rows that do not ship: how many there are, and were refused for what."""

    rows: int = 0
    why: tuple[tuple[str, int], ...] = ()

    def __len__(self):
        return self.rows

    def reasons(self):
        return Counter(dict(self.why))


def weigh(pairing, data=None):
    """The `Residuals` of a pairing (or its key), on the shipped sample or the full set in `data`,
    or as counted where no set ships. Raises BadArgument.
    """
    if isinstance(pairing, str):
        pairing = pairings()[one_of("weigh", "pairing", pairing, tuple(pairings()))]
    if data is None and not records()[pairing.set].ships:
        return counted(pairing)
    return judged(pairing, dataset(pairing.set, data))


def counted(pairing):
    """Load the `Residuals` of a set that does not ship, as `to_count` wrote them from all of its
    rows, none of which they name.
    """
    record = json.loads(files(__package__).joinpath("counted.json").read_text("utf-8"))[pairing.key]
    everything, *regimes = (
        Error(**error | {"ratios": tuple(error["ratios"])}) for error in record["errors"]
    )
    rows = Counted(
        records()[pairing.set], {}, (), True, record["rows"], tuple(record["why"].items())
    )
    none = Judged(np.empty(0), np.empty(0), Words.of(()), str)
    return Residuals(pairing, rows, none, everything, tuple(regimes), ())


def to_count(residuals):
    """What ships of these `Residuals`, as plain data: counts and errors, to four digits."""
    errors = [asdict(error) for error in (residuals.all, *residuals.by_regime)]
    for error in errors:
        for name, value in error.items():
            if isinstance(value, float):
                error[name] = float(f"{value:.4g}")
        error["ratios"] = [float(f"{ratio:.4g}") for ratio in error["ratios"]]
    return {"rows": len(residuals.rows), "why": dict(residuals.rows.reasons()), "errors": errors}


def judged(pairing, rows):
    """The `Residuals` of one pairing on these rows."""
    answers = pairing.judge(rows)
    if not len(answers.predicted):
        raise ValueError(f"{pairing.key}: none of the {len(rows)} rows says enough for this law")
    ratio = answers.predicted / answers.measured
    regimes = [
        error(pairing, answers, ratio, answers.regime == name, name)
        for name in answers.regime.present()
    ]
    off = {"least": np.log(ratio), "most": -np.log(ratio), "": np.abs(np.log(ratio))}[pairing.bound]
    last = np.argpartition(off, -min(WORST, len(off)))[-WORST:]
    last = last[np.argsort(off[last], kind="stable")[::-1]]
    worst = tuple((answers.names(int(row)), float(ratio[row])) for row in last)
    everything = error(pairing, answers, ratio, np.ones(len(ratio), bool), "all")
    return Residuals(pairing, rows, answers, everything, tuple(regimes), worst)


def error(pairing, verdict, ratio, mask, regime):
    """The `Error` of the rows of a mask."""
    part = ratio[mask]
    off = np.abs(part - 1)
    share = excused = covered = None
    if pairing.bound:
        beyond = part > 1 + SLACK if pairing.bound == "least" else part < 1 / (1 + SLACK)
        share = float(beyond.mean())
        if verdict.excused is not None and beyond.any():
            excused = float(verdict.excused[mask][beyond].mean())
    if verdict.low is not None:
        inside = (verdict.low <= verdict.measured) & (verdict.measured <= verdict.high)
        covered = float(inside[mask].mean())
    median, p90 = float(np.median(off)), float(np.quantile(off, 0.9))
    ratios = tuple(np.quantile(part, (0.05, 0.5, 0.95)).tolist())
    return Error(regime, int(mask.sum()), median, p90, ratios, share, excused, covered)

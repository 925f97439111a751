"""What may lie behind a wrong answer: a cause, and the constants by which causes are told apart."""

from dataclasses import dataclass

from lightspeed_course.practice.values import Values

# From the strongest: a misconception of the bank, a slip with a mark of its own, a premise left
# out or taken twice, a factor that many things leave.
BANK, PARTICULAR, PREMISE, VAGUE = range(4)

# Who speaks of this in a hint speaks of the same slip.
ABOUT = {
    "prefix": r"own unit",
    "time unit": r"own unit",
    "percent": r"per ?cent|fraction",
    "bits and bytes": r"\bbits?\b",
    "a sparse peak": r"spars",
    "both directions": r"direction|both ways",
    "the width of an element": r"\bbytes?\b|bf16|fp16|fp32|int8",
    "one pass or two": r"\bpass|gather|\bscatter",
    "there and back": r"there and back|one way|round trip|come back|way there",
    "a multiply-add": r"multiply-add|multiplies|operations",
    "binary prefix": r"[KMGT]iB",
    "upside down": r"upside|turn(ed)? it|over it",
    "one's own share": r"\bone share|itself|at home|n minus one|\bits own\b",
    "the other share": r"\brest\b|what is (kept|left)",
    "a share of something else": r"\bof the (rest|whole)|over the",
    "a root forgotten": r"\broot",
    "a root too many": r"\broot",
}


@dataclass(frozen=True)
class Cause:
    """A mistake, the values that it leads to, and what to think about."""

    name: str
    values: Values
    reason: str
    rank: int = PARTICULAR
    about: str = ""  # in place of ABOUT
    width: float = 0.0  # how far, relatively, a rounded or remembered answer may be from the values
    whole: bool = False  # of an array: it has all its values from this cause

    @property
    def words(self):
        return f"{self.name}. {self.reason}"

    @property
    def said_by(self):
        """The pattern of words that say as much; "" if nothing else does."""
        return self.about or ABOUT.get(self.name, "")

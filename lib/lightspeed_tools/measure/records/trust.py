"""What a record lets one conclude. Samples that agree say that a measurement repeats, not that it
is right.

So beside the spread of each quantity there is a doubt: of a matrix product far below those of the
sizes next to it, which no machine is by nature.
"""

from lightspeed_show import si
from lightspeed_tools.measure.instruments.timing import LIMIT

DIP = 5  # so many times below the products of both neighbouring sizes, and something else was timed


def doubts(found):
    """Return label of a quantity -> why it is doubtful, whatever its spread."""
    return dict(_dips(found))


def _dips(found):
    series = {}
    for q in found:
        if q.key == "roofline.gemm" and "n" in q.parameters:
            same = tuple((name, value) for name, value in q.parameters.items() if name != "n")
            series.setdefault(same, []).append(q)
    for alike in series.values():
        alike.sort(key=lambda q: q.parameters["n"])
        for below, q, above in zip(alike, alike[1:], alike[2:], strict=False):
            if DIP * q.value < min(below.value, above.value):
                sizes, rates = (
                    " and ".join(told)
                    for told in zip(
                        *((str(x.parameters["n"]), si(x.value, x.unit)) for x in (below, above)),
                        strict=True,
                    )
                )
                yield q.label, f"not to be believed: its neighbours, n = {sizes}, are at {rates}"


def sound(found, doubted):
    """Whether all quantities repeat or vary by nature, and none is doubted."""
    return all(q.trusted and q.label not in doubted for q in found)


def in_short(found, doubted):
    """Summarize the count in a few words, ignoring quantities that vary by nature."""
    judged = [q for q in found if not q.varies]
    good = sum(q.trusted and q.label not in doubted for q in judged)
    sentences = (
        [f"{good} of {len(judged)} quantities repeat within {si(LIMIT, '%')}"] if judged else []
    )
    if rest := len(found) - len(judged):
        name = "" if judged else "quantities "
        sentences.append(f"{rest} {name}vary by nature and are not judged by spread")
    return "; ".join(sentences)


def in_words(found, doubted):
    """Return the doubts as sentences."""
    return [f"{q.label} is {doubted[q.label]}." for q in found if q.label in doubted]

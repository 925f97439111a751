"""Draw samples, and count the rest: python -m lightspeed_models.evidence.samplers FOLDER."""

import json
import sys
from pathlib import Path

from lightspeed_models.evidence.pairing import pairings
from lightspeed_models.evidence.residuals import to_count, weigh
from lightspeed_models.evidence.samplers.draw import draw
from lightspeed_models.evidence.sets import records


def main(folder, *names):
    """Write `data/<set>.csv.gz` of these sets, or of all, from the checkouts in a folder; of those
    that do not ship, their part of `counted.json`.
    """
    room = Path(__file__).parents[1]
    for name in names or records():
        if not records()[name].ships:
            count(room / "counted.json", name, folder)
            continue
        file = room / "data" / f"{name}.csv.gz"
        file.write_bytes(draw(name, folder))
        print(f"{file.stat().st_size:9,} bytes  {file.name}")


def count(file, name, folder):
    """Put what the pairings of a set say of all its rows into a file."""
    counts = json.loads(file.read_text("utf-8")) if file.exists() else {}
    for one in pairings().values():
        if one.set == name:
            counts[one.key] = to_count(weigh(one, folder))
    counts = {key: counts[key] for key in sorted(counts)}
    file.write_text(json.dumps(counts, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])

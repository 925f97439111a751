"""Draw the shipped samples: python -m lightspeed_models.evidence.samplers FOLDER [SET ...]."""

import sys
from pathlib import Path

from lightspeed_models.evidence.samplers.draw import draw
from lightspeed_models.evidence.sets import records


def main(folder, *names):
    """Write `data/<set>.csv.gz` of these sets, or of all, from the checkouts in a folder."""
    for name in names or records():
        file = Path(__file__).parents[1] / "data" / f"{name}.csv.gz"
        file.write_bytes(draw(name, folder))
        print(f"{file.stat().st_size:9,} bytes  {file.name}")


if __name__ == "__main__":
    main(*sys.argv[1:])

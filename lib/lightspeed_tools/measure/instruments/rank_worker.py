"""A process of a collective, run as a module: it measures a sweep or a split MLP."""

import json
import os
import sys

from lightspeed_tools.measure.instruments.launch import MARK, Watch, world
from lightspeed_tools.measure.instruments.ranks import open_backend, sweep
from lightspeed_tools.measure.instruments.split_mlp import on_rank
from lightspeed_tools.measure.instruments.timing import Unavailable


def main(job):
    """Measure as a rank. `job`: {"backend", "collectives", "sizes", "budget", "longest",
    "limit"}; rank 0 prints lines of JSON.
    """
    here = world()
    watch = Watch(here.rank if here else 0, job["limit"])
    backend = open_backend(job["backend"], here)

    def say(**what):
        if backend.rank == 0:
            print(json.dumps(what), flush=True)

    if job.get("split"):
        on_rank(backend, job, say, watch)
    else:
        sweep(backend, job["collectives"], job["sizes"], job["budget"], job["longest"], say, watch)
    backend.close()


if __name__ == "__main__":
    try:
        main(json.loads(sys.argv[1]))
    except Unavailable as problem:
        print(f"{MARK}{problem}", file=sys.stderr, flush=True)
        os._exit(4)  # not through MPI's own exit, which may wait for ranks that never came

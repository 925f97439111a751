"""The L2 cache as a list of sectors, of which the least recently used leaves: what of a launch's
traffic reaches DRAM.

Programs start in launch order, `in_flight` at once; each makes one access in turn, and the next
program begins when one ends. A store of whole sectors fetches nothing and counts as a hit, as a
profiler counts it; a dirty sector is written to DRAM when it leaves.
"""

from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass

from lightspeed.law import checked, count, positive
from lightspeed_models.simulators.kernels.record import SECTOR, Access, Launch

CAPACITY = positive("byte", hint="The L2 cache: an A100 has 40 MB, in two halves.")
IN_FLIGHT = count(hint="Programs that run at once: SMs x blocks on each.")


@dataclass(frozen=True)
class CacheTraffic:
    """Bytes that cross between the SMs and L2 (`l2`), and between L2 and DRAM.

    `dirty` were written to L2 and are there still: no profile of this launch shows them.
    """

    l2: int
    read: int
    write: int
    dirty: int
    hits: float


def l2_traffic(
    launch: Launch, capacity: float, in_flight: int, grain: int = SECTOR
) -> CacheTraffic:
    """The `CacheTraffic` of a launch through `capacity` bytes of L2.

    `grain` (bytes, a multiple of 32) is the piece that the list keeps: larger ones are quicker, and
    as exact where all accesses are that long. Raises BadArgument for a capacity that
    is not above 0.
    """
    capacity = float(checked("l2_traffic", "capacity", capacity, CAPACITY))
    in_flight = int(checked("l2_traffic", "in_flight", in_flight, IN_FLIGHT))
    room, sectors = max(1, int(capacity // grain)), grain // SECTOR
    cache: OrderedDict[int, bool] = OrderedDict()
    reads = write = pieces = hits = 0
    for access in _in_turn(launch.programs, in_flight):
        for first, end in access.sectors:
            for piece in range(first // sectors, (end - 1) // sectors + 1):
                pieces += 1
                if piece in cache:
                    hits += 1
                    cache.move_to_end(piece)
                    cache[piece] |= access.store
                    continue
                hits += access.store
                reads += not access.store
                cache[piece] = access.store
                if len(cache) > room:
                    write += cache.popitem(last=False)[1]
    dirty = sum(cache.values())
    share = hits / pieces if pieces else 0.0
    return CacheTraffic(pieces * grain, reads * grain, write * grain, dirty * grain, share)


def _in_turn(programs: list[list[Access]], in_flight: int) -> Iterator[Access]:
    """The accesses of programs, of which `in_flight` run at once."""
    waiting = iter(programs)
    active = [iter(program) for _, program in zip(range(in_flight), waiting, strict=False)]
    while active:
        still = []
        for program in active:
            access = next(program, None)
            while access is None:
                following = next(waiting, None)
                if following is None:
                    break
                program = iter(following)
                access = next(program, None)
            if access is not None:
                yield access
                still.append(program)
        active = still

"""What crossed, in sentences: each rule reads the record, and none knows what the kernel is for."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from lightspeed_models.simulators.kernels.record import LINE, SECTOR, WARP, Access, Launch

TOO_MANY = 1.5  # bytes that cross for each that is asked for
IDLE_LANES = 0.25  # share of lanes that a mask switches off


@dataclass(frozen=True)
class Finding:
    """One thing that costs bytes, or makes the result wrong: which kind, the bytes that it costs,
    the sentence, and the array where it is one's own.
    """

    kind: str  # race hazard filler again shared uncoalesced round_trip hidden masked few_programs
    cost: float
    sentence: str
    array: str = ""


def diagnose(launches: Sequence[Launch], sms: int = 4) -> list[Finding]:
    """The findings on a kernel's launches in their order: what is wrong first, then the dearest,
    and what larger blocks would share last, as each kernel has some of it.

    `sms` counts the processors of the chip, which should all have a program.
    """
    findings: list[Finding] = []
    for number, launch in enumerate(launches, 1):
        label = f"launch {number}: " if len(launches) > 1 else ""
        findings += _races(launch, label)
        findings += _hazards(launch, label)
        findings += _fillers(launch, label)
        for array, store in sorted({(access.array, access.store) for access in launch.accesses}):
            findings += _of_array(launch, array, store, label)
        findings += _lanes(launch, label)
        findings += _hidden(launch, label)
        findings += _programs(launch, sms, label)
    findings += _round_trips(launches)
    return sorted(findings, key=lambda finding: (finding.kind == "shared", -finding.cost))


def _sectors(accesses: Iterable[Access]) -> Iterator[int]:
    for access in accesses:
        for first, end in access.sectors:
            yield from range(first, end)


def _races(launch: Launch, label: str) -> Iterator[Finding]:
    for race in launch.races:
        if race.first == race.second:
            who = f"two lanes of program {race.first} store"
        else:
            who = f"programs {race.first} and {race.second} both store"
        yield Finding(
            "race",
            float("inf"),
            f"{label}{who} to {race.array}[{race.index}]: the last one wins, and no order is"
            " promised. Give each its own place (a block that runs past the end of its row lies in"
            " the next row: mask its columns), or add with tl.atomic_add.",
        )


def _fillers(launch: Launch, label: str) -> Iterator[Finding]:
    for array, (word, other) in launch.fillers.items():
        yield Finding(
            "filler",
            float("inf"),
            f"{label}lanes of {array} that a mask switches off count as {other:.3g} in tl.{word}:"
            " load them with an `other` that does not, 0 for a sum, -float('inf') for a maximum or"
            " under exp.",
        )


def _hazards(launch: Launch, label: str) -> Iterator[Finding]:
    writers = {
        (access.array, sector): number
        for number, program in enumerate(launch.programs)
        for access in program
        if access.store and not access.atomic
        for sector in _sectors([access])
    }
    for number, program in enumerate(launch.programs):
        for access in program:
            for sector in () if access.store else _sectors([access]):
                writer = writers.get((access.array, sector), number)
                if writer != number:
                    yield Finding(
                        "hazard",
                        float("inf"),
                        f"{label}program {launch.places[number]} reads from {access.array} what"
                        f" program {launch.places[writer]} stores in the same launch: programs"
                        " wait for nobody. Store to another array.",
                    )
                    return


def _of_array(launch: Launch, array: str, store: bool, label: str) -> Iterator[Finding]:
    programs = [
        [access for access in program if (access.array, access.store) == (array, store)]
        for program in launch.programs
    ]
    accesses = [access for program in programs for access in program]
    size = sum(access.size for access in accesses)
    crossing = sum(access.crossing for access in accesses)
    verb = "stored" if store else "read"
    together = any(access.lanes - access.masked > 1 for access in accesses)
    if together and crossing > TOO_MANY * size:
        yield _uncoalesced(array, verb, size, crossing, accesses, label)
        return
    turns = [Counter(_sectors(program)) for program in programs]
    readers = Counter(sector for turn in turns for sector in turn)
    extent = len(readers) * SECTOR
    again = sum(sum(turn.values()) - len(turn) for turn in turns) * SECTOR
    if again >= extent / 2:
        times = sum(sum(turn.values()) for turn in turns) / sum(map(len, turns))
        yield Finding(
            "again",
            again,
            f"{label}{array} is {verb} {times:.1f} times by the same program: {again:,} bytes more"
            " than once would be.",
            array,
        )
    shared = (sum(readers.values()) - len(readers)) * SECTOR
    if shared >= extent / 2 and not store:
        yield Finding(
            "shared",
            shared,
            f"{label}{array} is read by {sum(readers.values()) / len(readers):.1f} programs,"
            f" {shared:,} bytes more than once would be: let one program do more of it.",
            array,
        )


def _uncoalesced(
    array: str, verb: str, size: int, crossing: int, accesses: list[Access], label: str
) -> Finding:
    lines = max(access.lines for access in accesses)
    full = -(-WARP * (size // sum(a.lanes - a.masked for a in accesses)) // LINE)
    why = (
        f"a warp's {WARP} lanes touch {lines} lines of {LINE} bytes"
        if lines > 2 * full
        else f"of each sector of {SECTOR} bytes a part only is used"
    )
    share = f"{size / crossing:.0%} of the bytes that cross are asked for"
    return Finding(
        "uncoalesced", crossing - size, f"{label}when {array} is {verb}, {share}: {why}.", array
    )


def _lanes(launch: Launch, label: str) -> Iterator[Finding]:
    lanes = sum(access.lanes for access in launch.accesses)
    masked = sum(access.masked for access in launch.accesses)
    if lanes and masked > IDLE_LANES * lanes:
        yield Finding("masked", masked, f"{label}{masked / lanes:.0%} of the lanes are masked.")


def _hidden(launch: Launch, label: str) -> Iterator[Finding]:
    """Blocks that were computed and then thrown away whole, at their share of what was read."""
    if launch.hidden:
        share = launch.hidden / launch.masks
        yield Finding(
            "hidden",
            share * launch.traffic.crossing_in,
            f"{label}tl.where hides every score of {launch.hidden} in {launch.masks} blocks: their"
            " keys need not be read.",
        )


def _programs(launch: Launch, sms: int, label: str) -> Iterator[Finding]:
    programs = len(launch.programs)
    if programs < sms:
        plural = "program" if programs == 1 else "programs"
        yield Finding(
            "few_programs",
            0.0,
            f"{label}{programs} {plural} for {sms} SMs: {1 - programs / sms:.0%} of the chip"
            " idles.",
        )


def _round_trips(launches: Sequence[Launch]) -> Iterator[Finding]:
    """What one launch stores and a later one reads back: fusing them would keep it on the chip."""
    for i, earlier in enumerate(launches):
        for j, later in enumerate(launches[i + 1 :], i + 1):
            for array in sorted({access.array for access in earlier.accesses if access.store}):
                out = earlier.traffic_of(array).crossing_out
                back = later.traffic_of(array).crossing_in
                if back:
                    yield Finding(
                        "round_trip",
                        out + back,
                        f"launch {i + 1} stores {array} and launch {j + 1} reads it back:"
                        f" {out + back:,} bytes that one launch would keep on the chip.",
                    )

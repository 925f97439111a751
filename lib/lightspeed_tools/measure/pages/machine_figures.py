"""What chapters 1 and 2 show of a record: each function shows one table or figure, or says in
words what is lacking.

They are deterministic in the record: a shipped one gives the same page everywhere.
"""

from lightspeed import roofline as law
from lightspeed.catalog import accelerator
from lightspeed_show import figure, si, table
from lightspeed_tools.measure.instruments import latency_levels, roofline
from lightspeed_tools.measure.instruments.timing import Unavailable
from lightspeed_tools.measure.pages.charts import ladder_chart
from lightspeed_tools.measure.pages.record_tables import about
from lightspeed_tools.measure.records.record import NotMeasured, find, missing

COMPARED = "ryzen_9_7950x"  # the CPU of the catalog: a desktop's
NOISY = "too noisy to say"


def ladder_figure(record):
    """Draw a record's latency ladder, with measured levels and advertised caches."""
    try:
        chart = ladder_chart(record)
    except NotMeasured:
        return _lacking(record, "host.latency")
    figure(
        chart,
        caption=(
            "Time of one load after another over the size of what they are spread over. Bars:"
            f" levels that the data show. {about(record)}"
        ),
        alt=(
            "Latency over working-set size, both logarithmic: flat stretches, and climbs between"
            " them; the advertised cache sizes are vertical lines."
        ),
    )


def ladder_findings(record):
    """Say what the ladder shows, cache by cache."""
    print("\n".join(latency_levels.conclude(record)))


def in_flight(record, size, line=64):
    """Return how many cache lines one core has in flight, by Little's law: bandwidth times latency
    over the line.

    From the triad on one thread and the latency in a working set of `size` bytes. Raises
    NotMeasured. Larger sets would count time for translating addresses, too, which a triad, going
    straight on, does not spend.
    """
    return (
        find(record, "host.triad_bandwidth", threads=1).value
        * find(record, "host.latency", size=size).value
        / line
    )


def roofline_figure(record):
    """Draw the machine's own roofline, with the measured kernels."""
    try:
        chart = roofline.machine_chart(record, record["name"])
    except (KeyError, ValueError, Unavailable):
        return _lacking(record, "roofline")
    figure(
        chart,
        caption=(
            "Flat roofs: the fastest matrix products that repeat within 10 %. Slopes: the fastest"
            f" loops over memory; of two levels closer than a factor of {roofline.APART:g} the"
            " larger is drawn. Dots: kernels, at the intensity that is counted and the rate that"
            " was measured. Crosses do not repeat and prove nothing, not even a roof."
            f" {about(record)}"
        ),
        alt=(
            "A roofline on logarithmic axes. Slopes, one for each level of memory, meet flat roofs;"
            " each kernel is a dot."
        ),
    )


def roofline_table(record, guess=None):
    """Show kernels and their shares of the roof; `guess`: the reader's expectations."""
    try:
        points = roofline.points(record)
    except (KeyError, Unavailable):
        return _lacking(record, "roofline")
    rows, guess = [], guess or {}
    for p in points:
        row = [p.name, f"{p.intensity:.3g}", si(p.rate, "FLOP/s"), si(p.roof, "FLOP/s")]
        row.append(f"{p.share:.0%}" if p.trusted else NOISY)
        rows.append(row + [f"{guess[p.name]:.0%}" if p.name in guess else ""] * bool(guess))
    heads = ["kernel", "intensity, FLOP/byte", "measured", "roof above it", "share of the roof"]
    table(rows, heads + ["your guess"] * bool(guess), caption=about(record))


def peaks_table(record):
    """Show a record's peaks by type, beside a CPU of the catalog, for one core and for all."""
    machine, other = roofline.roof(record), accelerator(COMPARED)
    if not machine.peaks or not machine.bandwidths:
        return _lacking(record, "roofline")
    cores = record["machine"].get("usable_cores", 1)
    slow = roofline.emulated(record)
    rows = []
    for dtype, peak in machine.peaks.items():
        why = ", slower than fp32: computed by other means" if dtype in slow else ""
        rates = si(peak, _unit(dtype)), si(peak / cores, _unit(dtype))
        rows.append([f"{dtype} product{why}", *rates])
    fp32 = machine.peaks["fp32"]
    rows += [
        ["memory", si(machine.memory, "byte/s"), si(machine.memory / cores, "byte/s")],
        ["ridge in fp32", f"{law.ridge_point(fp32, machine.memory):.2g} FLOP/byte", ""],
        [
            f"{other.name}, fp32 by data sheet",
            si(other.fp32_vector, "FLOP/s"),
            si(other.fp32_vector / other.core_count, "FLOP/s"),
        ],
        [
            "its memory",
            si(other.hbm_bandwidth, "byte/s"),
            si(other.hbm_bandwidth / other.core_count, "byte/s"),
        ],
        [
            "its ridge in fp32",
            f"{law.ridge_point(other.fp32_vector, other.hbm_bandwidth):.2g} FLOP/byte",
            "",
        ],
    ]
    table(
        rows,
        ["", "all cores", "a core"],
        caption=f"What was reached, beside what a data sheet promises. {about(record)}",
    )


def _unit(dtype):
    return "OP/s" if dtype == "int8" else "FLOP/s"


def _lacking(record, key):
    reasons = [str(m) for m in missing(record) if key.startswith(m.key.split(".")[0])]
    print("Not measured here. " + " ".join(reasons or ["Run `lightspeed measure all` for more."]))

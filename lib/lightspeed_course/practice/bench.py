"""bench: one reading of the incident room at a lesson's end, and three suspects. Which goes?"""

from lightspeed_course.incidents.engine import ENGINE
from lightspeed_course.incidents.incident import incident_of
from lightspeed_course.incidents.serving import SERVING
from lightspeed_course.incidents.training import TRAINING
from lightspeed_course.incidents.week import WEEK
from lightspeed_course.practice.forms import Panel

DRAWS = 6  # of each suspect; a reading of one that never looks like this rules it out
# Lesson -> the setting, what is wrong in it, the reading, and three suspects.
BENCHES = {
    "01": (TRAINING, "sparse_peak", "settings", ("recompute", "sparse_peak", "padding")),
    "02": (TRAINING, "padding", "roofline", ("recompute", "sparse_peak", "padding")),
    "03": (TRAINING, "slow_nic", "profile", ("slow_nic", "straggler", "padding")),
    "04": (SERVING, "bursty_arrivals", "busy", ("bursty_arrivals", "more_traffic", "replica_down")),
    "05": (WEEK, "narrow_plan", "profile", ("narrow_plan", "padding", "recompute")),
    "06.1": (TRAINING, "recompute", "profile", ("recompute", "numa", "sparse_peak")),
    "06.2": (
        TRAINING, "tensor_over_network", "nccl", ("slow_nic", "straggler", "tensor_over_network"),
    ),
    "06.3": (TRAINING, "straggler", "clocks", ("straggler", "slow_nic", "throttling")),
    "07": (TRAINING, "numa", "nccl", ("straggler", "numa", "slow_nic")),
    "08": (TRAINING, "straggler", "pairs", ("padding", "straggler", "slow_nic")),
    "09": (ENGINE, "no_prefixes", "caches", ("few_blocks", "no_prefixes", "large_chunk")),
    "10": (
        TRAINING, "sparse_peak", "profile", ("recompute", "tensor_over_network", "sparse_peak"),
    ),
    "11": (TRAINING, "slow_nic", "files", ("slow_nic", "numa", "straggler")),
}  # fmt: skip


def findings(setting, cause, measurement):
    """Return an expert's findings from this measurement, over draws of jobs with this cause."""
    cases = (incident_of(f"bench {cause} {n}", setting, setting.cause(cause)) for n in range(DRAWS))
    return {case.findings[measurement] for case in cases}


def _cells(table):
    """{(row, column): text} of a Markdown table, under the names that it prints, or of a log of
    nccl-tests its busbw.
    """
    if table.startswith("```"):
        rows = [line.split() for line in table.splitlines() if line.strip()[:1].isdigit()]
        return {(f"{int(row[0]):,} bytes", "busbw"): f"{row[7]} GB/s" for row in rows}
    lines = [line for line in table.splitlines() if line.startswith("|") and "--:" not in line]
    head, *rows = ([cell.strip() for cell in line.strip("|").split("|")] for line in lines)
    return {
        (row[0], column): text
        for row in rows
        for column, text in zip(head[1:], row[1:], strict=False)
    }


def numbers_that_tell(table, other):
    """A sentence with the numbers of a reading that differ from those of the same job with another
    cause, three at most.
    """
    here, there = _cells(table), _cells(other)
    apart = [
        f"*{', '.join(filter(None, place))}*: {text} here, {there[place]} with it"
        for place, text in here.items()
        if there.get(place, text) != text
    ]
    if not apart:
        return "On this job every number would be the same with it."
    return f"On this job it would show in {'; '.join(apart[:3])}{'; …' if apart[3:] else ''}."


def bench(lesson):
    """A form: what a reading of a sick job shows, and which of three suspects it rules out. Raises
    ValueError for a lesson that has none.
    """
    if lesson not in BENCHES:
        raise ValueError(f"bench: lesson = {lesson!r}: expected one of {', '.join(BENCHES)}")
    setting, cause, reading, suspects = BENCHES[lesson]
    case = incident_of(f"bench of lesson {lesson}", setting, setting.cause(cause))
    item = setting.measurement(reading)
    names = {id: setting.cause(id).name for id in suspects}
    prompt = (
        f"**The incident room.** {case.brief}\n\nYou buy *{item.name}*, for {item.minutes}"
        f" minutes:\n\n{case.show(reading)}\n\nWhich of three suspects does it rule out?"
    )

    def submit(values):
        if not values[0]:
            return "**Not answered.** Choose one of the three.", "Not answered.", "bad"
        now = case.findings[reading]
        then = findings(setting, values[0], reading)
        with_it = incident_of(f"bench of lesson {lesson}", setting, setting.cause(values[0]))
        numbers = numbers_that_tell(case.show(reading), with_it.show(reading))
        if now not in then:
            reply = (
                f"**Right.** An expert reads: {now}. With that cause it would be:"
                f" {' or '.join(sorted(then))}. {numbers}"
            )
            return reply, "Right.", "good"
        reply = (
            f"**That one stays.** An expert reads: {now}. With that cause it would be the"
            f" same, so this reading does not clear it. {numbers} Which of the others would show"
            " here as something else?"
        )
        return reply, "That one stays.", "bad"

    options = [[id, name] for id, name in names.items()]
    static = prompt + "".join(f"\n\n- {name}" for name in names.values())
    return Panel(prompt, [{"label": "Ruled out", "options": options}], submit, static=static)

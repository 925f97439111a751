"""Chapter 8: one lost packet between two hosts, and many senders in front of one port, drawn from
the simulators in `lightspeed_models.simulators.network_simulation`.
"""

import functools
from random import Random
from statistics import mean

from lightspeed import networks as net
from lightspeed.catalog import link
from lightspeed.fabrics import ecmp_collisions
from lightspeed_course.explorers.network import (
    CONTROLS,
    DELAY,
    TIMERS,
    how_long,
    run,
    thresholds,
    what_happened,
)
from lightspeed_models.simulators.network_simulation import transmissions
from lightspeed_show import (
    Axis,
    Boxes,
    Chart,
    Choice,
    Formula,
    Line,
    LogSlider,
    Play,
    Points,
    Rule,
    Slider,
    Text,
    View,
    explorer,
    si,
)

# ---------------------------------------------------------------- a lost packet

RULES = {
    "go back n": "go_back_n",
    "selective repeat": "selective_repeat",
    "go back zero": "go_back_zero",
}
PACKETS, BEFORE = 12, 2  # of the message, and those before the one that is lost
WINDOWS = (3, 9)
TOP, FOOT = 1.0, 0.0  # the sender's line and the receiver's
LOOKS = {"kept": "blue", "thrown away": "grey", "lost": "orange"}


@functools.lru_cache(maxsize=32)
def sent(rule, window):
    """Every transmission of a message of which one packet is lost once."""
    return tuple(transmissions(rule, PACKETS, {BEFORE}.__contains__, window))


def lost_view(rule, window, moment):
    """Both hosts over time, in packet times: what has left, and what has arrived, by now."""
    packets, way = sent(rule, window), (window - 1) // 2
    end, repeat, noticed = packets[-1].slot + 1, BEFORE + window, BEFORE + 1 + way
    kinds = {kind: [] for kind in LOOKS}
    for each in packets[:moment]:
        kinds["lost" if each.lost else "kept" if each.kept else "thrown away"].append(each)
    marks = [Line([0, end + way], [y, y], color="black") for y in (TOP, FOOT)]
    for kind, color in LOOKS.items():
        strokes = [stroke(each, way, moment) for each in kinds[kind]]
        marks += [Line(*ends, color=color) for ends in strokes]
        marks += [Text(e.slot, TOP + 0.1, str(e.packet + 1), color) for e in kinds[kind]]
        nowhere = ((0, -9), (TOP, TOP))
        tips = [(xs[1], ys[1]) for xs, ys in strokes or [nowhere]]
        keys = [str(each.slot) for each in kinds[kind]] or [f"no {kind}"]
        marker = "cross" if kind == "lost" else "circle"
        marks.append(Points(*zip(*tips, strict=True), kind, color=color, marker=marker, keys=keys))
    if moment > noticed:
        now = min(moment, repeat)
        high = FOOT + (now - noticed) / way * (TOP - FOOT)
        marks.append(Line([noticed, now], [FOOT, high], color="purple", dash=True, arrow=True))
        marks.append(Text(noticed, FOOT - 0.13, f"{BEFORE + 1} is missing", "purple"))
    marks += [
        Text(0, TOP + 0.26, "sender", anchor="start"),
        Text(0, FOOT - 0.13, "receiver", anchor="start"),
    ]
    chart = Chart(
        Axis(domain=(-0.6, end + way + 0.6)),
        Axis(domain=(FOOT - 0.3, TOP + 0.4)),
        marks,
        height=300,
        bare=True,
    )
    packets_of = {k: [e.packet for e in kinds[k] if e.slot + way <= moment] for k in LOOKS}
    facts = {
        "sent": f"{len(packets[:moment])}",
        "kept": f"{len({*packets_of['kept']})} of {PACKETS}",
        "thrown away": f"{len(packets_of['thrown away'])}",
    }
    words = lost_words(rule, window, moment, end, noticed, repeat)
    law = cost(rule, window, end)
    return View(chart, words, facts, end + way + 1, law, opens=noticed + 1)


def stroke(each, way, moment):
    """From where it left to where it is by now; a lost one ends half way."""
    now = min(moment, each.slot + (way / 2 if each.lost else way))
    return (each.slot, now), (TOP, TOP - (now - each.slot) / way * (TOP - FOOT))


def cost(rule, window, end):
    """What the message took: its packets, and what the loss adds under this rule."""
    extra = {"selective_repeat": "1", "go_back_n": "window", "go_back_zero": "before + window"}[
        rule
    ]
    names = {"packets": PACKETS, "window": window, "before": BEFORE}
    values = {n: (v, "") for n, v in names.items() if n in f"packets {extra}"}
    return Formula("packet times", f"packets + {extra}", values, (end, ""))


def lost_words(rule, window, moment, end, noticed, repeat):
    """What the sender knows, and what it will send."""
    number = BEFORE + 1
    if moment <= number:
        return f"A packet leaves in each packet time. Number {number} will not arrive."
    if moment <= noticed:
        return "The sender can't know yet. It goes on, and so would you."
    if moment <= repeat:
        return (
            f"Number {number + 1} arrives where {number} was due: a gap. The receiver asks for"
            f" {number}, but the question has to travel, too."
        )
    if moment < end:
        repeated = {
            "selective_repeat": f"{number} alone",
            "go_back_n": f"{number}, and all that followed it",
            "go_back_zero": "the message again, from its first packet",
        }[rule]
        return (
            f"The sender hears of it {window} packet times after {number} left. It sends"
            f" {repeated}."
        )
    times = end - PACKETS
    return f"Sent in {end} packet times, for {PACKETS} packets: the loss cost {times} of them."


def explore_lost():
    """A lost packet, played, under three rules."""
    return explorer(
        lost_view,
        [
            Choice("rule", "the adapter", RULES),
            Slider("window", "packets in a round trip", *WINDOWS, 5, step=2),
            Play("moment", "packet time", PACKETS + BEFORE + WINDOWS[1] + WINDOWS[1] // 2),
        ],
        caption=(
            f"{PACKETS} packets, of which number {BEFORE + 1} is lost. A stroke is a packet on its"
            " way, and time goes to the right. Count the grey ones: they were sent for nothing."
        ),
        alt=(
            "Two lines over time, the sender's above and the receiver's below, with a slanted"
            " stroke for each packet. One stroke ends half way in a cross. A dashed one leads back"
            " up, and the sender repeats packets from there."
        ),
    )


# ---------------------------------------------------------------- an incast

BURST, LINK = 262144.0, "ethernet_400g"
FILL, DRAIN, AFTER = 16, 14, 10  # moments while the bursts come in, drain, and after that
TANK = (5.6, 8.4, 1.0, 9.0)  # left, right, foot, brim, in units of the picture


def incast_view(control, senders, buffer, moment):
    """The queue at a receiver's port as a tank, at a moment of a simulated incast."""
    line = float(link(LINK).bandwidth)
    marks, pause = thresholds(senders, line, buffer)
    here = run(senders, BURST, LINK, buffer, control, TIMERS[1])
    ideal = net.incast_time(senders, BURST, line) + 2 * DELAY
    full_at = BURST / line + 2 * DELAY
    times = clock(here, full_at, ideal)
    time = times[moment]
    # The same run, looked at more closely while the bursts come in.
    early = run(senders, BURST, LINK, buffer, control, TIMERS[1], full_at)
    moments = early.moments if time < full_at else here.moments
    state = [m for m in moments if m.time <= time][-1]
    is_last = moment == len(times) - 1
    facts = {
        "time": si(time, "s"),
        "in the queue": si(state.queue, "byte"),
        "packets lost so far": f"{state.lost:,}",
        "packets marked so far": f"{state.marked:,}",
        "the link alone needs": si(ideal, "s"),
        "it took": si(here.end, "s") if is_last else "play to the end",
    }
    words = [what_happened(here, control, pause), how_long(here, ideal)]
    levels = {"full": buffer}
    if "marks" in control:
        levels["marks all"] = marks[1]
    if "pauses" in control and pause is not None:
        levels["pauses"] = pause
    return View(
        tank(senders, state, buffer, levels, time >= times[-1]),
        " ".join(words) if is_last else incast_words(state, senders, buffer),
        facts,
        len(times),
        Formula(
            "queue, if nothing slows it",
            "(senders - 1) * burst",
            {"senders": (senders, ""), "burst": (BURST, "byte")},
            (float(net.incast_queue(senders, BURST, line, line)), "byte"),
        ),
        opens=FILL // 2 - 1,
    )


def clock(here, full_at, ideal):
    """The times of the moments: close together while the bursts come in, and wide apart later."""
    times = [full_at * i / FILL for i in range(FILL)]
    times += [full_at + (ideal - full_at) * i / DRAIN for i in range(DRAIN)]
    late = max(here.end - ideal, 0)
    after = AFTER if late > 0.02 * ideal else 1
    return times + [ideal + late * i / after for i in range(after)] + [max(here.end, ideal)]


def incast_words(state, senders, buffer):
    """What the port and its senders do at this moment."""
    if state.stopped:
        return "The port has stopped its senders, and drains. Nobody sends."
    if not state.sending and not state.queue and state.lost:
        return (
            "Nobody sends, and the port stands idle: the last packet of a burst was lost, nothing"
            " came after it to show the gap, and its sender waits for a timer."
        )
    if not state.sending:
        return "All bursts are in the queue. The port drains them, one packet at a time."
    full = state.queue / buffer
    if state.lost and full > 0.9:
        return f"The tank is full. Packets that found no room in it: {state.lost:,}."
    marks = f" Packets that carry a mark: {state.marked:,}." if state.marked else ""
    return (
        f"{state.sending} of {senders} send, each as fast as the one pipe that drains the tank. It"
        f" is {si(full, '%', 2)} full.{marks}"
    )


def tank(senders, state, buffer, levels, over):
    """Pipes that lead into a tank, and one that leads out."""
    left, right, foot, brim = TANK
    marks = [Boxes([left], [right], [foot], [brim], color="grey", soft=True)]
    for i in range(senders):
        y, mouth = 9.4 - 8.8 * (i + 0.5) / senders, brim + 0.35 - 0.2 * i / senders
        color = "orange" if state.stopped else "blue" if i < state.sending else "grey"
        marks.append(Line([0.9, left], [y, mouth], color=color, width=1.5))
        marks.append(Boxes([0.1], [0.9], [y - 3 / senders], [y + 3 / senders], color=color))
    high = foot + (brim - foot) * min(state.queue / buffer, 1)
    marks.append(Boxes([left], [right], [foot], [high], color="blue", keys=["queue"]))
    drains = "grey" if over or not state.queue else "blue"
    marks.append(Line([right, 11.2], [foot + 0.4, foot + 0.4], color=drains, width=4, arrow=True))
    marks.append(Text(11.2, foot + 1.1, "receiver", anchor="end"))
    marks.append(Text(0.1, 9.75, "senders", anchor="start"))
    for level, (text, color) in heights(levels).items():
        y = foot + (brim - foot) * level / buffer
        marks.append(Line([left, right], [y, y], color=color, dash=True))
        marks.append(Text(right + 0.2, y, text, color, "start"))
    return Chart(Axis(domain=(0, 11.5)), Axis(domain=(0, 10)), marks, height=320, bare=True)


def heights(levels):
    """Queue -> (words, colour); what is as high as the brim shares its label."""
    colors = {"full": "black", "marks all": "purple", "pauses": "amber"}
    above = [text for text, level in levels.items() if level > 0.9 * levels["full"]]
    labels = {levels["full"]: (", ".join(above), "black")}
    return labels | {
        level: (text, colors[text]) for text, level in levels.items() if text not in above
    }


def explore_incast():
    """Many senders into one port, played; what slows them is for the reader to choose."""
    return explorer(
        incast_view,
        [
            Choice("control", "what slows the senders", list(CONTROLS)),
            LogSlider("senders", "senders", 2, 32, 16, base=2, whole=True),
            LogSlider("buffer", "buffer of the port", 5e5, 3.2e7, 2e6, base=2, unit="byte"),
            Play("moment", "moment", FILL + DRAIN + AFTER),
        ],
        caption=(
            f"Each sender has {si(BURST, 'byte')} and begins at once. The clock runs slowly while"
            " the tank fills, and faster later."
        ),
        alt=(
            "Pipes lead from a column of senders into one tank, which fills, and a single pipe"
            " leads out to the receiver. Dashed lines on the tank show where it is full, and where"
            " the port marks or pauses."
        ),
    )


# ---------------------------------------------------------------- flows and links

LINKS, THROWS = 8, 30
FIRST = 3  # of the seeds: the next one leaves two links empty, as usual, and puts three on one


def bins_view(flows, moment):
    """Where a hash puts so many flows: link by link, at one of many throws."""
    throws = [thrown(flows, seed) for seed in range(moment + 1)]
    now = throws[-1]
    counts = [now.count(place) for place in range(LINKS)]
    idle, full = counts.count(0), max(counts)
    each = LINKS / flows  # of a link's load
    heights = [now[:i].count(place) for i, place in enumerate(now)]
    top = each * max(max(loads(thrown(flows, seed))) for seed in range(THROWS)) + 0.4
    balls = Boxes(
        [place + 0.12 for place in now],
        [place + 0.88 for place in now],
        [each * h + 0.06 * each for h in heights],
        [each * (h + 1) - 0.06 * each for h in heights],
        color="blue",
        keys=[str(i) for i in range(flows)],
    )
    names = [Text(place + 0.5, -0.35, str(place + 1), "grey") for place in range(LINKS)]
    floor = [Line([place + 0.06, place + 0.94], [0, 0], color="black") for place in range(LINKS)]
    chart = Chart(
        Axis(domain=(0, LINKS)),
        Axis(domain=(-0.7, top)),
        [*floor, balls, *names, Rule(y=1)],
        height=250,
        bare=True,
    )
    law = ecmp_collisions(flows, LINKS)
    late = max(counts) * each
    facts = {
        "idle links": f"{idle} of {LINKS}",
        "idle, mean of the throws so far": si(mean(loads(t).count(0) for t in throws), ""),
        "the fullest link": f"{late:.3g} times its even load",
        "fullest, mean so far": f"{each * mean(max(loads(t)) for t in throws):.3g} times",
    }
    words = (
        f"{idle} of {LINKS} links {'stands' if idle == 1 else 'stand'} idle, and the fullest has"
        f" {full} of {flows} flows. The job takes {late:.3g} times as long as with an even spread."
    )
    share = Formula(
        "share of links that stays idle",
        "(1 - 1 / links) ** flows",
        {"links": (LINKS, ""), "flows": (flows, "")},
        (float(law.idle), "%"),
    )
    return View(chart, words, facts, THROWS, share, opens=1)


@functools.lru_cache(maxsize=256)
def thrown(flows, seed):
    """The link of each flow."""
    draw = Random(seed + FIRST)
    return tuple(draw.randrange(LINKS) for _ in range(flows))


def loads(throw):
    return [throw.count(place) for place in range(LINKS)]


def explore_bins():
    """Flows hashed to links, thrown again with each step."""
    return explorer(
        bins_view,
        [
            Choice("flows", "flows", {"one each": 8, "each in four": 32}),
            Play("moment", "throw", THROWS - 1),
        ],
        caption=(
            f"A hash has put flows on {LINKS} links; the dashed line is an even spread. Each step"
            " throws again. How often does every link get its share?"
        ),
        alt=(
            "Eight columns, one for each link, with a box for each flow that was hashed to it. Some"
            " columns are empty and some stand above the line of an even spread."
        ),
    )

"""Chapter 7: one transfer, read by who waits for it (algbw) and on the wire (busbw)."""

from lightspeed.catalog import find, link
from lightspeed.collectives import algbw_from_busbw, busbw, busbw_factor
from lightspeed_show import (
    Axis,
    Boxes,
    Chart,
    Choice,
    Formula,
    LogSlider,
    Rule,
    View,
    explorer,
    si,
)

# What the buffer does while it crosses, pass by pass.
PASSES = {
    "all_reduce": ("adding up", "handing out"),
    "all_gather": ("handing out",),
    "broadcast": ("passing on",),
}
MOST = 1000  # ranks: those of the question
COLORS = ("blue", "green")


def transfer():
    """What the question says: buffer (byte), and the rate a node sent and can send (byte/s)."""
    note = find("efa_note")
    rate = float(busbw("all_reduce", MOST, float(note.algbw_125)))
    return float(note.message), rate, float(link("efa_p5").bandwidth_per_node)


def view(collective, ranks):
    """The bytes on the wire as areas, rate times time, beside the buffer of who waits."""
    size, rate, line = transfer()
    factor = float(busbw_factor(collective, ranks))
    algbw = float(algbw_from_busbw(collective, ranks, rate))
    time, names = size / algbw, PASSES[collective]
    longest = size * float(busbw_factor("all_reduce", MOST)) / rate
    each, crossing = time / len(names), rate * time / len(names)
    buffer = {"labels": [si(size, "byte")], "label": "your buffer", "color": "orange"}
    wait, traffic = Boxes([0], [time], [0], [algbw], **buffer), []
    for i, (name, color) in enumerate(zip(names, COLORS, strict=False)):
        texts = {"labels": [si(crossing, "byte")], "label": name, "color": color}
        traffic.append(Boxes([i * each], [(i + 1) * each], [0], [rate], **texts))
    charts = [
        Chart(
            Axis("time", "s", domain=(0, 1.05 * longest)),
            Axis("rate", "byte/s", domain=(0, 1.15 * line)),
            [*marks, Rule(y=line, label="what a node can send", color="black")],
            title=title,
            height=270,
        )
        for title, marks in (
            (f"What you wait for: algbw {si(algbw, 'byte/s')}", [wait]),
            (f"What the wire carries: busbw {si(rate, 'byte/s')}", traffic),
        )
    ]
    crossed = "once" if factor == 1 else f"{factor:.4g} times"
    words = (
        f"You wait {si(time, 's')} for {si(size, 'byte')}: an algbw of"
        f" {si(algbw, 'byte/s')}. Each byte crossed the wire {crossed} meanwhile, so the wire"
        f" carried {si(rate, 'byte/s')}, {si(rate / line, '%', 2)} of its line."
    )
    facts = {
        "crossings of a byte": f"{factor:.4g}",
        "algbw": si(algbw, "byte/s"),
        "busbw": si(rate, "byte/s"),
        "algbw over the line": si(algbw / line, "%", 2),
        "busbw over the line": si(rate / line, "%", 2),
    }
    expression = {"all_reduce": "2 * (n - 1) / n", "all_gather": "(n - 1) / n", "broadcast": "1"}
    law = Formula(
        "busbw",
        f"{expression[collective]} * buffer / time",
        ({"n": (ranks, "")} if collective != "broadcast" else {})
        | {"buffer": (size, "byte"), "time": (time, "s")},
        (float(busbw(collective, ranks, algbw)), "byte/s"),
    )
    return View(charts, words, facts, formula=law)


def explore_wire():
    """The same wire at the same rate, and what the caller sees of it."""
    return explorer(
        view,
        [
            Choice("collective", "collective", list(PASSES)),
            LogSlider("ranks", "ranks", 2, MOST, MOST, per_decade=8, whole=True),
        ],
        caption=(
            "An area is bytes. The wire always carries the same rate; with more ranks each byte"
            " crosses it more often, so the caller waits longer for the same buffer."
        ),
        alt=(
            "Two charts of rate over time, with the same axes. Left, a box for the buffer, as high"
            " as the algbw. Right, boxes for its crossings of the wire, as high as the busbw and"
            " done at the same time. A line above both is what a node can send."
        ),
    )

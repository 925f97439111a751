"""Chapter 6: what each expert receives when one of them is popular."""

from lightspeed.parallel import skewed_exchange
from lightspeed_show import Axis, Boxes, Chart, Rule, Slider, Text, View, explorer, si

GPUS, TOKENS = 4, 12  # an expert each; tokens of each
COLORS = ("blue", "orange", "green", "purple")  # of the GPU that a token comes from


def wanted(hot):
    """Return how many tokens of each GPU go to each expert."""
    return (hot, *[(TOKENS - hot) // (GPUS - 1)] * (GPUS - 1))


def view(hot):
    """A column an expert, a box a token, in the colour of the GPU that sends it."""
    counts, boxes_by_color = wanted(hot), {color: [] for color in COLORS}
    for expert, each in enumerate(counts):
        for place in range(each * GPUS):
            gpu = place // each
            y, x = place // 4, expert * 5 + place % 4
            key = f"{gpu}-{sum(counts[:expert]) + place % each}"
            boxes_by_color[COLORS[gpu]].append((x + 0.06, x + 0.94, y + 0.06, y + 0.94, key))
    marks = []
    for gpu, (color, boxes) in enumerate(boxes_by_color.items()):
        *sides, keys = zip(*boxes, strict=True)
        marks.append(Boxes(*sides, f"from GPU {gpu}", color=color, keys=keys))
    marks += [Text(e * 5 + 2, -0.7, f"expert {e}", "grey") for e in range(GPUS)]
    marks.append(Rule(y=TOKENS / 4, label="a fair share"))
    fair, now = (skewed_exchange(TOKENS, 1, GPUS, share, 1) for share in (1 / GPUS, hot / TOKENS))
    slower = max(now.hot_receives, now.other_sends) / fair.hot_receives
    facts = {
        "GPU 0 receives from the others": si(now.hot_receives),
        "with a fair router": si(fair.hot_receives),
        "the exchange takes": f"{si(slower)} times as long",
    }
    verdict = (
        "A fair router: each expert gets as many, and all are done at the same time."
        if hot == TOKENS // GPUS
        else f"Expert 0 gets {si(hot * GPUS)} of {si(GPUS * TOKENS)} tokens, and the others wait"
        " for the fullest column: to send, to compute, and to send back."
    )
    chart = Chart(Axis(domain=(-0.2, 19.2)), Axis(domain=(-1.2, 9.4)), marks, height=300, bare=True)
    return View(chart, verdict, facts)


def explore_experts():
    """One popular expert among four."""
    return explorer(
        view,
        [Slider("hot", "tokens of each GPU that want expert 0", 3, 9, 6, step=3)],
        caption=f"Four GPUs with {TOKENS} tokens each, and an expert each. The fullest column is"
        " the clock.",
        alt="Four columns of small boxes, one for each expert, in the colours of the GPUs that send"
        " them. The first column grows with the popularity of its expert, the others shrink.",
    )

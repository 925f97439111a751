"""A small bank to test the machinery: a question of each kind, and of each generic slip."""

from lightspeed import roofline as r
from lightspeed_course.practice.amounts import nice, powers_of_two
from lightspeed_course.practice.questions import Misconception, Parameter, Question, register
from lightspeed_show.format import si

CHIPS = {"fast": ("the fast chip", 400e12, 2e12), "slow": ("the slow chip", 100e12, 1e12)}


def chip_name(key):
    return CHIPS[key][0]


def step(batch, chip):
    _, peak, bandwidth = CHIPS[chip]
    return r.time_bounds(
        r.matmul_flops(batch, 8192, 8192), r.matmul_bytes(batch, 8192, 8192), peak, bandwidth
    )


def longer_clock(batch, chip):
    return "peak" if step(batch, chip).compute_bound else "bandwidth"


def shorter_clock(batch, chip):
    return "bandwidth" if step(batch, chip).compute_bound else "peak"


def transfer_steps(size, link, gpus):
    return (
        f"One GPU holds {si(size, 'byte')}. The link moves {si(link, 'byte/s')}.\n\nAll {gpus}"
        f" shards go over the one link: {si(gpus * size, 'byte')} / {si(link, 'byte/s')} ="
        f" {si(r.transfer_time(gpus * size, link), 's')}."
    )


register(
    Question(
        id="sample.transfer",
        chapter="02_roofline",
        level="apply",
        prompt="Each of {{gpus}} GPUs holds a shard of {{size}}. How long does it take to send all shards over one {{link}} link?",
        parameters={
            "size": Parameter(2, nice(1, 50), "GB"),
            "link": Parameter(400, (100, 200, 400, 800), "Gbit/s"),
            "gpus": Parameter(16, (12, 16, 24, 32)),
        },
        expected=lambda size, link, gpus: r.transfer_time(gpus * size, link),
        unit="ms",
        tolerance=0.02,
        solution=transfer_steps,
        misconceptions=(
            Misconception("wire both ways", lambda size, link, gpus: gpus * size / (link * 3),
                          "You let the link do more than its rate says. Which direction does the data flow?"),
            Misconception("product", lambda size, link, gpus: gpus * size * link * 1e-18,
                          "You multiplied size and rate. Cancel the units: which operation leaves a time?"),
            Misconception("n minus one", lambda size, link, gpus: (gpus - 1) * size / link,
                          "You left one shard out. Does any shard stay where it is?"),
        ),
    ),
    Question(
        id="sample.step_limit",
        chapter="02_roofline",
        level="design",
        kind="choice",
        prompt="A matmul with {{batch}} tokens runs on {{chip}}. Which one change shortens it?",
        parameters={
            "batch": Parameter(16, (8, 16, 2048, 4096)),
            "chip": Parameter("fast", tuple(CHIPS), show=chip_name),
        },
        options={
            "bandwidth": "Twice the memory bandwidth.",
            "peak": "Twice the peak FLOP/s.",
            "capacity": "Twice the memory capacity of {{chip}}.",
            "clock": "A faster host CPU.",
        },
        expected=longer_clock,
        solution=lambda batch, chip: f"Arithmetic takes {si(step(batch, chip).math, 's')}, reading takes {si(step(batch, chip).comms, 's')}.",
        misconceptions=(
            Misconception("the shorter clock", shorter_clock,
                "Two clocks run at once. Which of them do you wait for?"),
            Misconception("capacity is speed", lambda batch, chip: "capacity",
                "Room to store weights is not the rate at which they are read."),
            Misconception("the host", lambda batch, chip: "clock",
                "Who runs the matmul once it is launched?"),
        ),
    ),
    Question(
        id="sample.crossover_size",
        chapter="01_numbers_to_know",
        level="apply",
        kind="function",
        prompt="Write `crossover_size(latency, bandwidth)`: the size at which latency and bandwidth cost the same.",
        parameters={
            "latency": Parameter(1e-6, (1e-7, 1e-6, 5e-6, 1e-3, 0.05), "s"),
            "bandwidth": Parameter(50e9, (1.25e9, 50e9, 450e9, 2e12), "byte/s"),
        },
        edges=({"latency": 0},),
        expected=r.crossover_size,
        unit="byte",
        tolerance=0.001,
        solution="Set latency = size / bandwidth and solve for the size:\n\n```python\ndef crossover_size(latency, bandwidth):\n    return latency * bandwidth\n```",
        misconceptions=(
            Misconception("ratio", lambda latency, bandwidth: bandwidth / latency,
                "Write the units of your expression: are they bytes?"),
            Misconception("half", lambda latency, bandwidth: latency * bandwidth / 3,
                "Two terms are equal; nothing is shared out."),
            Misconception("adds", lambda latency, bandwidth: latency + bandwidth,
                "Seconds and bytes per second cannot be added."),
        ),
    ),
    Question(
        id="sample.two_clocks",
        chapter="02_roofline",
        level="apply",
        kind="array",
        prompt="A matmul with {{batch}} tokens runs on {{chip}}. How long do its arithmetic and its traffic take?",
        parameters={
            "batch": Parameter(64, powers_of_two(16, 1024)),
            "chip": Parameter("fast", tuple(CHIPS), show=chip_name),
        },
        names=("arithmetic", "traffic"),
        expected=lambda batch, chip: (step(batch, chip).math, step(batch, chip).comms),
        unit="µs",
        tolerance=0.05,
        solution=lambda batch, chip: f"{si(r.matmul_flops(batch, 8192, 8192), 'FLOP')} over the peak; {si(r.matmul_bytes(batch, 8192, 8192), 'byte')} over the bandwidth.",
        misconceptions=(
            Misconception("no adds",
                lambda batch, chip: (step(batch, chip).math / 2, step(batch, chip).comms),
                          "How many operations is a multiply-add?"),
            Misconception("fp32 traffic",
                lambda batch, chip: (step(batch, chip).math, step(batch, chip).comms * 2),
                          "How wide is one element here?"),
            Misconception("swapped",
                lambda batch, chip: (step(batch, chip).comms, step(batch, chip).math),
                          "Which of the two is paid per FLOP?"),
        ),
    ),
    Question(
        id="sample.hop",
        chapter="01_numbers_to_know",
        level="recall",
        prompt="How long does one hop take?",
        expected=lambda: 1.5e-6,
        unit="µs",
        tolerance=0.1,
        solution="A hop is {{nothing}}.".replace("{{nothing}}", "a switch and a wire"),
        misconceptions=(
            Misconception("wire only", lambda: 5e-9, "You counted the wire alone."),
            Misconception("round trip", lambda: 3.6e-6,
                "You went there and back, and waited in a queue."),
            Misconception("software", lambda: 40e-6, "You counted a kernel's network stack."),
        ),
    ),
    Question(
        id="sample.ridge",
        chapter="02_roofline",
        level="recall",
        prompt="At which intensity do a peak of {{peak}} and a bandwidth of {{bandwidth}} meet?",
        parameters={"peak": Parameter(312e12, (200e12, 312e12, 990e12), "FLOP/s"),
            "bandwidth": Parameter(2, nice(1, 8), "TB/s")},
        expected=r.ridge_point,
        unit="FLOP/byte",
        tolerance=0.01,
        solution=lambda peak, bandwidth: f"{si(peak, 'FLOP/s')} / {si(bandwidth, 'byte/s')}.",
        misconceptions=(
            Misconception("element, not byte", lambda peak, bandwidth: 4 * peak / bandwidth,
                "Is bandwidth counted in elements?"),
            Misconception("product", lambda peak, bandwidth: peak * bandwidth,
                "Cancel the units of the product."),
            Misconception("square", lambda peak, bandwidth: (peak / bandwidth) ** 2,
                "One division is enough."),
        ),
    ),
)  # fmt: skip

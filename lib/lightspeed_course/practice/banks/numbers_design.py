"""Questions of chapter 1: designs, in which the numbers decide."""

from __future__ import annotations

from lightspeed import energy, roofline
from lightspeed.catalog import accelerator, memory
from lightspeed_course.practice.amounts import nice
from lightspeed_course.practice.banks.numbers import CHAPTER, horowitz
from lightspeed_course.practice.derivation import derivation, step
from lightspeed_course.practice.questions import Misconception, Parameter, Question, register
from lightspeed_show.format import si

what_helps = Question(
    id="numbers.what_helps",
    chapter=CHAPTER,
    level="design",
    kind="choice",
    prompt=(
        "Requests of {{size}} go over {{bandwidth}} of bandwidth and a path with {{latency}} of"
        " latency, one after the other. What shortens one request most?"
    ),
    parameters={
        "size": Parameter(64, (1, 16, 64), "KB"),
        "bandwidth": Parameter(10, (10, 100), "Gbit/s"),
        "latency": Parameter(30, (20, 30, 45), "ms"),
    },
    options={
        "nearer": "A server at half the distance.",
        "wider": "Twice the bandwidth.",
        "smaller": "Half the size, by compression.",
        "faster": "A faster network card in the server.",
    },
    expected=lambda size, bandwidth, latency: (
        "nearer" if latency / 2 > size / bandwidth / 2 else "wider"
    ),
    solution=lambda size, bandwidth, latency: derivation(
        step(
            "How long do the bytes take to go through?",
            "size / bandwidth",
            size=(size, "byte"),
            bandwidth=(bandwidth, "byte/s"),
        ),
        step(
            "Beside the latency that is",
            "size / bandwidth / latency",
            (size / bandwidth / latency, "%"),
            size=(size, "byte"),
            bandwidth=(bandwidth, "byte/s"),
            latency=(latency, "s"),
        ),
        "A wider link or fewer bytes change the small term. Only a shorter path changes the larger"
        " one.",
    ),
    holds={
        "Only a shorter path": lambda size, bandwidth, latency: latency > 100 * size / bandwidth,
        "A server at half": "design: an option",
        "Twice the bandwidth": "design: an option",
        "Half the size": "design: an option",
    },
    misconceptions=(
        Misconception(
            "more bandwidth",
            lambda **_: "wider",
            "Work out both terms. Which one would a wider link change?",
        ),
        Misconception(
            "fewer bytes", lambda **_: "smaller", "Work out both terms. How long do the bytes take?"
        ),
        Misconception(
            "a faster end", lambda **_: "faster", "Where is the request most of the time?"
        ),
    ),
    smaller="numbers.transfer_time",
)

per_budget = Question(
    id="numbers.bytes_in_budget",
    chapter=CHAPTER,
    level="design",
    prompt=(
        "A step reads its weights from the HBM of an {{key}}, does little else, and may take"
        " {{budget}}. How many bytes of weights can the model have at most?"
    ),
    parameters={
        "key": Parameter(
            "h100_sxm",
            ("a100_80gb", "h100_sxm", "h200_sxm", "b200"),
            show=lambda k: accelerator(k).name,
        ),
        "budget": Parameter(10, (2, 5, 10, 15), "ms"),
    },
    expected=lambda key, budget: accelerator(key).hbm_bandwidth * budget,
    unit="GB",
    solution=lambda key, budget: derivation(
        "Each step reads the weights once, so their bytes are the rate times the time.",
        step(
            "In the budget the memory delivers",
            "bandwidth * time",
            bandwidth=accelerator(key).hbm_bandwidth,
            time=(budget, "s"),
        ),
        f"The memory holds {si(accelerator(key).hbm_capacity, 'byte')}, so the clock is the limit,"
        " and not the room.",
    ),
    misconceptions=(
        Misconception(
            "capacity",
            lambda key, budget: accelerator(key).hbm_capacity,
            "That fits. Can it be read in time?",
        ),
        Misconception(
            "the link",
            lambda key, budget: accelerator(key).link_bandwidth * budget,
            "You used the link to other GPUs.",
        ),
        Misconception(
            "parameters, not bytes",
            lambda key, budget: accelerator(key).hbm_bandwidth * budget / 2,
            "The question asks for bytes, not for bf16 parameters.",
        ),
    ),
    valid=lambda key, budget: (
        accelerator(key).hbm_bandwidth * budget < 0.8 * accelerator(key).hbm_capacity
    ),
    smaller="numbers.h100_memory",
)

recompute = Question(
    id="numbers.recompute_or_fetch",
    chapter=CHAPTER,
    level="design",
    prompt=(
        "An {{key}} can compute a bf16 value again or read it from HBM. How many FLOPs may it take"
        " to recompute one value before reading is faster? Take the dense peak and the full"
        " bandwidth, and many values at a time."
    ),
    parameters={
        "key": Parameter(
            "h100_sxm",
            ("a100_80gb", "h100_sxm", "h200_sxm", "b200"),
            show=lambda k: accelerator(k).name,
        )
    },
    expected=lambda key: recompute_limit(key),
    unit="FLOP",
    tolerance=0.03,
    solution=lambda key: derivation(
        step(
            "While one byte arrives, the chip can do",
            "peak / bandwidth",
            peak=accelerator(key).bf16,
            bandwidth=accelerator(key).hbm_bandwidth,
        ),
        step(
            "A bf16 value has two bytes.",
            "2[byte] * peak / bandwidth",
            (recompute_limit(key), "FLOP"),
            peak=accelerator(key).bf16,
            bandwidth=accelerator(key).hbm_bandwidth,
        ),
        after="That is why recomputing activations can be faster than reading them.",
    ),
    holds={"That is why recomputing": lambda key: recompute_limit(key) > 100},
    misconceptions=(
        Misconception(
            "per byte",
            lambda key: roofline.ridge_point(accelerator(key).bf16, accelerator(key).hbm_bandwidth),
            "That is for one byte. How wide is a value?",
        ),
        Misconception(
            "divided by the width",
            lambda key: recompute_limit(key) / 4,
            "You divided by the bytes of a value. While a wide one arrives, is there time for more"
            " FLOPs or for fewer?",
        ),
        Misconception(
            "by energy",
            lambda key: horowitz.dram / horowitz.fp16_fma,
            "That compares energies. The question is about time.",
        ),
        Misconception(
            "vector units",
            lambda key: (
                2
                * roofline.ridge_point(accelerator(key).fp32_vector, accelerator(key).hbm_bandwidth)
            ),
            "That is the fp32 vector rate; the question takes the bf16 peak.",
        ),
        Misconception(
            "twice the peak",
            lambda key: 2 * (recompute_limit(key)),
            "Is your peak the dense one, or one with sparsity? And how wide is a bf16 value?",
        ),
    ),
    smaller="roofline.ridge",
)


def recompute_limit(key):
    """FLOPs that take as long as reading two bytes."""
    return 2 * roofline.ridge_point(accelerator(key).bf16, accelerator(key).hbm_bandwidth)


gap = Question(
    id="numbers.country_requests",
    chapter=CHAPTER,
    level="design",
    prompt=(
        "A job makes {{calls}} calls to a server across the United States, each after the answer to"
        " the one before. At least how long does it wait for light in glass fibre, if the cable"
        " follows the great circle?"
    ),
    parameters={"calls": Parameter(1000, nice(200, 5000), show=str)},
    expected=lambda calls: calls * memory("path_country").round_trip,
    unit="s",
    tolerance=0.1,
    solution=lambda calls: derivation(
        step(
            "One call waits for light to go there and back.",
            "2 * distance / speed",
            memory("path_country").round_trip,
            distance=memory("path_country").distance,
            speed=memory("light").fibre,
        ),
        step(
            "Each call waits for the answer to the one before, so the waits add up.",
            "calls * round_trip",
            calls=calls,
            round_trip=memory("path_country").round_trip,
        ),
        after="Send them together, or move the job.",
    ),
    misconceptions=(
        Misconception(
            "one way",
            lambda calls: calls * memory("path_country").latency,
            "Each call waits for its answer.",
        ),
        Misconception(
            "one round trip for all",
            lambda calls: memory("path_country").round_trip,
            "They are made one after the other.",
        ),
        Misconception(
            "across a hall",
            lambda calls: calls * memory("path_hall").round_trip,
            "That is within a data centre.",
        ),
        Misconception(
            "vacuum",
            lambda calls: calls * 2 * memory("path_country").distance / memory("light").vacuum,
            "That is light in vacuum. Glass slows it down by a third.",
        ),
        Misconception(
            "Atlantic",
            lambda calls: calls * memory("path_atlantic").round_trip,
            "That is the path across the Atlantic. How wide is the country?",
        ),
    ),
    smaller="numbers.country_round_trip",
)

token_energy = Question(
    id="numbers.token_energy",
    chapter=CHAPTER,
    level="apply",
    prompt=(
        "A model is served on {{devices}} GPUs rated {{power}} each, at {{rate}} tokens a second."
        " What is the most that a token can cost, in the GPUs' own energy?"
    ),
    parameters={
        "devices": Parameter(8, (2, 4, 8), show=str),
        "power": Parameter(700, (700, 1000), "W"),
        "rate": Parameter(5000, (2000, 5000, 10000), show=lambda value: f"{value:,}"),
    },
    expected=lambda devices, power, rate: energy.energy_of(power, 1 / rate, devices),
    unit="J",
    solution=lambda devices, power, rate: derivation(
        step(
            "All together draw at most",
            "n * power",
            (devices * power, "W"),
            n=devices,
            power=(power, "W"),
        ),
        step(
            "Share a second of that among the tokens that it makes.",
            "n * power / rate",
            (energy.energy_of(power, 1 / rate, devices), "J"),
            n=devices,
            power=(power, "W"),
            rate=(rate, "1/s"),
        ),
    ),
    holds={
        "All together draw at most": "definition",
        "Every GPU draws power": "definition",
    },
    misconceptions=(
        Misconception(
            "one GPU",
            lambda devices, power, rate: power / rate,
            "Every GPU draws power while the token is made.",
        ),
        Misconception(
            "a share of the rate",
            lambda devices, power, rate: devices**2 * power / rate,
            "The rate is that of the whole server already.",
        ),
        Misconception(
            "a second, not a token",
            lambda devices, power, rate: devices * power,
            "That is the energy of one second, in which many tokens are made.",
        ),
        Misconception(
            "tokens a joule",
            lambda devices, power, rate: rate / (devices * power),
            "Yours is turned upside down: it is how many tokens a joule makes. What is asked for"
            " one of what?",
        ),
    ),
    smaller="units.request_energy",
)

register(what_helps, per_budget, recompute, gap, token_energy)

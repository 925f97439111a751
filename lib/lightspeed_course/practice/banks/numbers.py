"""Questions of chapter 1, numbers to know: the recall ones are also the cards of the drill."""

from __future__ import annotations

from lightspeed import datasheet, roofline
from lightspeed.catalog import accelerator, find, link, memory
from lightspeed_course.practice.derivation import derivation, step
from lightspeed_course.practice.questions import Misconception, Parameter, Question, register
from lightspeed_show.format import si

CHAPTER = "01_numbers_to_know"
ROUGH = 0.25  # a number to know is known when it is right within a quarter

h100, horowitz, adam = accelerator("h100_sxm"), find("horowitz_45nm"), find("adam_mixed_precision")


def recall(name, prompt, expected, unit, solution, *misconceptions, tolerance=ROUGH, holds=None):
    return Question(
        id=f"numbers.{name}",
        chapter=CHAPTER,
        level="recall",
        prompt=prompt,
        expected=expected if callable(expected) else lambda: expected,
        unit=unit,
        tolerance=tolerance,
        solution=solution,
        misconceptions=misconceptions,
        holds=holds or {},
    )


def mistake(name, value, hint):
    return Misconception(name, lambda **_: value, hint)


def sourced(n, unit):
    """The number with where it comes from."""
    return f"{si(n, unit)}, from {n.source.author or n.source.publisher}, {n.source.title}."


# --- recall: the cards ------------------------------------------------------------------------

CARDS = (
    recall(
        "dram_over_fma",
        "A word of four bytes holds two fp16 numbers. How many times the energy of one fp16"
        " multiply-add does it take to read that word from DRAM? Take Horowitz's table (2014).",
        lambda: horowitz.dram / horowitz.fp16_fma,
        "",
        lambda: derivation(
            step(
                "A multiply-add is a multiplication and an addition.",
                "multiply + add",
                horowitz.fp16_fma,
                multiply=horowitz.fp16_multiply,
                add=horowitz.fp16_add,
            ),
            step(
                "Compare reading one word with it. The unit cancels, so the process hardly"
                " matters.",
                "read / (multiply + add)",
                read=horowitz.dram,
                multiply=horowitz.fp16_multiply,
                add=horowitz.fp16_add,
            ),
        ),
        mistake(
            "cache, not DRAM",
            horowitz.cache_8kb / horowitz.fp16_fma,
            "That is about what a small cache costs. DRAM is off the chip.",
        ),
        mistake(
            "fp32 arithmetic",
            horowitz.dram / horowitz.fp32_fma,
            "That is the ratio to an fp32 multiply-add. What does one in fp16 cost?",
        ),
        mistake(
            "an addition only",
            horowitz.dram / horowitz.fp16_add,
            "You divided by an addition. A multiply-add multiplies too.",
        ),
        mistake(
            "a multiplication only",
            horowitz.dram / horowitz.fp16_multiply,
            "You divided by a multiplication. What else does a multiply-add do?",
        ),
        mistake(
            "one of two",
            horowitz.dram / horowitz.fp16_fma / 2,
            "Is one of the two numbers read from DRAM, or the whole word?",
        ),
    ),
    recall(
        "training_bytes",
        "How many bytes per parameter does mixed-precision training with Adam keep, if the weights"
        " and the gradients are bf16 and whatever else it keeps is fp32?",
        adam.total,
        "byte",
        lambda: derivation(
            step(
                "What the forward and the backward pass use is two bytes wide.",
                "weights + gradients",
                weights=adam.weights,
                gradients=adam.gradients,
            ),
            step(
                "The optimizer keeps three numbers in fp32: a master copy of the weight, and two"
                " moments.",
                "master + momentum + variance",
                master=adam.master_weights,
                momentum=adam.momentum,
                variance=adam.variance,
            ),
            step(
                "Add them all up.",
                "weights + gradients + master + momentum + variance",
                adam.total,
                weights=adam.weights,
                gradients=adam.gradients,
                master=adam.master_weights,
                momentum=adam.momentum,
                variance=adam.variance,
            ),
        ),
        mistake(
            "weights only",
            adam.weights,
            "With those you can run the model. What does training keep besides?",
        ),
        mistake(
            "gradients forgotten",
            adam.total - adam.gradients,
            "Add up your list again. What does the backward pass produce?",
        ),
        mistake(
            "no master copy",
            adam.total - adam.master_weights,
            "Updates are too small for the narrow weights; who holds the sum?",
        ),
        mistake(
            "fp32 gradients",
            adam.total + 4 - adam.gradients,
            "Some recipes keep the gradients in fp32. How wide are they here?",
        ),
        mistake(
            "gradients kept twice",
            adam.total + 4,
            "Some recipes add up a second, fp32 copy of the gradients. Here there is one, in bf16.",
        ),
        mistake(
            "the moments alone",
            adam.momentum + adam.variance,
            "That is what the two moments of Adam take; weights, gradients and master weights"
            " together take as much again. What does your list leave out?",
        ),
        mistake(
            "the optimizer's states alone",
            adam.total - adam.weights - adam.gradients,
            "Those are the master weights and the two moments. What else is kept?",
        ),
        mistake(
            "all in bf16", 10.0, "That is five things of two bytes each. Which of them are fp32?"
        ),
        tolerance=0,
    ),
    recall(
        "fibre_kilometre",
        "How long does light need for a kilometre of glass fibre, one way?",
        lambda: 1e3 / memory("light").fibre,
        "µs",
        lambda: derivation(
            "Light in glass has two thirds of its speed in vacuum.",
            step(
                "Distance over speed.",
                "distance / speed",
                distance=(1e3, "m"),
                speed=memory("light").fibre,
            ),
        ),
        mistake(
            "vacuum",
            1e3 / memory("light").vacuum,
            "That is light in vacuum. Glass slows it down by a third.",
        ),
        mistake(
            "there and back", datasheet.round_trip(1e3, memory("light").fibre), "One way was asked."
        ),
        mistake(
            "software's round trip",
            1e-3,
            "A millisecond is what software and queues make of it. How far would light be by then?",
        ),
        mistake(
            "glass that speeds light up",
            1e3 / (memory("light").vacuum ** 2 / memory("light").fibre),
            "Which way does glass change the speed of light? Compare the time with that in vacuum.",
        ),
        holds={
            "two thirds of its speed in vacuum": (
                lambda: abs(memory("light").fibre / memory("light").vacuum - 2 / 3) < 0.005
            )
        },
    ),
    recall(
        "country_round_trip",
        "What is the least possible round trip in glass fibre between New York and San Francisco,"
        " along the great circle?",
        memory("path_country").round_trip,
        "ms",
        lambda: derivation(
            step(
                "Distance over the speed of light in glass is the way there.",
                "distance / speed",
                memory("path_country").latency,
                distance=memory("path_country").distance,
                speed=memory("light").fibre,
            ),
            step(
                "The answer has to come back.",
                "2 * distance / speed",
                memory("path_country").round_trip,
                distance=memory("path_country").distance,
                speed=memory("light").fibre,
            ),
            after="Real cables take detours, so real pings are longer.",
        ),
        mistake(
            "one way",
            memory("path_country").latency,
            "That is the way there. The answer has to come back.",
        ),
        mistake(
            "vacuum",
            datasheet.round_trip(memory("path_country").distance, memory("light").vacuum),
            "That is the speed in vacuum. How much slower is light in glass?",
        ),
        mistake(
            "Pacific",
            memory("path_pacific").round_trip,
            "That is about the Pacific. How wide is the country?",
        ),
        mistake(
            "Atlantic",
            memory("path_atlantic").round_trip,
            "That is the path across the Atlantic. How wide is the country?",
        ),
        holds={"Real cables take detours": "history"},
    ),
    recall(
        "hbm_latency",
        "How long does a load wait for a word from HBM? Take an H100 that does nothing else.",
        memory("gpu_hbm").latency,
        "ns",
        lambda: derivation(
            step(
                "Programs count cycles of the chip's clock. One of them measured",
                "cycles / clock",
                cycles=memory("gpu_hbm").cycles,
                clock=h100.clock,
            ),
            step(
                "Another, on an H800, found fewer. Both count as right.",
                "cycles / clock",
                cycles=h100.hbm_cycles_least,
                clock=accelerator("h100_pcie").clock,
            ),
        ),
        mistake("CPU cache", memory("cpu_l2").latency, "That is a CPU's L2 cache."),
        mistake(
            "shared memory", memory("gpu_shared").latency, "That is on the chip. HBM is beside it."
        ),
        mistake("flash", memory("nvme_ssd").latency, "That is an SSD."),
        mistake(
            "cycles, not nanoseconds",
            memory("gpu_hbm").cycles / 1e9,
            "Those are cycles of the GPU. How long does one take, at its clock?",
        ),
        mistake(
            "a CPU's main memory",
            memory("cpu_dram").latency,
            "That is how long a CPU waits for its main memory.",
        ),
        mistake(
            "the L2 cache",
            memory("gpu_l2").latency,
            "That is how long a GPU waits for its L2 cache. Where does this word lie?",
        ),
        tolerance=0.35,  # from the smaller of the two measurements up, and half a microsecond
    ),
    recall(
        "h100_peak",
        "What is the dense bf16 peak of an H100 SXM?",
        h100.bf16,
        "TFLOP/s",
        lambda: derivation(
            f"The data sheet prints {h100.bf16_sparse.printed}, with sparsity.",
            step(
                "That counts zeros which are skipped. The dense rate is half.",
                "printed / 2",
                h100.bf16,
                printed=h100.bf16_sparse,
            ),
        ),
        mistake(
            "sparse peak",
            h100.bf16_sparse,
            "That is the sparse rate, printed first. Your matrices are dense.",
        ),
        mistake("vector peak", h100.fp32_vector, "That is the fp32 rate of the vector units."),
        mistake("A100", accelerator("a100_80gb").bf16, "That is the generation before."),
        mistake(
            "PCIe card",
            accelerator("h100_pcie").bf16,
            "That is the PCIe card, with fewer units at a lower clock. SXM was asked.",
        ),
        mistake(
            "half of it",
            h100.bf16 / 2,
            "That is the dense rate of tf32, or a multiply-add counted as one operation. Which"
            " format is asked, and what do peaks count?",
        ),
        tolerance=0.15,  # the PCIe card is a quarter below
    ),
    recall(
        "h100_memory",
        "What is the memory bandwidth of an H100 SXM?",
        h100.hbm_bandwidth,
        "TB/s",
        lambda: derivation(
            "It is a number to look up, and then to keep in mind by what it does.",
            step(
                "The whole memory is read in",
                "capacity / bandwidth",
                capacity=h100.hbm_capacity,
                bandwidth=h100.hbm_bandwidth,
            ),
            after=sourced(h100.hbm_bandwidth, "byte/s"),
        ),
        mistake("A100", accelerator("a100_40gb").hbm_bandwidth, "That is the generation before."),
        mistake(
            "H200",
            accelerator("h200_sxm").hbm_bandwidth,
            "That is the H200: the same units, newer memory.",
        ),
        mistake("the link", h100.link_bandwidth, "That is NVLink, the way to other GPUs."),
        mistake(
            "A100 of 80 GB",
            accelerator("a100_80gb").hbm_bandwidth,
            "That is the generation before, in its larger version. Which one is asked?",
        ),
    ),
    recall(
        "nvlink_one_way",
        "How much can an H100 send over NVLink 4 in one direction?",
        link("nvlink4").bandwidth,
        "GB/s",
        lambda: derivation(
            step(
                "Count the links, and take one direction of each.",
                "links * rate",
                link("nvlink4").bandwidth,
                links=link("nvlink4").links,
                rate=link("nvlink4").bandwidth_per_link,
            ),
            step(
                "Data sheets add the other direction.",
                "2 * links * rate",
                link("nvlink4").bandwidth_bidirectional,
                links=link("nvlink4").links,
                rate=link("nvlink4").bandwidth_per_link,
            ),
        ),
        mistake(
            "both ways",
            link("nvlink4").bandwidth_bidirectional,
            "Data sheets add both directions. A transfer uses one.",
        ),
        mistake(
            "one link",
            link("nvlink4").bandwidth_per_link,
            "That is one link. How many does the chip have?",
        ),
        mistake("A100", link("nvlink3").bandwidth, "That is NVLink 3."),
        mistake(
            "the network",
            link("infiniband_ndr").bandwidth,
            "That is a port of the network. Which link joins the GPUs of a node?",
        ),
    ),
    recall(
        "infiniband_ndr",
        "How many gigabytes a second does one NDR InfiniBand port carry in one direction?",
        link("infiniband_ndr").bandwidth,
        "GB/s",
        lambda: derivation(
            f"The rate in the name is in bits: {link('infiniband_ndr').bandwidth.printed}.",
            step(
                "A byte has eight of them.",
                "rate / 8[bit/byte]",
                link("infiniband_ndr").bandwidth,
                rate=(8 * link("infiniband_ndr").bandwidth, "bit/s"),
            ),
        ),
        mistake(
            "bits",
            8 * link("infiniband_ndr").bandwidth,
            "The name of the rate is in bits. How many are there in a byte?",
        ),
        mistake(
            "both ways",
            link("infiniband_ndr").bandwidth_bidirectional,
            "You added both directions.",
        ),
        mistake("HDR", link("infiniband_hdr").bandwidth, "That is HDR, the generation before."),
        mistake(
            "one lane",
            link("infiniband_ndr").bandwidth / 4,
            "That is one lane. How many does a port have?",
        ),
    ),
    recall(
        "pcie5",
        "How much does PCIe 5.0 x16 carry in one direction, after encoding?",
        link("pcie5_x16").bandwidth,
        "GB/s",
        lambda: derivation(
            step(
                "Each lane moves one bit in each transfer, and the slot has sixteen lanes.",
                "lanes * rate",
                lanes=link("pcie5_x16").lanes,
                rate=(link("pcie5_x16").transfer_rate, "bit/s"),
            ),
            step(
                "Encoding takes a few of the bits, and a byte has eight.",
                "lanes * rate * encoding / 8[bit/byte]",
                link("pcie5_x16").bandwidth,
                lanes=link("pcie5_x16").lanes,
                rate=(link("pcie5_x16").transfer_rate, "bit/s"),
                encoding=(link("pcie5_x16").encoding, "%"),
            ),
        ),
        mistake(
            "both ways", link("pcie5_x16").bandwidth_bidirectional, "You added both directions."
        ),
        mistake(
            "PCIe 4.0", link("pcie4_x16").bandwidth, "That is PCIe 4.0, the generation before."
        ),
        mistake("one lane", link("pcie5_x16").bandwidth / 16, "That is one lane of sixteen."),
        mistake(
            "bits",
            8 * link("pcie5_x16").bandwidth,
            "That counts bits: a transfer moves one on each lane. How many of them are a byte?",
        ),
        tolerance=0.1,
    ),
)

# --- apply ------------------------------------------------------------------------------------

BILLIONS = Parameter(
    7 * 10**9, tuple(n * 10**9 for n in (1, 3, 7, 8, 13, 34, 70)), show=lambda n: si(n, "parameter")
)

inference_memory = Question(
    id="numbers.inference_memory",
    chapter=CHAPTER,
    level="apply",
    prompt="How much memory do the weights of a model of {{params}} take in {{format}}?",
    parameters={"params": BILLIONS, "format": Parameter("bf16", ("bf16", "int8"))},
    expected=lambda params, format: params * bytes_of(format),
    unit="GB",
    tolerance=0.01,
    solution=lambda params, format: derivation(
        step(
            "Each parameter takes its width.",
            "parameters * width",
            parameters=(params, "parameter"),
            width=(bytes_of(format), "byte/parameter"),
        ),
        after="Training keeps more.",
    ),
    misconceptions=(
        Misconception("fp32", lambda params, format: 4 * params, "That would be fp32."),
        Misconception(
            "training state",
            lambda params, format: adam.total * params,
            "That is what training keeps. What of it is needed to run the model?",
        ),
        Misconception(
            "half a byte", lambda params, format: params / 2, "That would be a format of four bits."
        ),
    ),
    smaller="units.matrix_bytes",
)


def bytes_of(format):
    return {"bf16": 2, "int8": 1}[format]


training_memory = Question(
    id="numbers.training_memory",
    chapter=CHAPTER,
    level="apply",
    prompt=(
        "What do weights, gradients and optimizer states of {{params}} take, all GPUs together, in"
        " mixed-precision training with Adam (bf16 gradients)?"
    ),
    parameters={"params": BILLIONS},
    expected=lambda params: adam.total * params,
    unit="GB",
    tolerance=0.01,
    solution=lambda params: derivation(
        step(
            "Bytes for one parameter: weight, gradient, master weight, and two moments.",
            "weight + gradient + master + momentum + variance",
            adam.total,
            weight=adam.weights,
            gradient=adam.gradients,
            master=adam.master_weights,
            momentum=adam.momentum,
            variance=adam.variance,
        ),
        step(
            "Times the parameters.",
            "parameters * each",
            parameters=(params, "parameter"),
            each=(adam.total, "byte/parameter"),
        ),
        after="Activations come on top. Sharding divides the sum without making it smaller.",
    ),
    misconceptions=(
        Misconception(
            "gradients forgotten",
            lambda params: (adam.total - adam.gradients) * params,
            "Your list misses what the backward pass produces.",
        ),
        Misconception(
            "weights only",
            lambda params: adam.weights * params,
            "That runs the model. What else does training keep?",
        ),
        Misconception(
            "optimizer only",
            lambda params: (adam.momentum + adam.variance) * params,
            "Those are the two moments. There is more.",
        ),
        Misconception(
            "optimizer states alone",
            lambda params: (adam.total - adam.weights - adam.gradients) * params,
            "Those are the master weights and the two moments. The weights themselves and the"
            " gradients are missing.",
        ),
        Misconception(
            "fp32 gradients",
            lambda params: (adam.total + adam.gradients) * params,
            "The gradients are bf16 here, two bytes each.",
        ),
        Misconception(
            "all in bf16",
            lambda params: 10 * params,
            "That is five things of two bytes each. Which of them are fp32?",
        ),
    ),
    smaller="numbers.inference_memory",
)

training_flops = Question(
    id="numbers.training_flops",
    chapter=CHAPTER,
    level="apply",
    prompt="How many FLOPs does it take to train a dense model of {{params}} on {{tokens}}?",
    parameters={
        "params": BILLIONS,
        "tokens": Parameter(
            10**12, (10**11, 10**12, 2 * 10**12, 15 * 10**12), show=lambda n: si(n, "token")
        ),
    },
    expected=lambda params, tokens: 6 * params * tokens,
    unit="FLOP",
    solution=lambda params, tokens: derivation(
        step(
            "Forward, each parameter is multiplied and added for each token: two FLOPs. Backward"
            " takes four.",
            "2[FLOP] + 4[FLOP]",
        ),
        step(
            "Times the parameters, times the tokens.",
            "6[FLOP/parameter/token] * parameters * tokens",
            parameters=(params, "parameter"),
            tokens=(tokens, "token"),
        ),
    ),
    misconceptions=(
        Misconception(
            "forward only",
            lambda params, tokens: 2 * params * tokens,
            "That is the forward pass. What does the backward pass cost?",
        ),
        Misconception(
            "backward only",
            lambda params, tokens: 4 * params * tokens,
            "That is the backward pass. The forward pass comes first.",
        ),
        Misconception(
            "with recomputation",
            lambda params, tokens: 8 * params * tokens,
            "That recomputes the forward pass. The question does not.",
        ),
        Misconception(
            "a multiply-add is one",
            lambda params, tokens: 3 * params * tokens,
            "Three passes may be right. How many FLOPs is a multiply-add?",
        ),
    ),
    smaller="training.flops_per_parameter",
)

transfer = Question(
    id="numbers.transfer_time",
    chapter=CHAPTER,
    level="apply",
    prompt=(
        "A checkpoint of {{size}} is copied over a link of {{bandwidth}} with a latency of"
        " {{latency}}. How long does it take?"
    ),
    parameters={
        "size": Parameter(1, (1, 2, 5), "GB"),
        "bandwidth": Parameter(10, (10, 25, 40), "Gbit/s"),
        "latency": Parameter(100, (50, 80, 100), "ms"),
    },
    expected=lambda size, bandwidth, latency: roofline.transfer_time(size, bandwidth, latency),
    unit="ms",
    tolerance=0.02,
    solution=lambda size, bandwidth, latency: derivation(
        step(
            "The link is given in bits, the file in bytes.",
            "rate / 8[bit/byte]",
            rate=(8 * bandwidth, "bit/s"),
        ),
        step(
            "Moving the bytes takes",
            "size / bandwidth",
            size=(size, "byte"),
            bandwidth=(bandwidth, "byte/s"),
        ),
        step(
            "The first of them arrives after the latency.",
            "size / bandwidth + latency",
            roofline.transfer_time(size, bandwidth, latency),
            size=(size, "byte"),
            bandwidth=(bandwidth, "byte/s"),
            latency=(latency, "s"),
        ),
    ),
    misconceptions=(
        Misconception(
            "bits taken for bytes",
            lambda size, bandwidth, latency: size / (8 * bandwidth) + latency,
            "The link is given in bits, the file in bytes.",
        ),
        Misconception(
            "no latency",
            lambda size, bandwidth, latency: size / bandwidth,
            "The first byte arrives after the latency.",
        ),
        Misconception(
            "latency twice",
            lambda size, bandwidth, latency: size / bandwidth + 2 * latency,
            "Count the latency once: the transfer is one way.",
        ),
        Misconception(
            "the larger term",
            lambda size, bandwidth, latency: min(size / bandwidth, latency),
            "That is one of two terms, which add up. How long does the transfer itself take, or"
            " the wait for its first byte?",
        ),
        Misconception(
            "latency taken off",
            lambda size, bandwidth, latency: size / bandwidth - latency,
            "Does waiting for the first byte make the transfer shorter?",
        ),
    ),
    valid=lambda size, bandwidth, latency: latency / 20 < size / bandwidth < 20 * latency,
    smaller="numbers.infiniband_ndr",
)

crossover = Question(
    id="numbers.crossover_size",
    chapter=CHAPTER,
    level="apply",
    kind="function",
    prompt=(
        "Write `equal_terms(latency, bandwidth)`: the size of transfer at which the latency term"
        " equals the bandwidth term."
    ),
    parameters={
        "latency": Parameter(1e-6, (1e-7, 1e-6, 5e-6, 1e-3, 0.05), "s"),
        "bandwidth": Parameter(5e10, (1.25e9, 5e10, 4.5e11, 2e12), "byte/s"),
    },
    edges=({"latency": 0},),
    expected=roofline.crossover_size,
    unit="byte",
    tolerance=0.001,
    solution=(
        derivation(
            "The latency term does not depend on the size. The other one is the size over the"
            " bandwidth.",
            "Set the two equal, and multiply both sides by the bandwidth. Check the units: seconds"
            " times bytes per second are bytes.",
            after=(
                "```python\ndef equal_terms(latency, bandwidth):\n    return latency *"
                " bandwidth\n```"
            ),
        )
    ),
    misconceptions=(
        Misconception(
            "ratio",
            lambda latency, bandwidth: bandwidth / latency,
            "Write the units of your expression. Are they bytes?",
        ),
        Misconception(
            "in bits",
            lambda latency, bandwidth: 8 * latency * bandwidth,
            "You counted bits. In which unit is the bandwidth given?",
        ),
        Misconception(
            "twice the latency",
            lambda latency, bandwidth: 2 * latency * bandwidth,
            "Put your size into both terms. Do they come to the same time?",
        ),
        Misconception(
            "the other quotient",
            lambda latency, bandwidth: latency / bandwidth,
            "Write the units of your expression: what are seconds over bytes a second?",
        ),
    ),
    smaller="numbers.transfer_time",
)

braking = Question(
    id="numbers.braking_distance",
    chapter=CHAPTER,
    level="apply",
    prompt=(
        "A car at {{speed}} sees an obstacle. How far does it go while the model thinks for"
        " {{latency}}?"
    ),
    parameters={
        "speed": Parameter(100, (50, 80, 100, 130), "km/h"),
        "latency": Parameter(10, (10, 20, 50), "ms"),
    },
    expected=lambda speed, latency: speed * latency,
    unit="cm",
    solution=lambda speed, latency: derivation(
        step(
            "The speed in metres a second.",
            "speed / hour",
            (speed, "m/s"),
            hour=(3600, "s/h"),
            speed=(3600 * speed, "m/h"),
        ),
        step(
            "Speed times time.",
            "speed * time",
            speed=(speed, "m/s"),
            time=(latency, "s"),
        ),
    ),
    misconceptions=(
        Misconception(
            "hours taken for seconds",
            lambda speed, latency: 3.6 * speed * latency,
            "The speed is per hour. How many metres is that a second?",
        ),
        Misconception(
            "there and back", lambda speed, latency: 2 * speed * latency, "The car goes one way."
        ),
        Misconception(
            "a minute has a hundred seconds",
            lambda speed, latency: speed * latency * 0.36,
            "Go through the hours again: an hour has sixty minutes of sixty seconds.",
        ),
        Misconception(
            "multiplied as they stand",
            lambda speed, latency: speed * 3.6 * latency * 1e3 / 100,
            "You multiplied the numbers as they stand. What are kilometres an hour times"
            " milliseconds?",
        ),
    ),
    smaller="units.metres_a_second",
)

analogy = Question(
    id="numbers.human_scale",
    chapter=CHAPTER,
    level="apply",
    prompt=(
        "Slow the clock down until {{tick}} lasts {{felt}}. How long does {{wait}} last on that"
        " clock?"
    ),
    parameters={
        "tick": Parameter(0.3, (0.3, 0.5, 1), "ns"),
        "felt": Parameter(10, (1, 10), "s"),
        "wait": Parameter(300, (300, 500, 800), "ns"),
    },
    expected=lambda tick, felt, wait: datasheet.human_scale(wait, tick, felt),
    unit="hour",
    tolerance=0.02,
    solution=lambda tick, felt, wait: derivation(
        step(
            "How many times is the clock slowed down?",
            "felt / tick",
            felt=(felt, "s"),
            tick=(tick, "s"),
        ),
        step(
            "Stretch the wait by that factor.",
            "wait * felt / tick",
            datasheet.human_scale(wait, tick, felt),
            wait=(wait, "s"),
            felt=(felt, "s"),
            tick=(tick, "s"),
        ),
        step(
            "In hours.",
            "stretched / hour",
            hour=(3600, "s/hour"),
            stretched=(datasheet.human_scale(wait, tick, felt), "s"),
        ),
    ),
    misconceptions=(
        Misconception(
            "not the anchor's factor",
            lambda tick, felt, wait: 1.8 * datasheet.human_scale(wait, tick, felt),
            "Compute one factor from the anchor and use it for every row.",
        ),
        Misconception(
            "anchor not divided",
            lambda tick, felt, wait: wait * 1e9 * felt,
            "You multiplied by what a nanosecond would be. How long is the anchor?",
        ),
        Misconception(
            "cycles, not seconds",
            lambda tick, felt, wait: wait / tick,
            "That is the number of ticks. How long does each one last?",
        ),
        Misconception(
            "ticks taken for hours",
            lambda tick, felt, wait: wait / tick * 3600,
            "So many ticks are in the wait. How long does each one last, and in which unit?",
        ),
    ),
    valid=lambda tick, felt, wait: tick != 1e-9 and felt != 1,
    smaller="units.stretch",
)

clock = Question(
    id="numbers.peak_from_clock",
    chapter=CHAPTER,
    level="apply",
    prompt=(
        "A GPU has {{cores}} tensor cores; each finishes {{fmas}} multiply-adds a cycle at"
        " {{clock}}. What is its peak?"
    ),
    parameters={
        "cores": Parameter(528, (432, 528, 592), show=str),
        "fmas": Parameter(512, (256, 512, 1024), show=str),
        "clock": Parameter(1830, (1410, 1830, 1980), "MHz"),
    },
    expected=lambda cores, fmas, clock: datasheet.peak_from_clock(clock, 2 * fmas, cores),
    unit="TFLOP/s",
    tolerance=0.01,
    solution=lambda cores, fmas, clock: derivation(
        step(
            "A multiply-add is two FLOPs. In one cycle one core does",
            "2[FLOP] * multiply_adds",
            multiply_adds=fmas,
        ),
        step(
            "In one second, at that clock:",
            "clock * 2[FLOP] * multiply_adds",
            (datasheet.peak_from_clock(clock, 2 * fmas, 1), "FLOP/s"),
            clock=(clock, "Hz"),
            multiply_adds=fmas,
        ),
        step(
            "The cores work side by side.",
            "clock * 2[FLOP] * multiply_adds * cores",
            (datasheet.peak_from_clock(clock, 2 * fmas, cores), "FLOP/s"),
            clock=(clock, "Hz"),
            multiply_adds=fmas,
            cores=cores,
        ),
    ),
    misconceptions=(
        Misconception(
            "a multiply-add is one",
            lambda cores, fmas, clock: clock * fmas * cores,
            "A multiply-add is two FLOPs.",
        ),
        Misconception(
            "sparse",
            lambda cores, fmas, clock: 4 * clock * fmas * cores,
            "That is the rate with sparsity. Your matrices are dense.",
        ),
        Misconception(
            "one core",
            lambda cores, fmas, clock: 2 * clock * fmas,
            "That is one core. How many tensor cores work at once?",
        ),
        Misconception(
            "one multiply-add a cycle",
            lambda cores, fmas, clock: 2 * cores * clock,
            "You let a core finish one multiply-add in a cycle. How many does this one finish?",
        ),
    ),
    smaller="units.core_rate",
)

iron_law = Question(
    id="numbers.iron_law",
    chapter=CHAPTER,
    level="apply",
    kind="function",
    prompt=(
        "Write `step_time(flops, size, peak, bandwidth, utilization, latency)`: the time of a step"
        " in which nothing overlaps."
    ),
    parameters={
        "flops": Parameter(10**12, (10**9, 10**12, 10**14), "FLOP"),
        "size": Parameter(10**9, (10**6, 10**9, 10**11), "byte"),
        "peak": Parameter(10**15, (2 * 10**14, 10**15), "FLOP/s"),
        "bandwidth": Parameter(10**12, (5 * 10**10, 10**12, 3 * 10**12), "byte/s"),
        "utilization": Parameter(0.5, (0.3, 0.4, 0.5, 0.8)),
        "latency": Parameter(1e-4, (1e-6, 1e-4, 0.04), "s"),
    },
    edges=({"latency": 0, "utilization": 1},),
    expected=roofline.iron_law,
    unit="s",
    tolerance=0.001,
    solution=(
        derivation(
            "Moving the bytes takes size over bandwidth.",
            "The units work at a share of their peak, so the FLOPs take longer: divide by peak"
            " times utilization.",
            "They do not overlap, so the times add up, and the latency with them.",
            after=(
                "```python\ndef step_time(flops, size, peak, bandwidth, utilization, latency):\n"
                "    return size / bandwidth + flops / (peak * utilization) + latency\n```"
            ),
        )
    ),
    misconceptions=(
        Misconception(
            "utilization speeds up",
            lambda flops, size, peak, bandwidth, utilization, latency: (
                size / bandwidth + flops / peak * utilization + latency
            ),
            "A lower utilization should make the step longer. Does it, in yours?",
        ),
        Misconception(
            "perfect overlap",
            lambda flops, size, peak, bandwidth, utilization, latency: (
                max(size / bandwidth, flops / (peak * utilization)) + latency
            ),
            "That lets data and arithmetic overlap. Here they do not.",
        ),
        Misconception(
            "no latency",
            lambda flops, size, peak, bandwidth, utilization, latency: (
                size / bandwidth + flops / (peak * utilization)
            ),
            "What is left of the time if you move no bytes and compute no FLOPs?",
        ),
        Misconception(
            "no utilization",
            lambda flops, size, peak, bandwidth, utilization, latency: (
                flops / peak + size / bandwidth + latency
            ),
            "Lower the utilization. Does your step change?",
        ),
    ),
    smaller="numbers.transfer_time",
)

dense = Question(
    id="numbers.dense_peak",
    chapter=CHAPTER,
    level="apply",
    prompt=(
        "A data sheet of the {{key}} prints {{printed}} for fp8, with sparsity. What can a dense"
        " bf16 matmul reach at most?"
    ),
    parameters={
        "key": Parameter("h100_sxm", show=lambda k: accelerator(k).name),
        "printed": Parameter("h100_sxm", show=lambda k: accelerator(k).fp8_sparse.printed),
    },
    expected=lambda key, printed: accelerator(key).bf16,
    unit="TFLOP/s",
    tolerance=0.01,
    solution=lambda key, printed: derivation(
        step(
            "The printed rate counts zeros which are skipped. The dense rate is half.",
            "printed / 2",
            accelerator(key).fp8,
            printed=accelerator(key).fp8_sparse,
        ),
        step(
            "An operand of bf16 takes the room of two in fp8, so divide once more.",
            "printed / 2 / 2",
            accelerator(key).bf16,
            printed=accelerator(key).fp8_sparse,
        ),
    ),
    holds={
        "The dense rate is half": (
            lambda key, printed: accelerator(key).bf16 == accelerator(key).fp8_sparse / 4
        ),
        "which is wider than bf16": "definition",
    },
    misconceptions=(
        Misconception(
            "sparse fp8",
            lambda key, printed: accelerator(key).fp8_sparse,
            "Two things are different: sparsity and the width of the operands.",
        ),
        Misconception(
            "halved once",
            lambda key, printed: accelerator(key).fp8,
            "That is both the dense fp8 and the sparse bf16 rate, so the two are easy to mix up."
            " Which step is missing?",
        ),
        Misconception(
            "tf32",
            lambda key, printed: accelerator(key).tf32,
            "That is the dense rate of tf32, which is wider than bf16 in the units. How often is"
            " the printed rate to be halved?",
        ),
    ),
    smaller="numbers.h100_peak",
)

register(
    *CARDS,
    inference_memory,
    training_memory,
    training_flops,
    transfer,
    crossover,
    braking,
    analogy,
    clock,
    iron_law,
    dense,
)

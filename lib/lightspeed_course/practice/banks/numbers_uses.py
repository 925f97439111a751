"""Questions of chapter 1 that put a number of the cards to use."""

from __future__ import annotations

from lightspeed import roofline
from lightspeed.catalog import accelerator, memory
from lightspeed_course.practice.banks.numbers import CHAPTER, horowitz
from lightspeed_course.practice.derivation import derivation, step
from lightspeed_course.practice.questions import Misconception, Parameter, Question, register
from lightspeed_show.format import si

MEMORIES = {
    "cache_32kb": f"a cache of {si(32e3, 'byte')}",
    "cache_1mb": f"a cache of {si(1e6, 'byte')}",
    "dram": "DRAM",
}
SECTOR = 32  # bytes: the least that an NVIDIA GPU reads from its memory at a time

balance = Question(
    id="numbers.uses_of_a_word",
    chapter=CHAPTER,
    level="apply",
    prompt=(
        "A word of four bytes is read from {{memory}} and then used by several {{arithmetic}}"
        " multiply-adds. From how many on do they take more energy than the reading? Take"
        " Horowitz's table (2014)."
    ),
    parameters={
        "memory": Parameter("dram", tuple(MEMORIES), show=MEMORIES.get),
        "arithmetic": Parameter("fp32", ("int8", "fp16", "fp32")),
    },
    expected=lambda memory, arithmetic: reading(memory) / multiply_add(arithmetic),
    unit="",
    tolerance=0.05,
    solution=lambda memory, arithmetic: derivation(
        step(
            "A multiply-add is a multiplication and an addition.",
            "multiply + add",
            multiply_add(arithmetic),
            multiply=getattr(horowitz, f"{arithmetic}_multiply"),
            add=getattr(horowitz, f"{arithmetic}_add"),
        ),
        step(
            "Divide the energy of reading the word once by that of each use.",
            "read / each",
            read=reading(memory),
            each=multiply_add(arithmetic),
        ),
        after="Each use of a word that is there already saves a reading.",
    ),
    misconceptions=(
        Misconception(
            "a multiplication only",
            lambda memory, arithmetic: (
                reading(memory) / getattr(horowitz, f"{arithmetic}_multiply")
            ),
            "You divided by a multiplication. What else does a multiply-add do?",
        ),
        Misconception(
            "a byte, not a word",
            lambda memory, arithmetic: reading(memory) / 4 / multiply_add(arithmetic),
            "You took the energy of one byte. How many does a word have?",
        ),
        Misconception(
            "operations, not multiply-adds",
            lambda memory, arithmetic: 2 * reading(memory) / multiply_add(arithmetic),
            "You counted multiplications and additions one by one. What is counted here?",
        ),
        Misconception(
            "a small cache",
            lambda memory, arithmetic: horowitz.cache_8kb / multiply_add(arithmetic),
            f"That is what reading from a cache of {si(8e3, 'byte')} costs. Where is this word read"
            " from?",
        ),
        Misconception(
            "an addition only",
            lambda memory, arithmetic: reading(memory) / getattr(horowitz, f"{arithmetic}_add"),
            "You divided by an addition. What else does a multiply-add do?",
        ),
    ),
    smaller="numbers.dram_over_fma",
)


def reading(memory):
    """Joules to read a word of four bytes."""
    return getattr(horowitz, memory)


def multiply_add(arithmetic):
    """Joules of a multiply-add."""
    return getattr(horowitz, f"{arithmetic}_fma")


ping = Question(
    id="numbers.reach_of_a_ping",
    chapter=CHAPTER,
    level="apply",
    prompt=(
        "A server answers a ping after {{wait}}. How many kilometres of glass fibre can lie between"
        " you and it, at most?"
    ),
    parameters={"wait": Parameter(20, (2, 8, 20, 60), "ms")},
    expected=lambda wait: wait / 2 * memory("light").fibre,
    unit="km",
    tolerance=0.05,
    solution=lambda wait: derivation(
        step(
            "The ping comes back, so one way takes half of the wait at most.",
            "wait / 2",
            wait=(wait, "s"),
        ),
        step(
            "In that time light in glass goes",
            "wait / 2 * speed",
            (wait / 2 * memory("light").fibre, "m"),
            wait=(wait, "s"),
            speed=memory("light").fibre,
        ),
        after="Switches and software take a part of the wait, so the server is nearer.",
    ),
    misconceptions=(
        Misconception(
            "one way",
            lambda wait: wait * memory("light").fibre,
            "Light has to go there and come back in that time. How far is that one way?",
        ),
        Misconception(
            "vacuum",
            lambda wait: wait / 2 * memory("light").vacuum,
            "That is light in vacuum. How much slower is it in glass?",
        ),
        Misconception(
            "kilometres a microsecond",
            lambda wait: wait / 2 * 5e9,
            "You went five kilometres in a microsecond. How long does light need for one?",
        ),
        Misconception(
            "one way, and in vacuum",
            lambda wait: wait * memory("light").vacuum,
            "Two things are missing: the way back, and the glass.",
        ),
    ),
    holds={
        "Switches and software take a part": "definition",
        "at most": "definition",
    },
    smaller="numbers.fibre_kilometre",
)

chase = Question(
    id="numbers.chain_of_loads",
    chapter=CHAPTER,
    level="apply",
    prompt=(
        "A list lies in the HBM of an idle H100. Each of its {{entries}} entries"
        " holds the address of the next. How long does it take to walk through it, roughly?"
    ),
    parameters={
        "entries": Parameter(100_000, (2000, 20_000, 100_000, 500_000), show=lambda n: f"{n:,}")
    },
    expected=lambda entries: entries * memory("gpu_hbm").latency,
    unit="ms",
    tolerance=0.35,  # as wide as that of one load
    solution=lambda entries: derivation(
        "An address is known when the load before has arrived. So no two loads are on their way at"
        " once, and the waits add up.",
        step(
            "Times the latency of one load.",
            "loads * latency",
            loads=entries,
            latency=memory("gpu_hbm").latency,
        ),
        after="Bandwidth does not enter: all the bytes could be moved in a much shorter time.",
    ),
    holds={
        "no two loads": "definition",
        "Bandwidth does not enter": lambda entries: (
            roofline.transfer_time(entries * SECTOR, accelerator("h100_sxm").hbm_bandwidth)
            < entries * memory("gpu_hbm").latency / 100
        ),
    },
    misconceptions=(
        Misconception(
            "by the bandwidth",
            lambda entries: roofline.transfer_time(
                entries * SECTOR, accelerator("h100_sxm").hbm_bandwidth
            ),
            "That is how long the bytes take if they are asked for at once. Can they be?",
        ),
        Misconception(
            "one wait for all",
            lambda entries: memory("gpu_hbm").latency,
            "That is one load. When can the next one start?",
        ),
        Misconception(
            "a CPU's main memory",
            lambda entries: entries * memory("cpu_dram").latency,
            "That is how long a CPU waits for its main memory. This list lies in HBM.",
        ),
        Misconception(
            "the L2 cache",
            lambda entries: entries * memory("gpu_l2").latency,
            "That is how long a GPU waits for its L2 cache. This list lies in HBM.",
        ),
        Misconception(
            "cycles, not nanoseconds",
            lambda entries: entries * memory("gpu_hbm").cycles / 1e9,
            "You counted cycles of the GPU as nanoseconds. How long does one take, at its clock?",
        ),
    ),
    smaller="numbers.hbm_latency",
)

register(balance, ping, chase)

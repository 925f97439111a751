"""Questions of chapter 8, what happens at one link: lost packets, incast, pauses, marks, and the
slowest of many.
"""

from __future__ import annotations

from lightspeed import networks as net
from lightspeed_course.practice.derivation import derivation, step
from lightspeed_course.practice.parameters import plain, rate
from lightspeed_course.practice.questions import Misconception, Parameter, Question, register

CHAPTER = "08_network"


def loss(canonical, *choices):
    return Parameter(canonical, choices, "%")


def line(canonical=400, *choices):
    return Parameter(canonical, choices or (100, 200, 400), "Gbit/s")


# --- one cable --------------------------------------------------------------------------------


def job_speed(compute, traffic, loss, window):
    """Speed of a job over that of one without a loss: its traffic takes longer, the rest does
    not.
    """
    return (compute + traffic) / (compute + traffic / net.go_back_n(loss, window))


cable = Question(
    id="network.cable",
    chapter=CHAPTER,
    level="apply",
    prompt=(
        "A step computes for {{compute}} and then communicates for {{traffic}}. One cable begins to"
        " lose {{loss}} of its packets. Its adapter *goes back n*: for each loss it sends the"
        " {{window}} packets of a round trip again. All ranks wait for it. What share of its speed"
        " does the job keep?"
    ),
    parameters={
        "compute": Parameter(400, (200, 300, 400), "ms"),
        "traffic": Parameter(100, (100, 150), "ms"),
        "loss": loss(0.5, 0.5, 1, 2),
        "window": plain(300, 100, 300, 200),
    },
    expected=job_speed,
    unit="%",
    solution=lambda compute, traffic, loss, window: derivation(
        step(
            "Go back n: a packet takes itself, and a window for each try that fails, p/(1 − p) of"
            " them. That is, in packet times,",
            "1 + window * p / (1 - p)",
            1 / net.go_back_n(loss, window),
            window=window,
            p=loss,
        ),
        step(
            "The traffic takes as many times as long.",
            "traffic * packet_times",
            traffic=(traffic, "s"),
            packet_times=1 / net.go_back_n(loss, window),
        ),
        step(
            "The step before, over the step now.",
            "(compute + traffic) / (compute + slow_traffic)",
            job_speed(compute, traffic, loss, window),
            compute=(compute, "s"),
            traffic=(traffic, "s"),
            slow_traffic=(traffic / net.go_back_n(loss, window), "s"),
        ),
    ),
    holds={
        "All ranks wait": "definition: of a synchronous step",
        "The traffic takes as many times": lambda compute, traffic, loss, window: (
            abs(job_speed(0.0, traffic, loss, window) - net.go_back_n(loss, window)) < 1e-12
        ),
    },
    smaller="network.goodput",
    misconceptions=(
        Misconception(
            "only the lost packets",
            lambda compute, traffic, loss, window: (
                (compute + traffic) / (compute + traffic / net.selective_repeat(loss))
            ),
            "You counted the lost packets. What does this adapter send again besides them?",
            slight=True,
        ),
        Misconception(
            "the whole step waits",
            lambda compute, traffic, loss, window: net.go_back_n(loss, window),
            "That is the goodput of the cable. Does the step compute more slowly, too?",
        ),
        Misconception(
            "what it lost",
            lambda compute, traffic, loss, window: 1 - job_speed(compute, traffic, loss, window),
            "You give the share that is gone. The question asks for what is kept.",
        ),
        Misconception(
            "times as long",
            lambda compute, traffic, loss, window: 1 / job_speed(compute, traffic, loss, window),
            "That is the step now over the step before. Is a speed a time, or one over it?",
        ),
    ),
)

window = Question(
    id="network.window",
    chapter=CHAPTER,
    level="recall",
    prompt=(
        "An adapter of {{bandwidth}} sends packets of {{packet}}; a round trip takes"
        " {{round_trip}}. How many packets are on the way before the first one can be answered?"
    ),
    parameters={
        "bandwidth": line(),
        "packet": Parameter(4096, (1024, 2048, 4096), "byte"),
        "round_trip": Parameter(10, (8, 10, 20), "µs"),
    },
    expected=net.window_packets,
    solution=lambda bandwidth, packet, round_trip: derivation(
        step(
            "What the line carries in a round trip.",
            "bandwidth * round_trip",
            bandwidth=(bandwidth, "byte/s"),
            round_trip=(round_trip, "s"),
        ),
        step(
            "In packets.",
            "carried / packet",
            float(net.window_packets(bandwidth, round_trip, packet)),
            carried=(bandwidth * round_trip, "byte"),
            packet=(packet, "byte"),
        ),
    ),
    misconceptions=(
        Misconception(
            "bits for bytes",
            lambda bandwidth, packet, round_trip: 8 * bandwidth * round_trip / packet,
            "The line is named in bits, the packet in bytes.",
        ),
        Misconception(
            "one way",
            lambda bandwidth, packet, round_trip: bandwidth * round_trip / 2 / packet,
            "The answer has to come back, too. For how long does the sender go on?",
        ),
        Misconception(
            "bytes, not packets",
            lambda bandwidth, packet, round_trip: bandwidth * round_trip,
            "Those are bytes on the way. How many packets do they make?",
        ),
    ),
)

goodput = Question(
    id="network.goodput",
    chapter=CHAPTER,
    level="apply",
    prompt=(
        "A line loses {{loss}} of its packets, {{window}} are sent in a round trip, and the"
        " adapter goes back n. What share of the line is goodput?"
    ),
    parameters={"loss": loss(1, 0.5, 1, 2), "window": plain(120, 60, 120, 240)},
    expected=lambda loss, window: net.go_back_n(loss, window),
    unit="%",
    solution=lambda loss, window: derivation(
        step(
            "Before a packet works, this many tries fail on average.",
            "p / (1 - p)",
            p=loss,
        ),
        step(
            "It has cost itself, and a window for each of them. In packet times:",
            "1 + window * failed",
            window=window,
            failed=loss / (1 - loss),
        ),
        step(
            "Goodput is the one packet over what it took.",
            "1 / packet_times",
            float(net.go_back_n(loss, window)),
            packet_times=1 / net.go_back_n(loss, window),
        ),
    ),
    smaller="network.window",
    misconceptions=(
        Misconception(
            "selective repeat",
            lambda loss, window: net.selective_repeat(loss),
            "That is what is left if each lost packet is sent again by itself.",
        ),
        Misconception(
            "a difference",
            lambda loss, window: max(1 - loss * window, 0.0),
            "You took a window off for each loss. But losses cost time, and time is what you"
            " divide by.",
        ),
        Misconception(
            "the window clean",
            lambda loss, window: (1 - loss) ** window,
            "That is the chance that a whole window arrives. What of the packets before the loss?",
        ),
    ),
)

budget = Question(
    id="network.loss_budget",
    chapter=CHAPTER,
    level="design",
    prompt=(
        "An adapter goes back n and has {{window}} packets on the way. At what rate of loss does it"
        " still reach {{share}} of its line?"
    ),
    parameters={
        "window": plain(125, 60, 125, 250),
        "share": Parameter(95, (90, 95, 99), "%"),
    },
    expected=lambda window, share: (1 - share) / (1 - share + share * window),
    unit="%",
    tolerance=0.03,
    solution=lambda window, share: derivation(
        "Write goodput as $(1 - p)/(1 - p + pW)$, set it to the share $s$, and solve for $p$.",
        step(
            "What may be wasted, over itself and a window for each packet that has to arrive:",
            "(1 - share) / (1 - share + share * window)",
            share=share,
            window=window,
        ),
        after=(f"That is one packet in {(1 - share + share * window) / (1 - share):,.0f}."),
    ),
    smaller="network.goodput",
    misconceptions=(
        Misconception(
            "as much as may be lost",
            lambda window, share: 1 - share,
            "That holds if a loss costs one packet. What does it cost here?",
        ),
        Misconception(
            "the share kept, spread",
            lambda window, share: share / window,
            "You spread what is kept over the window. What may be lost is the rest.",
        ),
        Misconception(
            "one loss a window",
            lambda window, share: 1 / window,
            "With one loss a window each packet costs a second one. Is that the share you want?",
        ),
    ),
)

go_back = Question(
    id="network.go_back_function",
    chapter=CHAPTER,
    level="apply",
    kind="function",
    prompt=(
        "Write `goodput(loss, window)`: the share of the line that is goodput if the first loss of"
        " a packet and each further one costs `window` packet times."
    ),
    parameters={
        "loss": Parameter(0.01, (0.0001, 0.001, 0.01, 0.1)),
        "window": Parameter(125, (10, 125, 500)),
    },
    edges=({"loss": 0.0, "window": 10}, {"loss": 0.5, "window": 1}),
    expected=lambda loss, window: net.go_back_n(loss, window),
    tolerance=0.001,
    solution=derivation(
        "Before a packet works, $p/(1 - p)$ tries fail on average.",
        "It takes itself and a window for each: $1 + W\\,p/(1 - p)$ packet times.",
        "Goodput is one over that.",
        after=(
            "```python\ndef goodput(loss, window):\n"
            "    return (1 - loss) / (1 - loss + loss * window)\n```"
        ),
    ),
    smaller="network.goodput",
    misconceptions=(
        Misconception(
            "selective repeat",
            lambda loss, window: 1 - loss,
            "Try a large window: your goodput does not depend on it.",
        ),
        Misconception(
            "no second loss",
            lambda loss, window: 1 / (1 + loss * window),
            "Nearly. A packet that is sent again can be lost again; try a loss of a half.",
        ),
        Misconception(
            "a line, not a fraction",
            lambda loss, window: max(1 - loss * window, 0.0),
            "Try a loss of a tenth: does the line come to a stop?",
        ),
    ),
)

# --- incast -----------------------------------------------------------------------------------

growth = Question(
    id="network.queue_growth",
    chapter=CHAPTER,
    level="recall",
    prompt=(
        "{{senders}} senders send at {{bandwidth}} each to one receiver, whose port passes on"
        " {{bandwidth}}. How fast does the queue at that port grow?"
    ),
    parameters={"senders": plain(5, 3, 5, 9), "bandwidth": rate(25, 25, 50)},
    # a queue's growth in a second is the queue of a burst that takes a second
    expected=lambda senders, bandwidth: float(
        net.incast_queue(senders, bandwidth, bandwidth, bandwidth)
    ),
    unit="GB/s",
    solution=lambda senders, bandwidth: derivation(
        step(
            "What comes in.",
            "senders * bandwidth",
            senders=senders,
            bandwidth=(bandwidth, "byte/s"),
        ),
        step(
            "Less what goes out.",
            "came - bandwidth",
            ((senders - 1) * bandwidth, "byte/s"),
            came=(senders * bandwidth, "byte/s"),
            bandwidth=(bandwidth, "byte/s"),
        ),
    ),
    misconceptions=(
        Misconception(
            "nothing leaves",
            lambda senders, bandwidth: senders * bandwidth,
            "That comes in. What does the port send on meanwhile?",
        ),
        Misconception(
            "the port's rate",
            lambda senders, bandwidth: bandwidth,
            "So much leaves. How much comes in?",
        ),
        Misconception(
            "shared out",
            lambda senders, bandwidth: bandwidth / senders,
            "You shared the port out among the senders. Do they know that they should slow down?",
        ),
    ),
)

queue = Question(
    id="network.incast_queue",
    chapter=CHAPTER,
    level="apply",
    prompt=(
        "{{senders}} senders begin at once to send {{burst}} each, at full line rate, to one"
        " receiver whose port has the same rate. How long does the queue at its port get?"
    ),
    parameters={"senders": plain(8, 8, 16, 32), "burst": Parameter(1, (1, 2, 4), "MB")},
    expected=lambda senders, burst: net.incast_queue(senders, burst, 1.0, 1.0),
    unit="MB",
    solution=lambda senders, burst: derivation(
        step(
            "While one burst is sent, this much comes in.",
            "senders * burst",
            senders=senders,
            burst=(burst, "byte"),
        ),
        step(
            "One burst leaves meanwhile. The rest waits.",
            "came - burst",
            (net.incast_queue(senders, burst, 1.0, 1.0), "byte"),
            came=(senders * burst, "byte"),
            burst=(burst, "byte"),
        ),
    ),
    smaller="network.queue_growth",
    misconceptions=(
        Misconception(
            "nothing leaves",
            lambda senders, burst: senders * burst,
            "The port drains while they send.",
        ),
        Misconception(
            "half on average",
            lambda senders, burst: (senders - 1) * burst / 2,
            "That is the mean over time. How long is it at its longest?",
        ),
        Misconception(
            "no queue",
            lambda senders, burst: burst,
            "You counted what one of them sends. What do the others do meanwhile?",
        ),
    ),
)

fit = Question(
    id="network.incast_senders",
    chapter=CHAPTER,
    level="apply",
    prompt=(
        "A port may use {{buffer}} of its switch's buffer. How many senders can send it {{burst}}"
        " each at the same moment, at full rate, before a packet is lost?"
    ),
    parameters={
        "buffer": Parameter(16, (8, 16, 32), "MB"),
        "burst": Parameter(1, (0.5, 1, 2), "MB"),
    },
    expected=net.incast_senders,
    tolerance=0.01,
    solution=lambda buffer, burst: derivation(
        "While $N$ senders send a burst each, the port passes one on: $N - 1$ bursts wait.",
        step(
            "The buffer holds this many bursts.",
            "buffer / burst",
            buffer=(buffer, "byte"),
            burst=(burst, "byte"),
        ),
        step(
            "And one more is on its way out.",
            "bursts + 1",
            float(net.incast_senders(buffer, burst)),
            bursts=buffer / burst,
        ),
    ),
    smaller="network.incast_queue",
    misconceptions=(
        Misconception(
            "one too few",
            lambda buffer, burst: buffer / burst,
            "While they send, the port drains one burst.",
        ),
        Misconception(
            "one too many",
            lambda buffer, burst: buffer / burst + 2,
            "How many bursts does the port drain while they send?",
        ),
        Misconception(
            "upside down",
            lambda buffer, burst: burst / buffer,
            "Does a larger buffer take fewer senders?",
        ),
    ),
)

headroom = Question(
    id="network.headroom",
    chapter=CHAPTER,
    level="apply",
    prompt=(
        "A port of {{bandwidth}} wants to pause its sender, {{delay}} away. Packets have"
        " {{packet}}. How much room must it keep for what still arrives?"
    ),
    parameters={
        "bandwidth": line(),
        "delay": Parameter(1, (0.5, 1, 2), "µs"),
        "packet": Parameter(4096, (1024, 4096), "byte"),
    },
    expected=net.pfc_headroom,
    unit="kB",
    solution=lambda bandwidth, delay, packet: derivation(
        step(
            "The pause travels to the sender, and the last byte that was sent travels back."
            " Meanwhile the line brings",
            "2 * delay * bandwidth",
            delay=(delay, "s"),
            bandwidth=(bandwidth, "byte/s"),
        ),
        step(
            "At either end a packet may just have begun, and is finished first.",
            "2 * packet",
            packet=(packet, "byte"),
        ),
        step(
            "Together.",
            "on_the_cable + packets",
            (net.pfc_headroom(bandwidth, delay, packet), "byte"),
            on_the_cable=(2 * bandwidth * delay, "byte"),
            packets=(2 * packet, "byte"),
        ),
    ),
    smaller="network.window",
    misconceptions=(
        Misconception(
            "no packets at the ends",
            lambda bandwidth, delay, packet: 2 * bandwidth * delay,
            "A packet that has begun is not cut off. Who may be in the middle of one?",
        ),
        Misconception(
            "one way",
            lambda bandwidth, delay, packet: bandwidth * delay + 2 * packet,
            "What was on the cable when the pause arrived, has that arrived, too?",
        ),
        Misconception(
            "bits for bytes",
            lambda bandwidth, delay, packet: 16 * bandwidth * delay + 2 * packet,
            "The line is named in bits. How many bytes is that a second?",
        ),
        Misconception(
            "the sender's rest forgotten",
            lambda bandwidth, delay, packet: bandwidth * delay,
            "Follow the pause frame to the sender, and the last byte back.",
        ),
        Misconception(
            "one packet",
            lambda bandwidth, delay, packet: 2 * delay * bandwidth + packet,
            "Nearly. At which ends of the cable may somebody be in the middle of a packet?",
            slight=True,
        ),
    ),
)

threshold = Question(
    id="network.pause_threshold",
    chapter=CHAPTER,
    level="apply",
    prompt=(
        "A switch has {{ports}} ports, {{classes}} lossless classes and {{buffer}} of buffer;"
        " each port and class needs {{headroom}} of headroom. How long may each queue get before it"
        " pauses, if all get the same?"
    ),
    parameters={
        "ports": plain(32, 32, 64),
        "classes": plain(8, 4, 8),
        "buffer": Parameter(12, (12, 16, 24), "MB"),
        "headroom": Parameter(20, (15, 20, 22.4), "kB"),
    },
    valid=lambda ports, classes, buffer, headroom: (
        net.pfc_threshold(buffer, ports, classes, headroom) > 2e3
    ),
    expected=lambda ports, classes, buffer, headroom: net.pfc_threshold(
        buffer, ports, classes, headroom
    ),
    unit="kB",
    solution=lambda ports, classes, buffer, headroom: derivation(
        step(
            "Each class of each port has a queue.",
            "ports * classes",
            ports=ports,
            classes=classes,
        ),
        step(
            "A queue's part of the buffer.",
            "buffer / queues",
            buffer=(buffer, "byte"),
            queues=ports * classes,
        ),
        step(
            "Of that, the headroom has to stay free.",
            "part - headroom",
            (net.pfc_threshold(buffer, ports, classes, headroom), "byte"),
            part=(buffer / (ports * classes), "byte"),
            headroom=(headroom, "byte"),
        ),
    ),
    holds={"if all get the same": "definition: of the question"},
    smaller="network.headroom",
    misconceptions=(
        Misconception(
            "one class",
            lambda ports, classes, buffer, headroom: net.pfc_threshold(buffer, ports, 1, headroom),
            "Each class of each port has a queue of its own.",
        ),
        Misconception(
            "headroom forgotten",
            lambda ports, classes, buffer, headroom: buffer / (ports * classes),
            "You gave the queue its whole part. Where does what comes after the pause go?",
        ),
        Misconception(
            "one headroom for all",
            lambda ports, classes, buffer, headroom: (buffer - headroom) / (ports * classes),
            "The ports may pause at the same time. How many headrooms is that?",
        ),
        Misconception(
            "one port",
            lambda ports, classes, buffer, headroom: buffer / classes - headroom,
            "Each port has queues of its own. Among how many is the buffer shared?",
        ),
    ),
)

flows = Question(
    id="network.flows_in_step",
    chapter=CHAPTER,
    level="apply",
    prompt=(
        "DCQCN is set to raise a flow's rate once in {{timer}}. On a line of {{bandwidth}} with"
        " packets of {{packet}}, at how many equal flows does each send one packet between two"
        " raises?"
    ),
    parameters={
        "timer": Parameter(100, (55, 100), "µs"),
        "bandwidth": Parameter(40, (10, 40, 100), "Gbit/s"),
        "packet": Parameter(1000, (1000, 4000), "byte"),
    },
    expected=lambda timer, bandwidth, packet: net.dcqcn_flows(bandwidth, packet, timer),
    solution=lambda timer, bandwidth, packet: derivation(
        step(
            "Between two raises the line carries",
            "bandwidth * timer",
            bandwidth=(bandwidth, "byte/s"),
            timer=(timer, "s"),
        ),
        step(
            "In packets. With as many flows, each has one of them.",
            "carried / packet",
            float(net.dcqcn_flows(bandwidth, packet, timer)),
            carried=(bandwidth * timer, "byte"),
            packet=(packet, "byte"),
        ),
        after="With more, a flow speeds up again before it could be told to slow down.",
    ),
    holds={
        "With more, a flow speeds up": (
            lambda timer, bandwidth, packet: (
                bandwidth / (2 * net.dcqcn_flows(bandwidth, packet, timer)) * timer < packet
            )
        )
    },
    smaller="network.window",
    misconceptions=(
        Misconception(
            "bits for bytes",
            lambda timer, bandwidth, packet: 8 * bandwidth * timer / packet,
            "The line is named in bits, the packet in bytes.",
        ),
        Misconception(
            "packets a second",
            lambda timer, bandwidth, packet: bandwidth / packet,
            "Those are packets in a second. How many are sent between two raises?",
        ),
        Misconception(
            "upside down",
            lambda timer, bandwidth, packet: packet / (bandwidth * timer),
            "Do more flows fit on a faster line, or fewer?",
        ),
    ),
)

# --- the slowest of many ----------------------------------------------------------------------

both = Question(
    id="network.both_in_time",
    chapter=CHAPTER,
    level="recall",
    prompt=(
        "Two ranks wait for each other. Each is late with probability {{chance}}, by itself. In"
        " what share of the steps are both in time?"
    ),
    parameters={"chance": Parameter(10, (5, 10, 20), "%")},
    expected=lambda chance: float(1 - net.any_hit(chance, 2)),
    unit="%",
    tolerance=0.001,
    solution=lambda chance: derivation(
        step("One of them is in time with probability", "1 - p", p=chance),
        step(
            "They do not know of each other: multiply.",
            "in_time * in_time",
            float(1 - net.any_hit(chance, 2)),
            in_time=1 - chance,
        ),
    ),
    misconceptions=(
        Misconception(
            "chances added",
            lambda chance: 1 - 2 * chance,
            "You took off both chances. What of the steps in which both are late?",
        ),
        Misconception(
            "one rank",
            lambda chance: 1 - chance,
            "That is one of them. What of the steps in which it is in time and the other is not?",
        ),
        Misconception(
            "both late",
            lambda chance: chance**2,
            "In that share both are late. What is asked?",
        ),
        Misconception(
            "somebody late",
            lambda chance: float(net.any_hit(chance, 2)),
            "In that share somebody is late. What is asked?",
        ),
    ),
)

hit = Question(
    id="network.any_hit",
    chapter=CHAPTER,
    level="apply",
    prompt=(
        "In a step, a rank is late with probability {{chance}}, by itself. {{ranks}} ranks have to"
        " be done. In what share of the steps is somebody late?"
    ),
    parameters={
        "chance": Parameter(0.05, (0.05, 0.1, 0.2), "%"),
        "ranks": plain(1024, 512, 1024, 2048),
    },
    expected=lambda chance, ranks: net.any_hit(chance, ranks),
    unit="%",
    solution=lambda chance, ranks: derivation(
        step("One rank is in time with probability", "1 - p", p=chance),
        step(
            "Nobody is late if each of them is in time. They do not know of each other: multiply.",
            f"in_time**{ranks}",
            in_time=1 - chance,
        ),
        step(
            "In the other steps somebody is late.",
            "1 - nobody",
            float(net.any_hit(chance, ranks)),
            nobody=(1 - chance) ** ranks,
        ),
    ),
    holds={
        "Nobody is late": lambda chance, ranks: (
            abs((1 - chance) ** ranks + net.any_hit(chance, ranks) - 1) < 1e-12
        )
    },
    smaller="network.both_in_time",
    misconceptions=(
        Misconception(
            "chances added",
            lambda chance, ranks: chance * ranks,
            "Two may be late in the same step. Can your share exceed one?",
        ),
        Misconception(
            "one rank",
            lambda chance, ranks: chance,
            "That is one rank. The step waits for the others, too.",
        ),
        Misconception(
            "nobody late",
            lambda chance, ranks: (1 - chance) ** ranks,
            "That is the share of the steps in which the step is in time.",
        ),
    ),
)

MEDIAN = 0.5

quantile = Question(
    id="network.quantile",
    chapter=CHAPTER,
    level="design",
    prompt=(
        "{{ranks}} ranks wait for each other. You want to know the median of the step from the"
        " times of single ranks. Which share of the single times lies below it?"
    ),
    parameters={"ranks": plain(64, 16, 32, 64, 128)},
    expected=lambda ranks: net.quantile_of_one(MEDIAN, ranks),
    unit="%",
    tolerance=0.0005,
    solution=lambda ranks: derivation(
        "The step is below a time if all ranks are. If a rank is below it with probability $q$,"
        " all are with probability $q^n$.",
        "At the median of the step that is one half.",
        "Solve for $q$: take the root.",
        after=(
            f"$q = {MEDIAN}^{{1/{ranks}}} = {net.quantile_of_one(MEDIAN, ranks):.5f}$. Check:"
            f" raised to the power {ranks} it is a half."
        ),
    ),
    holds={
        "if all": "definition: a step ends with its last rank",
        "all are with probability": "algebra: of ranks that do not know of each other",
    },
    smaller="network.any_hit",
    misconceptions=(
        Misconception(
            "the same median",
            lambda ranks: 0.5,
            "That holds for one rank. What if the others are in time and one is not?",
        ),
        Misconception(
            "the half shared out",
            lambda ranks: 1 - MEDIAN / ranks,
            "You shared the late half out among the ranks. Raise your share to the number of"
            " ranks: is it a half?",
        ),
        Misconception(
            "one in so many",
            lambda ranks: 1 - 1 / ranks,
            "Check it: raised to the number of ranks, what share of the steps do you get?",
        ),
        Misconception(
            "to the power, not the root",
            lambda ranks: 1 - 0.5**ranks,
            "Write down when the step is in time, and solve for one rank.",
        ),
    ),
)

register(
    cable, window, goodput, budget, go_back, growth, queue, fit, headroom, threshold, flows, both,
    hit, quantile,
)  # fmt: skip

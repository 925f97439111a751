"""Chapter 2 in motion: a matrix that is read once, and tokens that pass under it one by one."""

from lightspeed import roofline
from lightspeed.roofline import WIDTH
from lightspeed_course.explorers.measured_machines import hardware as hardware_of
from lightspeed_course.explorers.menus import machines
from lightspeed_course.explorers.traffic import bare_chart
from lightspeed_show import Boxes, Choice, Line, Play, Text, View, explorer, si

SIDE = 8192  # D and F of the matrix
TOKENS = 8  # that pass in the picture
OPENS = 4  # the matrix has come, and three tokens have passed
HELD, COME, Y = (0.9, 3.5), (6.2, 8.8), (5.3, 8.7)  # places of the matrix


def view(hardware, weights, moment):
    """The matrix before it is read, read, and after some tokens have passed under it."""
    machine, width, count = hardware_of(hardware), WIDTH[weights], max(moment - 1, 0)
    flops = roofline.matmul_flops(count, SIDE, SIDE) if count else 0.0
    load = width * SIDE * SIDE if moment else 0.0
    traffic = roofline.matmul_bytes(count, SIDE, SIDE, width) if count else load
    intensity = flops / traffic if traffic else 0.0
    # So many tokens could have passed while the matrix came.
    room = roofline.critical_batch(roofline.ridge_point(machine.bf16, machine.hbm_bandwidth), width)
    facts = {
        "tokens so far": f"{count} of {TOKENS}",
        "read for all of them": si(load, "byte"),
        "done for them": si(flops, "FLOP"),
        "FLOP for each byte": si(intensity, digits=2),
        "could pass while it is read": si(room, "token"),
    }
    words = verdict(count, moment, intensity, room)
    figure = chart(count, moment, intensity, room, load)
    return View(figure, words, facts, TOKENS + 2, opens=OPENS)


def verdict(count, moment, intensity, room):
    if moment == 0:
        return "The matrix of weights is in memory, and tokens wait for it. Press play, or step."
    if not count:
        return "The whole matrix has been read, and nothing has been computed with it yet."
    if count == 1:
        return (
            f"One token has passed: {si(intensity, 'FLOP/byte', 2)}. For the next one the matrix"
            " need not be read again."
        )
    return (
        f"{count} tokens have used one reading of the matrix: {si(intensity, 'FLOP/byte', 2)}."
        f" {si(room, 'token')} could pass while it is read."
    )


def chart(count, moment, intensity, room, load):
    memory = Boxes([0.3], [4.1], [4.7], [9.7], labels=["memory"], color="grey", soft=True)
    units = Boxes([5.4], [9.6], [4.7], [9.7], labels=["tensor cores"], color="grey", soft=True)
    place = COME if moment else HELD
    matrix = Boxes([place[0]], [place[1]], [Y[0]], [Y[1]], "weights", ["D × F"], "blue", keys=["W"])
    places = [spot(k, count) for k in range(TOKENS)]
    tokens = Boxes(
        [x for x, _ in places],
        [x + 0.6 for x, _ in places],
        [y for _, y in places],
        [y + 1.1 for _, y in places],
        "tokens",
        [str(k + 1) for k in range(TOKENS)],
        "orange",
        keys=[f"token {k}" for k in range(TOKENS)],
    )
    marks = [memory, units, Line((4.3, 5.2), (7.0, 7.0), color="grey", arrow=True), matrix, tokens]
    lines = (f"read: {si(load, 'byte')}", f"used: {count} times", si(intensity, "FLOP/byte", 2))
    marks += [Text(10.2, 8.8 - 1.1 * k, t, anchor="start") for k, t in enumerate(lines)]
    share = min(count / room, 1.0)
    busy = f"while it is read, the tensor cores are busy for {si(share, '%', 2)} of the time"
    marks += [
        Boxes([0.3], [15.7], [0.2], [0.9], color="grey", soft=True),
        Boxes([0.3], [0.3 + 15.4 * share], [0.2], [0.9], "", color="orange", keys=["busy"]),
        Text(0.3, 1.5, busy, anchor="start"),
    ]
    return bare_chart(marks, 340)


def spot(k, count):
    """Where a token is: it waits on the left, is under the matrix, or has passed."""
    if k == count - 1:
        return 7.2, 2.9
    return (10.3 + 0.7 * k, 2.9) if k < count else (0.4 + 0.7 * (TOKENS - 1 - k), 2.9)


def explore_tokens():
    """One matrix, many tokens."""
    return explorer(
        view,
        [
            Choice("hardware", "hardware", machines("bf16", "hbm_bandwidth"), "h100_sxm"),
            Choice("weights", "weights", ["bf16", "int8", "int4"], "bf16"),
            Play("moment", "step", TOKENS + 1),
        ],
        caption=(
            f"A matrix of {SIDE:,} by {SIDE:,} crosses from memory once; each token that passes"
            " under it makes better use of that one reading."
        ),
        alt=(
            "On the left memory, with a block of weights that moves to the tensor cores once. Below"
            " it tokens pass one by one, and a count of FLOP per byte rises by one with each. A bar"
            " at the foot shows how little of the time the tensor cores are busy."
        ),
    )

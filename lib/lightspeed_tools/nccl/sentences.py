"""What a `Judged` run says, as sentences: the grounds of its verdict, what to look at, and all the
lines that the command prints.
"""

from lightspeed.catalog import number
from lightspeed_models.nccl_fit import FABRICS, measurements, predict
from lightspeed_models.nccl_tuner import nccl_choices
from lightspeed_show.format import si
from lightspeed_tools.nccl.advice import checks_of
from lightspeed_tools.nccl.published import (
    SMALL,
    STAND_INS,
    public_near,
    published_near,
    rate_of,
    standing,
)
from lightspeed_tools.nccl.shape import ends_of, fall_of, retransmits
from lightspeed_tools.nccl.summary import headline, percent, summary
from lightspeed_tools.nccl.verdict import leaves_node

TUNED = {"a100": ("ampere", 12), "h100": ("hopper", 18), "h200": ("hopper", 18),
         "b200": ("blackwell", 18), "p5": ("hopper", 18), "p6": ("blackwell", 18)}  # fmt: skip


def confidence(run):
    """Say how sure the verdict is, and why; empty without a verdict."""
    if not run.confidence:
        return ""
    ground = run.machine.ground if run.machine else f"named {run.report.names[0]}"
    grounds = [f"hardware: {ground}"]
    if run.main.level == "unknown":
        grounds.append("network: what such nodes are sold with")
    for name in ("collective", "ranks", "nodes"):
        fact = getattr(run.facts, name)
        grounds.append(f"{name} ({fact.how}): {fact.ground}")
    return f"Confidence {run.confidence}. {'; '.join(grounds)}."


def sentences(run):
    """Return remarks on the verdict, most important first."""
    lines = [*_sockets(run), *_stalls(run), *_span(run)]
    lines = lines if run.level != "invalid" else []
    if run.main and run.level != "invalid":
        lines += [_first(run), *_against_line(run), *_expected(run), *_network(run)]
        lines += [*_among_public(run), *_inside(run)]
        lines += [*_shape(run), *_tuner(run)]
    line = confidence(run) or _inferred(run)
    lines += [line] if line else []
    if run.dropped:
        lines.append(
            f"{run.dropped.name} is ruled out: its links do not carry what was measured"
            f" ({run.dropped.ground})."
        )
    if run.report.old_gather:
        lines.append(
            "The table is of before June 2020, when algbw of a gather was printed as its busbw;"
            " here it is size over time."
        )
    lines += _ending(run)
    return tuple(lines)


def _span(run):
    """From which to which rate of a node's adapters a run would be normal."""
    if run.span and run.span.low < run.span.high:
        low, high = (si(8 * rate, "bit/s", 2) for rate in (run.span.low, run.span.high))
        yield (
            f"It is normal if the adapters of a node carry {low} to {high} together: with less they"
            " could not have carried it, with more it is slow."
        )


def _sockets(run):
    """What NCCL says of its network, if that is TCP."""
    report = run.report
    if "sockets" in report.hints and (run.nodes or 2) > 1:
        over = f" over {', '.join(report.interfaces)}" if report.interfaces else ""
        yield f"The network is TCP sockets{over} (NET/Socket), as NCCL says."


def _stalls(run):
    """What stalls look like: a timer's, or something else's that comes and goes."""
    if not run.stalls:
        return
    worst = max(run.stalls, key=lambda stall: stall.factor)
    place = "in place" if worst.in_place else "out of place"
    yield (
        f"{si(float(worst.size), 'byte')} {place} took {si(worst.time, 's')}, {worst.factor:,.0f}"
        " times as long as as many bytes, or more, elsewhere in this table: no latency and no link"
        " does that."
    )
    if (run.nodes or 2) > 1 and retransmits(run.stalls):
        yield (
            "Stalls of milliseconds that are alike whatever the size are a timer's: packets were"
            " lost and sent again."
        )


def _inferred(run):
    """What was not said in so many words, with its ground, where no verdict carries it."""
    facts = [
        f"{name} from {fact.ground}"
        for name, fact in vars(run.facts).items()
        if fact.how == "inferred"
    ]
    return f"Inferred, not stated by the file: {'; '.join(facts)}." if facts else ""


def _first(run):
    main, nodes = run.main, run.nodes
    per = f"{run.n:,} GPUs" + (f" on {nodes:,} nodes" if nodes > 1 else " of one node")
    return (
        f"{run.collective} of {si(float(main.size), 'byte')} over {per}: {si(main.time, 's')},"
        f" algbw {si(main.algbw, 'byte/s')}, busbw {si(main.busbw, 'byte/s')}."
    )


def _against_line(run):
    main, machine = run.main, run.machine
    if not main.line:
        return
    if run.machine.joins(run.n, run.nodes):
        whose = "the slot of a GPU" if "PCIe" in machine.name else "the scale-up link of a GPU"
    elif run.collective in ("alltoall", "gather", "scatter", "sendrecv"):
        whose = "one GPU's share of the network"
    else:
        whose = "all adapters of a node"
    line = (
        f"Busbw is {percent(main.share)} of the line,"
        f" {si(main.line, 'byte/s')} in one direction for {whose}."
    )
    if machine.gpus and run.nodes > 1 and run.n < machine.gpus * run.nodes:
        line += f" Only {run.n / run.nodes:.3g} of {machine.gpus} GPUs of a node take part."
    if main.share > 1 and main.level != "fast" and run.collective == "all_reduce":
        nvls = main.model and main.model.path == "in_network"
        why = "the NVLink switches add" if nvls else "the algorithm sends less than a ring"
        line += (
            f" Above the line nothing is broken: {why}, and busbw still counts a ring's traffic."
        )
    yield line


def _expected(run):
    main = run.main
    if main.model:
        yield _against_model(run)
        yield _bound(main)
        yield _published(run)
        yield from _among_peers(run)
    elif main.line and "PCIe" in run.machine.name:
        yield (
            "The line is that of the slot. Cards without P2P pass each byte through the host and"
            " reach a fraction of it; no published run is at hand to judge by."
        )
    elif main.shares:
        low, high = si(main.shares[0], "%", 2), si(main.shares[-1], "%", 2)
        near = low if low == high else f"{low} to {high}"
        own = any(r.collective == run.collective for r in measurements() if r.nodes > 1)
        kin = "" if own or run.nodes == 1 else f" of {STAND_INS[run.collective]}, its kin,"
        yield (
            f"No model was fitted to this link. Published runs{kin} on other links reached {near}"
            f" of their line at the nearest size and scale ({len(main.shares)}"
            f" row{'s' * (len(main.shares) > 1)})."
        )


def _against_model(run):
    main = run.main
    ratio, model, level = main.ratio, main.model, main.level
    if main.ring:
        adds = predict(run.collective, main.size, run.n, 1, run.fabric, "in_network")
        return (
            f"That is normal for a ring, of which the model expects {si(model.time, 's')}; where"
            f" the NVLink switches add (NVLS), it expects {si(adds.time, 's')}, a busbw of"
            f" {si(adds.busbw, 'byte/s')}."
        )
    if level == "normal" and ratio > main.spread:
        return (
            f"The model expects {si(model.time, 's')}, but it was not fitted to {run.n} GPUs:"
            " public sweeps over as many are as slow, so that is normal."
        )
    words = {
        "normal": "That is normal",
        "slow": "That is slower than it should be",
        "very slow": "That is far too slow",
        "fast": (
            "That is faster than anything published: doubt the number of ranks, the unit or the"
            " size before you rejoice"
        ),
    }[level]
    if ratio >= 1.5:
        how, expects = f"{ratio:.1f} times the time", "that the model expects"
    else:
        how = f"{si(abs(ratio - 1), '%', 2)} {'more' if ratio > 1 else 'less'} time than"
        expects = "the model expects"
    tested = any(row.collective == run.collective for row in measurements())
    doubt = (
        ""
        if tested
        else " No published rows of this collective were at hand: the model is not tested on it."
    )
    return (
        f"{words}: {how} {expects}, {si(model.time, 's')}; nine of ten published runs of this kind"
        f" lie within a factor of {main.spread:.2f} of the model.{doubt}"
    )


def _bound(main):
    model = main.model
    steps = (
        f"alone, all steps would take {si(model.latency, 's', 2)} at the latency of short"
        f" messages, and all bytes {si(model.transfer, 's', 2)}"
    )
    if main.regime == "latency-bound":
        return (
            f"Steps bound it, not links: {steps}. A larger message would show a higher rate on the"
            " same machine."
        )
    if main.regime == "in between":
        return f"Steps and bytes both count: {steps}. The rate still rises with the message."
    return f"The link bounds it: {steps}."


def _published(run):
    rows = published_near(run.collective, run.main.size, run.nodes, run.fabric, run.n)
    if not rows:
        return "No published measurement over as many GPUs is near this size on this link."
    rates = sorted(rate_of(row) for row in rows)
    where = sorted({row.nodes for row in rows})
    at = (
        "one node"
        if where == [1]
        else f"{where[0]} nodes"
        if len(where) == 1
        else f"{where[0]} to {where[-1]} nodes"
    )
    span = (
        si(rates[0], "byte/s")
        if len(rates) == 1
        else f"{si(rates[0], 'byte/s')} to {si(rates[-1], 'byte/s')}"
    )
    return (
        f"Published nearby ({at}, half to twice the size): busbw {span}, {len(rows)}"
        f" row{'s' * (len(rows) > 1)}."
    )


def _among_peers(run):
    place = standing(run)
    if not place or place[0].peers < 3:
        return
    peers, own = place
    below = round(peers.percentile * peers.peers)
    largest = ", the largest that they measured" if peers.size < run.main.size else ""
    where = f", at {si(own.busbw, 'byte/s')} there," if own.size < run.main.size else ""
    if own.size > peers.size:
        where = f", at {si(float(own.size), 'byte')},"
    place = (
        "below all of them"
        if below == 0
        else "above all"
        if below == peers.peers
        else f"above {below}"
    )
    yield (
        f"Peers: {peers.peers} public sweeps of this collective over {run.n} GPUs on links of"
        f" this rate gave {si(peers.busbw[0], 'byte/s')} to {si(peers.busbw[-1], 'byte/s')} at"
        f" {si(peers.size, 'byte')}{largest}; this run{where} is {place}."
    )


def _among_public(run):
    """A run across nodes among those that others published."""
    runs = public_near(run)
    if not runs:
        return
    where = f"{runs.nodes[0]}" + (f" to {runs.nodes[-1]}" if len(runs.nodes) > 1 else "")
    place = (
        "below all of them"
        if not runs.slower
        else "above all of them"
        if runs.slower == len(runs.busbw)
        else f"above {runs.slower}"
    )
    yield (
        f"Peers: {len(runs.busbw)} public runs of this collective over {where} nodes of"
        f" {run.n // run.nodes} such GPUs, whatever their network, gave"
        f" {si(runs.busbw[0], 'byte/s')} to {si(runs.busbw[-1], 'byte/s')}; this run is {place}."
    )


def _network(run):
    """What the adapters carried, in ports: the ring's traffic, and the least of any algorithm."""
    main, machine, nodes = run.main, run.machine, run.nodes
    if nodes == 1 or (machine and machine.joins(run.n, nodes) and main.line):
        return
    least = leaves_node(run.collective, main.algbw, nodes, run.n / nodes)
    ring = run.collective == "all_reduce" and main.busbw > 1.02 * least
    if machine and machine.network and main.busbw > machine.network:
        ring = False  # it could not have
    carried = f"Each node sent at least {si(least, 'byte/s')}" + (
        f" ({si(main.busbw, 'byte/s')} if NCCL ran a ring)" if ring else ""
    )
    adapters = run.facts.adapters
    if main.size < SMALL:
        return
    if machine and machine.port:
        used = (main.busbw if ring else least) / machine.port
        count = round(machine.network / machine.port)
        yield f"{carried}: as much as {used:.1f} of {count} adapters carry."
    elif adapters.known and not (machine and machine.network):
        each = si(least * 8 / adapters.value, "bit/s", 2)
        yield f"{carried}: {each} for each of {adapters.value} adapters ({adapters.ground})."
    elif not (machine and machine.network):
        rate = main.busbw if ring else least
        used = {g: rate / (g * 1e9 / 8) for g in (400, 200, 100)}
        ports = ", ".join(f"{u:.{1 if u >= 0.1 else 2}f} of {g}" for g, u in used.items())
        yield f"{carried}: as much as adapters of so many Gbit/s carry: {ports}."


def _inside(run):
    """What a rate on one node of unknown hardware shows by itself."""
    slot = number("pcie5_x16.bandwidth")
    if run.nodes == 1 and not run.main.line and run.main.busbw > 1.03 * slot:
        yield (
            f"That is more than a slot of PCIe 5 carries, {si(slot, 'byte/s')}: it went over"
            " NVLink or another scale-up link."
        )


def _shape(run):
    fall = fall_of(run.verdicts)
    if fall:
        after = (
            "and larger messages reach it again: one size alone lost, as where NCCL changes its"
            " algorithm or another job came in between."
            if fall.returns
            else "and does not return: where NCCL changes its algorithm or a link fills unevenly,"
            " larger messages lose."
        )
        yield (
            f"Busbw falls by {si(fall.share, '%', 2)} from {si(fall.before, 'byte/s')} at"
            f" {si(float(fall.size), 'byte')} to {si(fall.after, 'byte/s')} at"
            f" {si(float(fall.end), 'byte')}, {after}"
        )
    # A curve that falls has no such two ends.
    ends = None if fall else ends_of(run.collective, run.n, run.verdicts)
    if ends:
        yield (
            f"By its own rows: {si(ends[0], 's', 2)} before the first byte, then busbw"
            f" {si(ends[1], 'byte/s')} (a fit of latency and bandwidth)."
        )


def _tuner(run):
    """NCCL's own estimate, where its model has the hardware and the collective."""
    main = run.main
    if run.fabric not in TUNED or run.collective != "all_reduce" or not main.model:
        return
    architecture, links = TUNED[run.fabric]
    network = FABRICS[run.fabric].rate(2) if run.nodes > 1 else 400e9
    best = nccl_choices(main.size, run.n, run.nodes, architecture, links, network)[0]
    yield (
        f"NCCL's tuner would pick {best.algorithm} {best.protocol} and charge"
        f" {si(best.time, 's')}: measured is {main.time / best.time:.2f} times that. Its model is"
        " made to choose, not to predict."
    )


def _ending(run):
    report = run.report
    last = max(row.size for row in report.rows)
    if report.max_bytes and last < report.max_bytes / 2:
        yield (
            f"The file ends at {si(float(last), 'byte')}, the test was to go to"
            f" {si(float(report.max_bytes), 'byte')}: what larger messages do is not in it."
        )
    elif report.truncated:
        yield "The closing lines of the test are missing: the run may not have ended."


def contradictions(run, most=10):
    """Return faults of the file itself, as lines."""
    lines = [f"line {f.line}: {f.text}" if f.line else f.text for f in run.findings]
    return tuple(lines[:most]) + ((f"and {len(lines) - most} more",) if len(lines) > most else ())


def in_words(run):
    """Return the lines that the command prints: run, verdict, checks, and file faults."""
    lines = [headline(run), *(f"  {s}" for s in (summary(run), *sentences(run)))]
    checks = checks_of(run)
    if checks:
        lines += ["Check first:", *(f"  {i}. {what}" for i, what in enumerate(checks, 1))]
    elif run.level == "normal":
        lines.append("Nothing to check.")
    if run.findings:
        lines += ["About the file:", *(f"  {line}" for line in contradictions(run))]
    return lines

"""What was run, and the verdict on it, each as one sentence."""

from lightspeed.collectives import busbw_factor
from lightspeed_show.format import si
from lightspeed_tools.nccl.published import LARGE, SMALL


def headline(run):
    """Describe the run and its machine; unknown facts are called unknown."""
    facts = run.facts
    name = run.report.collective
    unclear = f"{name} by name, not by its rows" if name else "a collective that is not named"
    apart = "several tests at once" if run.report.apart else ""
    what = facts.collective.value or apart or unclear
    unit = "rank" if run.report.shared else "GPU"
    gpus = f"{run.n:,} {unit}{'s' * (run.n != 1)}" if run.n else "an unknown number of GPUs"
    nodes = run.nodes
    on = f" on {nodes:,} node{'s' * (nodes > 1)}" if nodes else ", nodes not known"
    names = "; ".join(run.report.names[:2])
    where = run.machine.name if run.machine else names or "hardware not stated"
    return f"{what}, {gpus}{on}, {where}"


def summary(run):
    """Give the verdict on the run in one sentence, consistent with the details below it."""
    if run.level == "invalid":
        return _invalid(run)
    words = _by_cases(run) or _by_main(run)
    if run.stalls and run.level == "mixed":
        words = f"Stalls at {_sizes(run.stalls)}. Else: {words[0].lower()}{words[1:]}"
    if run.level == "aborted":
        failure = run.report.failures[0].text.rstrip(".")
        return f"Aborted: {failure}. As far as it went: {words[0].lower()}{words[1:]}"
    last = max(row.size for row in run.report.rows)
    judged_so_far = run.level not in ("unknown", "depends")
    if judged_so_far and run.report.truncated and last < (run.report.max_bytes or 0) / 2:
        return f"As far as the file goes: {words[0].lower()}{words[1:]}"
    return words


def _by_main(run):
    main, slow = run.main, run.slow
    if main is None:
        row = max(run.report.rows, key=lambda row: row.size)
        return (
            f"Not judged: busbw {si(row.busbw, 'byte/s')} at {si(float(row.size), 'byte')} as"
            f" printed. {' '.join(run.facts.asks)}"
        )
    at = si(float(main.size), "byte")
    rate = f"busbw {si(main.busbw, 'byte/s')} at {at}"
    if main.level == "unknown":
        share = f", {percent(main.share)} of the line" if main.share else ""
        return f"Not judged: {rate}{share}. {_why_unknown(run)}"
    facts = f"{rate}, {percent(main.share)} of the line"
    facts += f", {main.regime}." if main.model else "."
    if main.ring:
        facts += " With NVLS the switches would add, and give more."
    if main.level != "normal" or not (slow or run.above):
        return f"{main.level.capitalize()}{' for a ring' * main.ring}: {facts}"
    against = []
    if slow:
        outside = {v.size for v in run.verdicts if v in slow}
        inside = {v.size for v in slow} - outside
        listing = sorted({v.size for v in slow})
        sizes = [
            si(float(size), "byte") + " in place" * (size in inside) for size in listing[:3]
        ] + ["..."] * (len(listing) > 3)
        against.append(
            f"slower than it should be at {len(listing)} of {len(run.verdicts)} sizes"
            f" ({', '.join(sizes)})"
        )
    against += [f"below all {run.above} published runs nearby"] if run.above else []
    model = "by the model " if main.model else ""
    return f"Normal {model}at {at}, but {' and '.join(against)}: {facts}"


def _sizes(stalls):
    """How many sizes stall in which half, and by how much."""
    words = []
    for in_place, place in ((False, "out of place"), (True, "in place")):
        factors = [stall.factor for stall in stalls if stall.in_place == in_place]
        if factors:
            many = f"{len(factors)} size{'s' * (len(factors) > 1)} {place}"
            words.append(f"{many}, up to {max(factors):,.0f} times as long as they should take")
    return " and ".join(words)


def percent(share):
    return si(share, "%", 3 if share > 1 else 2)


def _by_cases(run):
    """The verdict on a run whose machine the file leaves open: what it is on each that could have
    carried it; empty where there is none.
    """
    if not run.cases:
        return ""
    facts, machine = run.facts, run.machine
    row = max((r for r in run.report.rows if r.time), key=lambda r: (r.size, not r.in_place))
    rate = f"busbw {si(busbw_of(run, row), 'byte/s')} at {si(float(row.size), 'byte')}"
    open_ones = [] if facts.nodes.known else ["the nodes"]
    open_ones += ["the network"] if any(case.nodes > 1 for case in run.cases) else []
    open_ones += ["the links inside"] if any(case.nodes == 1 for case in run.cases) else []
    cases = ", ".join(_told(case, facts.nodes.known) for case in run.cases)
    alone = machine and machine.domain > (machine.gpus or facts.per_node or 8) > 1
    note = ", counted as if no NVLink joined its nodes" if alone else ""
    options = {
        "the nodes": "--nodes",
        "the network": "--nic",
        "the links inside": "--hardware or --machine",
    }
    ask = _and([options[one] for one in open_ones])
    if run.agreed in ("normal", "slow", "very slow"):
        return (
            f"{run.agreed.capitalize()} on {'each' if len(run.cases) > 1 else 'the'} network"
            f" that such nodes are sold with and that could have carried it: {rate} is"
            f" {cases}{note}. State it with --nic."
        )
    return (
        f"Depends on {_and(open_ones)}, which the file does not name: {rate} is"
        f" {cases}{note}. State {'it' if len(open_ones) == 1 else 'them'} with {ask}."
    )


def _and(words):
    return f"{', '.join(words[:-1])} and {words[-1]}" if len(words) > 1 else words[0]


def _told(case, nodes_known):
    where = case.where
    if case.nodes > 1:
        of_all = f"{case.nodes} nodes with {where} each"
        where = f"{where} a node" if nodes_known else of_all
    level = "" if case.level == "unknown" else f"{case.level} on "
    share = percent(case.share) + (", by a tree" * case.tree)
    if case.sold:
        return f"{level}{where} ({share}; {', '.join(case.sold)})"
    return f"{level}{where} ({share})" if level else f"{share} of {where}"


def _invalid(run):
    if run.wrong:
        return "Invalid: the test reports wrong results, so its rates mean nothing."
    if run.report.apart:
        return (
            "Invalid: several processes tested each by itself, as they do without MPI=1 in the"
            " build; nothing here is one collective of them all."
        )
    return "Invalid: one rank sends nothing, so there is nothing to judge. Was it built with MPI=1?"


def _why_unknown(run):
    if run.main.size < SMALL:
        return (
            "At that size steps count and not links: run the test with -e 8G to see what the"
            " links give."
        )
    if run.machine is None:
        return "The hardware is not known: state it with --hardware, or with --nic and --domain."
    if run.main.line is None:
        return "The file does not name the network: state it with --nic, such as --nic 8x400G."
    if run.nodes > 1 and run.machine.gpus and run.n < run.machine.gpus * run.nodes:
        return "No published run leaves GPUs of a node out: run the test on all of them."
    if run.main.size < LARGE:
        return "Below 64 MB steps and bytes both count: run the test with -e 8G to see the plateau."
    return "No published run of this kind is at hand to judge by."


def busbw_of(run, row):
    """Return a row's busbw (byte/s) from size and time; as printed if the ranks are unknown."""
    if run.main is None:
        return row.busbw
    return row.size / row.time * busbw_factor(run.collective, run.n)

"""How far to trust a measurement: what was going on in the machine before and while it ran.

`before = snapshot()`, measure, then `checks(before, snapshot(), machine)`: a list of {"check",
"state", "words", "remedy"}, with state "ok", "warn" or "unknown". The questions are those of
isolate-check-environment (the sandbox of the programming olympiads), and those that a virtual
machine and a container add.
"""

import contextlib
import itertools
import os
import re
import time
from pathlib import Path

from lightspeed_show import si
from lightspeed_tools.measure.environment import cgroup_files, read

BUSY = 0.1  # of the usable cores, taken by others, disturbs
STOLEN = 0.01  # of the time, taken by the hypervisor, disturbs
COARSE = 1e-6  # s; a clock that ticks no finer disturbs short samples


def snapshot(root="/"):
    """Counters of the system at this moment: seconds, ticks and events since it started."""
    root = Path(root)
    stat = read(root, "proc/stat")
    ticks = (
        [int(n) for n in re.findall(r"\d+", stat.partition("\n")[0][4:])]
        if stat.startswith("cpu ")
        else []
    )
    moved = re.findall(r"^pswp(?:in|out) (\d+)$", read(root, "proc/vmstat"), re.M)
    throttles = [
        read(p.parent, p.name)
        for p in (root / "sys/devices/system/cpu").glob(
            "cpu[0-9]*/thermal_throttle/*_throttle_count"
        )
    ]
    quota = [
        re.search(r"^nr_throttled (\d+)$", text, re.M) for text in cgroup_files(root, "cpu.stat")
    ]
    ours = os.times()
    return {
        "at": time.monotonic(),
        "load": _load(root),
        "ticks": ticks,
        "ours": sum(ours[:4]),  # children that have ended are in it
        "swapped": sum(map(int, moved)) if moved else None,
        "heat": sum(int(t) for t in throttles if t.isdigit()) if throttles else None,
        "held": sum(int(q[1]) for q in quota if q) if any(quota) else None,
    }


def checks(before, after, machine, root="/"):
    """Every check, in the order in which a reader should look at them."""
    root = Path(root)
    results = {
        "load": _load_check(before, machine),
        "other processes": _others(before, after, machine),
        "stolen time": _steal(before, after, machine),
        "frequency": _frequency(root),
        "heat": _heat(before, after),
        "quota": _quota(before, after, machine),
        "swap": _swap(before, after),
        "virtual machine": _virtual(machine),
        "timer": timer(_tick(), machine.get("clock_source", "")),
    }
    keys = ("check", "state", "words", "remedy")
    return [dict(zip(keys, (check, *row), strict=True)) for check, row in results.items()]


def trust(environment):
    """One sentence on how far the conditions let a reader trust the result."""
    warned = [c["check"] for c in environment if c["state"] == "warn"]
    unseen = [c["check"] for c in environment if c["state"] == "unknown"]
    first = (
        f"{len(warned)} of {len(environment)} checks warn ({', '.join(warned)})"
        if warned
        else "no check warns"
    )
    return (
        first[0].upper()
        + first[1:]
        + (f"; this system does not tell about {', '.join(unseen)}." if unseen else ".")
    )


def crowded(environment):
    """Return a warning if more work waited than there are cores, or other processes used half."""
    words = {c["check"]: c["words"] for c in environment}
    # a record keeps the words alone
    load = re.search(r"load ([\d.]+) before the start, on (\d+) cores", words.get("load", ""))
    others = re.search(r"took ([\d.]+) of a core", words.get("other processes", ""))
    reasons = [load[0]] if load and float(load[1]) > int(load[2]) else []
    reasons += [others.string] if load and others and float(others[1]) >= int(load[2]) / 2 else []
    return (
        f"The machine was busy with other work ({'; '.join(reasons)}): what repeats may still be"
        " wrong, mostly too slow."
        if reasons
        else ""
    )


def why(environment):
    """Return the likely causes of a quantity's wide spread, in words, from the checks that warn."""
    warned = [c["words"] for c in environment if c["state"] == "warn"]
    return warned or ["no check found a cause; measure again, and a few times"]


def _check(state, words, remedy=""):
    """(state, words, remedy): `state` None is unknown, True warns, False is all right."""
    if state is None:
        return "unknown", words, ""
    return ("warn", words, remedy) if state else ("ok", words, "")


def _load(root):
    text = read(root, "proc/loadavg").split()
    with contextlib.suppress(OSError, AttributeError):
        return float(text[0]) if text else os.getloadavg()[0]
    return None


def _cores(machine):
    return machine.get("usable_cores") or machine.get("cores") or 1


def _load_check(before, machine):
    load, cores = before["load"], _cores(machine)
    if load is None:
        return _check(None, "the load before the start is not to be seen")
    words = f"load {load:.2f} before the start, on {cores} cores"
    remedy = "Close what else is running, wait a minute, measure again."
    return _check(load > max(0.5, BUSY * cores), words, remedy)


def _others(before, after, machine):
    ticks, seconds = _passed(before, after), after["at"] - before["at"]
    if not ticks or seconds <= 0:
        return _check(None, "what others took is not to be seen")
    # User, nice, system, interrupts: guests are in users' time, stolen time is nobody's.
    busy = (sum(ticks[:3]) + sum(ticks[5:7])) / os.sysconf("SC_CLK_TCK")
    share = max(0.0, (busy - (after["ours"] - before["ours"])) / seconds)
    words = f"other processes took {share:.2f} of a core while measuring"
    remedy = "Close what else is running and measure again."
    return _check(share > max(0.2, BUSY * _cores(machine)), words, remedy)


def _passed(before, after):
    """Clock ticks between the two, by kind (user, nice, system, idle, iowait, ..., steal)."""
    if len(before["ticks"]) < 8 or len(after["ticks"]) != len(before["ticks"]):
        return []
    return [late - early for early, late in zip(before["ticks"], after["ticks"], strict=True)]


def _grown(before, after, counter):
    """By how much a counter has grown, or None where it is not to be seen."""
    if before[counter] is None or after[counter] is None:
        return None
    return after[counter] - before[counter]


def _steal(before, after, machine):
    ticks = _passed(before, after)
    if not ticks or not sum(ticks[:8]):
        return _check(None, "time that a hypervisor takes is not to be seen")
    share = ticks[7] / sum(ticks[:8])
    words = "no hypervisor took time"
    if share or machine.get("virtual"):
        words = f"the hypervisor took {si(share, '%', 2)} of the time"
    remedy = (
        "Neighbours are at work on the same hardware: measure at another hour, or on a machine of"
        " your own."
    )
    return _check(share > STOLEN, words, remedy)


def _frequency(root):
    files = (root / "sys/devices/system/cpu").glob("cpu[0-9]*/cpufreq/scaling_governor")
    governors = sorted({read(p.parent, p.name) for p in files})
    if not governors:
        return _check(None, "the clock's governor is not to be seen")
    words, slow = f"the clock's governor is {', '.join(governors)}", governors != ["performance"]
    words += ": the clock may not be at its full rate at the start of a sample" if slow else ""
    return _check(slow, words, "cpupower frequency-set -g performance, as root.")


def _heat(before, after):
    events = _grown(before, after, "heat")
    if events is None:
        return _check(None, "whether the processor throttled is not to be seen")
    words = f"throttled {events} times while measuring" if events > 0 else "did not throttle"
    return _check(events > 0, f"the processor {words}", "Let it cool, give it air, measure again.")


def _quota(before, after, machine):
    quota, stops = machine.get("core_quota"), (after["held"] or 0) - (before["held"] or 0)
    if quota is None:
        return _check(False, "no container limits the processor time")
    words = f"a container limits this process to {quota:g} cores' time"
    words += f", and stopped it {stops} times while measuring" if stops > 0 else ""
    remedy = "Raise the limit of the container, or measure with as many threads as it allows."
    return _check(stops > 0 or quota < _cores(machine), words, remedy)


def _swap(before, after):
    pages = _grown(before, after, "swapped")
    if pages is None:
        return _check(None, "whether pages went to disk is not to be seen")
    words = "no page went to the disk"
    if pages > 0:
        words = f"{pages} pages went to or came from the disk while measuring"
    return _check(pages > 0, words, "Free memory and measure again.")


def _virtual(machine):
    kind = machine.get("virtual")
    words = "nothing shows a virtual machine"
    if kind:
        words = (
            f"runs in {kind}: caches, cores and sockets may not be as advertised, and neighbours"
            " are not to be seen"
        )
    return _check(bool(kind), words, "Take several records, at several hours.")


def timer(tick, source=""):
    """(state, words, remedy) of a clock that ticks every `tick` seconds."""
    words = f"the clock ticks every {si(tick, 's', 2)}" + (f" ({source})" if source else "")
    remedy = (
        "Only long samples mean something here; ask for the tsc clock source if the hardware has"
        " it."
    )
    return _check(tick > COARSE or source in ("hpet", "acpi_pm", "jiffies"), words, remedy)


def _tick(reads=2000):
    """The smallest step that the clock was seen to take, seconds: with the cost of reading."""
    times = [time.perf_counter() for _ in range(reads)]
    steps = [b - a for a, b in itertools.pairwise(times) if b > a]
    return min(steps, default=time.get_clock_info("perf_counter").resolution)

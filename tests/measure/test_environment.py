"""What a machine says of itself, and how far to trust it, from machines made of small files."""

import os

import pytest

from lightspeed_tools.measure import conditions, environment
from lightspeed_tools.measure.records import record

XEON = """\
processor\t: {n}
vendor_id\t: GenuineIntel
model name\t: Intel(R) Xeon(R) Platinum 8488C CPU @ 2.40GHz
physical id\t: {socket}
core id\t\t: {core}
flags\t\t: fpu sse2 avx avx2 fma avx512f avx512_bf16 amx_tile{more}
"""
ARM = """\
processor\t: {n}
BogoMIPS\t: 2000.00
Features\t: fp asimd sve bf16 i8mm
CPU implementer\t: 0x41
CPU part\t: 0xd40
"""


@pytest.fixture
def machine(tmp_path):
    """A writer of files below a root: machine("proc/stat", text)."""

    def write(path, text):
        file = tmp_path / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text + "\n")
        return tmp_path

    write.root = tmp_path
    return write


def server(machine, more=""):
    """Two sockets of two cores of two threads, 64 GiB."""
    places = [(s, c) for _ in range(2) for s in range(2) for c in range(2)]
    machine(
        "proc/cpuinfo",
        "\n".join(XEON.format(n=n, socket=s, core=c, more=more) for n, (s, c) in enumerate(places)),
    )
    machine(
        "proc/meminfo",
        "MemTotal:       67108864 kB\nMemAvailable:   33554432 kB\nSwapTotal:       1048576"
        " kB\nSwapFree: 1048576 kB",
    )
    machine("sys/devices/system/cpu/cpu0/topology/thread_siblings_list", "0,4")
    machine("sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq", "3800000")
    for node in range(2):
        machine(f"sys/devices/system/node/node{node}/meminfo", "")
    for index, (level, kind, size, shared) in enumerate(
        [
            (1, "Data", "48K", "0,4"),
            (1, "Instruction", "32K", "0,4"),
            (2, "Unified", "2048K", "0,4"),
            (3, "Unified", "105M", "0-1,4-5"),
        ]
    ):
        for name, text in (
            ("level", level),
            ("type", kind),
            ("size", size),
            ("shared_cpu_list", shared),
        ):
            machine(f"sys/devices/system/cpu/cpu0/cache/index{index}/{name}", str(text))
    return machine.root


def test_a_server_with_two_sockets(machine):
    found = environment.describe(server(machine))
    assert found["cores"] == 8 and found["physical_cores"] == 4 and found["threads_per_core"] == 2
    assert found["memory"] == 64 * 2**30 and found["swap"] == 2**30
    assert found["numa_nodes"] == 2 and found["clock_limit"] == 3.8e9
    assert found["vectors"] == ["avx", "avx2", "fma", "avx512f", "avx512_bf16", "amx_tile"]
    assert found["caches"][0] == {"level": 1, "kind": "data", "size": 48 * 1024, "shared_by": 2}
    assert found["caches"][3] == {
        "level": 3,
        "kind": "unified",
        "size": 105 * 2**20,
        "shared_by": 4,
    }
    assert environment.name_of(found | {"usable_cores": 8}) == "Intel Xeon Platinum 8488C, 8 cores"
    assert "virtual" not in found and "container" not in found and "core_quota" not in found


def test_arm_spells_it_differently(machine):
    machine("proc/cpuinfo", "\n".join(ARM.format(n=n) for n in range(4)))
    found = environment.describe(machine.root)
    assert found["cores"] == 4 and found["vectors"] == ["asimd", "sve", "bf16", "i8mm"]
    assert "physical_cores" not in found and "caches" not in found and "memory" not in found


@pytest.mark.parametrize("text", ["", "garbage", "processor\nflags\n\n\n:\n"])
def test_a_cpuinfo_that_says_nothing(text, machine):
    machine("proc/cpuinfo", text)
    assert environment.describe(machine.root)["cores"] == 1


@pytest.mark.parametrize(
    "model, name",
    [
        ("AMD Ryzen 9 7950X 16-Core Processor", "AMD Ryzen 9 7950X, 4 cores"),
        ("Intel(R) Core(TM) i7-8650U CPU @ 1.90GHz", "Intel Core i7-8650U, 4 cores"),
        ("Apple M2", "Apple M2, 4 cores"),
    ],
)
def test_a_name_is_short(model, name):
    assert environment.name_of({"cpu": model, "usable_cores": 4}) == name


def test_lists_of_the_kernel():
    assert environment.listed("0-2,8,10-11") == [0, 1, 2, 8, 10, 11]
    assert environment.listed("") == []


@pytest.mark.parametrize(
    "files, quota",
    [
        (
            {"proc/self/cgroup": "0::/app/one", "sys/fs/cgroup/app/one/cpu.max": "150000 100000"},
            1.5,
        ),
        (
            {
                "proc/self/cgroup": "0::/app/one",
                "sys/fs/cgroup/app/one/cpu.max": "max 100000",
                "sys/fs/cgroup/app/cpu.max": "50000 100000",
            },
            0.5,
        ),
        ({"proc/self/cgroup": "0::/", "sys/fs/cgroup/cpu.max": "200000 100000"}, 2.0),
        ({"proc/self/cgroup": "0::/app", "sys/fs/cgroup/app/cpu.max": "max 100000"}, None),
        ({"proc/self/cgroup": "4:cpu:/"}, None),
        ({}, None),
    ],
)
def test_the_quota_of_a_container(files, quota, machine):
    for path, text in files.items():
        machine(path, text)
    assert environment.core_quota(machine.root) == quota


def test_the_memory_of_a_container(machine):
    machine("proc/self/cgroup", "9:memory:/b\n0::/a")
    machine("sys/fs/cgroup/a/memory.max", str(2**31))
    machine("sys/fs/cgroup/memory.max", "max")
    assert environment.memory_limit(machine.root) == 2**31


@pytest.mark.parametrize(
    "path, text, kind",
    [
        ("sys/class/dmi/id/sys_vendor", "QEMU", "QEMU"),
        ("sys/class/dmi/id/product_name", "VMware7,1", "VMware"),
        ("proc/version", "Linux version 5.15 (Microsoft@Microsoft.com)", "WSL"),
        ("sys/hypervisor/type", "xen", "xen"),
        ("proc/cpuinfo", "processor\t: 0\nflags\t\t: fpu hypervisor", "a hypervisor"),
        ("proc/cpuinfo", "processor\t: 0\nmodel name\t: hypervisor", ""),
        ("sys/class/dmi/id/product_name", "ThinkPad X1", ""),
    ],
)
def test_a_virtual_machine_shows(path, text, kind, machine):
    assert environment.virtual(machine(path, text)) == kind


def test_versions_name_what_does_the_work():
    found = environment.versions()
    assert {"system", "python", "numpy", "blas"} <= set(found)
    assert all(isinstance(v, str) and not record.PATH.search(v) for v in found.values())


# ---------------------------------------------------------------- conditions

QUIET = {
    "at": 0.0,
    "load": 0.1,
    "ticks": [0] * 10,
    "ours": 0.0,
    "swapped": 0,
    "heat": 0,
    "held": None,
}
EIGHT = {"cores": 8, "usable_cores": 8, "threads_per_core": 1, "memory": 2**36}
TICK = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100


def state(name, machine, before=None, after=None, about=None):
    """(state, words) of one check on a machine of files."""
    found = conditions.checks(
        QUIET | (before or {}),
        QUIET | {"at": 10.0} | (after or {}),
        EIGHT | (about or {}),
        machine.root,
    )
    one = next(c for c in found if c["check"] == name)
    assert bool(one["remedy"]) == (one["state"] == "warn")
    return one["state"], one["words"]


@pytest.mark.parametrize(
    "load, expected", [(0.3, "ok"), (0.7, "ok"), (0.9, "warn"), (8, "warn"), (None, "unknown")]
)
def test_load(load, expected, machine):
    assert state("load", machine, {"load": load})[0] == expected


def ticks(**spent):
    """Ticks of ten seconds in which kinds of time were spent, in seconds."""
    kinds = (
        "user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal", "guest",
        "guest_nice",
    )  # fmt: skip
    return {"ticks": [round(TICK * spent.get(kind, 0)) for kind in kinds]}


@pytest.mark.parametrize(
    "spent, ours, expected, words",
    [
        ({"user": 12, "system": 3, "idle": 65}, 15, "ok", "0.00 of a core"),
        ({"user": 12, "system": 3, "idle": 65}, 3, "warn", "1.20 of a core"),
        ({"user": 10, "idle": 60, "iowait": 10}, 10, "ok", "0.00"),
        ({"user": 10, "idle": 60, "steal": 10}, 10, "ok", "0.00"),
        ({"user": 30, "guest": 20, "idle": 50}, 10, "warn", "2.00"),
    ],
)
def test_what_others_took(spent, ours, expected, words, machine):
    found = state("other processes", machine, {}, ticks(**spent) | {"ours": ours})
    assert found[0] == expected and words in found[1]


@pytest.mark.parametrize(
    "spent, expected",
    [({"user": 10, "idle": 70}, "ok"), ({"idle": 79, "steal": 1}, "warn"), ({}, "unknown")],
)
def test_stolen_time(spent, expected, machine):
    assert state("stolen time", machine, {}, ticks(**spent))[0] == expected


@pytest.mark.parametrize(
    "governors, expected",
    [(["performance"] * 2, "ok"), (["performance", "powersave"], "warn"), ([], "unknown")],
)
def test_frequency(governors, expected, machine):
    for n, governor in enumerate(governors):
        machine(f"sys/devices/system/cpu/cpu{n}/cpufreq/scaling_governor", governor)
    assert state("frequency", machine)[0] == expected


@pytest.mark.parametrize(
    "check, before, after, about, expected",
    [
        ("heat", {"heat": 3}, {"heat": 3}, {}, "ok"),
        ("heat", {"heat": 3}, {"heat": 5}, {}, "warn"),
        ("heat", {"heat": None}, {"heat": None}, {}, "unknown"),
        ("swap", {"swapped": 7}, {"swapped": 7}, {}, "ok"),
        ("swap", {"swapped": 7}, {"swapped": 9}, {}, "warn"),
        ("swap", {"swapped": None}, {}, {}, "unknown"),
        ("quota", {}, {}, {"core_quota": 1.5}, "warn"),
        ("quota", {}, {}, {"core_quota": 8}, "ok"),
        ("quota", {"held": 1}, {"held": 4}, {"core_quota": 8}, "warn"),
        ("quota", {}, {}, {}, "ok"),
        ("virtual machine", {}, {}, {"virtual": "KVM"}, "warn"),
        ("virtual machine", {}, {}, {}, "ok"),
    ],
)
def test_the_rest(check, before, after, about, expected, machine):
    assert state(check, machine, before, after, about)[0] == expected


@pytest.mark.parametrize(
    "tick, source, expected", [(4e-8, "tsc", "ok"), (1.5e-2, "", "warn"), (1e-7, "hpet", "warn")]
)
def test_timer(tick, source, expected):
    assert conditions.timer(tick, source)[0] == expected


def test_a_snapshot_of_files(machine):
    machine("proc/stat", "cpu  10 0 5 100 3 0 0 7 0 0\ncpu0 1 2 3")
    machine("proc/loadavg", "0.25 0.10 0.05 1/100 7")
    machine("proc/vmstat", "nr_free_pages 1\npswpin 3\npswpout 4")
    machine("proc/self/cgroup", "0::/a")
    machine("sys/fs/cgroup/a/cpu.stat", "usage_usec 5\nnr_throttled 6")
    machine("sys/devices/system/cpu/cpu0/thermal_throttle/core_throttle_count", "8")
    machine("sys/devices/system/cpu/cpu1/thermal_throttle/package_throttle_count", "1")
    found = conditions.snapshot(machine.root)
    assert found["ticks"] == [10, 0, 5, 100, 3, 0, 0, 7, 0, 0]
    assert (found["load"], found["swapped"], found["heat"], found["held"]) == (0.25, 7, 9, 6)


def test_nothing_to_read_is_said_and_nothing_raised(machine):
    seen = conditions.snapshot(machine.root)
    found = conditions.checks(seen, conditions.snapshot(machine.root), {}, machine.root)
    assert {c["state"] for c in found} <= {"ok", "warn", "unknown"}
    assert sum(c["state"] == "unknown" for c in found) >= 5


def test_trust_names_what_warns():
    rows = [
        dict(zip(("check", "state", "words", "remedy"), row, strict=True))
        for row in (
            ("load", "warn", "load 3", "x"),
            ("heat", "unknown", "?", ""),
            ("swap", "ok", "fine", ""),
        )
    ]
    assert (
        conditions.trust(rows) == "1 of 3 checks warn (load); this system does not tell about heat."
    )
    assert conditions.trust(rows[2:]) == "No check warns."
    assert conditions.why(rows) == ["load 3"]
    assert "measure again" in conditions.why(rows[1:])[0]

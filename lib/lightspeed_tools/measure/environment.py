"""What this machine says it is: processor, caches, memory, limits, versions. Nothing is timed here.

Advertised is not the same as there: a virtual machine may belie its topology. Whatever cannot be
read is left out. On Linux all is read from /proc and /sys under `root`, so that a test can bring a
machine of its own.
"""

import contextlib
import importlib
import os
import platform
import re
from importlib import metadata
from pathlib import Path
from typing import Any

VECTORS = (
    "avx", "avx2", "fma", "avx512f", "avx512_vnni", "avx512_bf16", "avx512_fp16", "amx_tile",
    "amx_bf16", "amx_int8", "asimd", "sve", "sve2", "bf16", "i8mm",
)  # fmt: skip
PACKAGES = (
    "speed-of-light", "numpy", "scipy", "numba", "mpi4py", "mpich", "openmpi", "torch", "ml_dtypes",
    "psutil",
)  # fmt: skip
UNITS = {"K": 2**10, "M": 2**20, "G": 2**30}


def describe(root="/"):
    """Describe the machine as a dict in SI (bytes, Hz), without what the system hides."""
    root = Path(root)
    about: dict[str, Any] = {"system": platform.system(), "architecture": platform.machine()}
    if (root / "proc/cpuinfo").exists():
        about |= _linux(root)
    else:
        about |= {"cpu": platform.processor(), "cores": os.cpu_count(), **_by_psutil()}
    return {key: value for key, value in about.items() if value not in (None, "", [])}


def name_of(machine):
    """Return a short name of a machine, such as "AMD EPYC, 2 cores"."""
    model = re.sub(
        r"\((R|TM|tm)\)|\bCPU\b|\b\d+-Core\b|Processor|@.*",
        " ",
        machine.get("cpu", machine.get("architecture", "a machine")),
    )
    cores = machine.get("usable_cores", machine.get("cores", 1))
    return f"{' '.join(model.split())}, {cores} core{'s' if cores != 1 else ''}"


def versions():
    """Return the versions of the system, Python, numpy with its BLAS, and extras."""
    versions_by_name = {
        "system": _system(),
        "python": f"{platform.python_implementation()} {platform.python_version()}",
    }
    for package in PACKAGES:
        try:
            versions_by_name[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return versions_by_name | {"blas": _blas()}


def importable(package):
    """Return the module, or None if it cannot be imported for any reason."""
    try:
        return importlib.import_module(package)
    except Exception:  # a broken install raises more than ImportError
        return None


def usable_cores():
    """Return how many logical cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def read(root, path):
    """The text of a small file below `root`, or "" where it cannot be read."""
    try:
        return (Path(root) / path).read_text("utf-8", "replace").strip()
    except OSError:
        return ""


# ---------------------------------------------------------------- Linux


def _linux(root):
    cores = cpus(read(root, "proc/cpuinfo"))
    memory = meminfo(read(root, "proc/meminfo"))
    threads = _threads_per_core(root)
    clock = read(root, "sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq")
    return {
        **cores,
        "physical_cores": cores["cores"] // threads if threads else cores.get("physical_cores"),
        "threads_per_core": threads,
        "usable_cores": usable_cores(),
        "core_quota": core_quota(root),
        "numa_nodes": len(list((root / "sys/devices/system/node").glob("node[0-9]*"))) or None,
        "clock_limit": 1e3 * int(clock) if clock else None,
        "caches": caches(root),
        "memory": memory.get("MemTotal"),
        "memory_limit": memory_limit(root),
        "swap": memory.get("SwapTotal"),
        "clock_source": read(
            root, "sys/devices/system/clocksource/clocksource0/current_clocksource"
        ),
        "virtual": virtual(root),
    }


def cpus(cpuinfo):
    """Model, logical and physical cores, vector extensions from /proc/cpuinfo (x86 and Arm)."""
    blocks = [
        dict(re.findall(r"^([^\t:]+?)\s*:[ \t]*(.*)$", block, re.M))
        for block in cpuinfo.strip().split("\n\n")
    ]
    blocks = [block for block in blocks if "processor" in block] or [{}]
    first = blocks[0]
    model = (
        first.get("model name")
        or first.get("Hardware")
        or " ".join(first[k] for k in ("CPU implementer", "CPU part") if k in first)
    )
    flags = (first.get("flags") or first.get("Features") or "").split()
    places = {
        (b["physical id"], b["core id"]) for b in blocks if "core id" in b and "physical id" in b
    }
    return {
        "cpu": model,
        "cores": len(blocks),
        "physical_cores": len(places) or None,
        "vectors": [flag for flag in VECTORS if flag in flags],
    }


def meminfo(text):
    """/proc/meminfo in bytes."""
    return {name: 1024 * int(kib) for name, kib in re.findall(r"^(\w+):\s+(\d+) kB$", text, re.M)}


def caches(root):
    """Core 0's advertised caches: [{"level", "kind", "size" (bytes), "shared_by" (cores)}]."""
    levels = []
    for index in sorted((Path(root) / "sys/devices/system/cpu/cpu0/cache").glob("index*")):
        size = re.fullmatch(r"(\d+)([KMG])", read(index, "size"))
        if size and read(index, "level").isdigit():
            kind = read(index, "type").lower()
            shared = len(listed(read(index, "shared_cpu_list"))) or 1
            levels.append(
                {
                    "level": int(read(index, "level")),
                    "kind": kind,
                    "size": int(size[1]) * UNITS[size[2]],
                    "shared_by": shared,
                }
            )
    return levels


def listed(text):
    """The numbers of a kernel list such as "0-3,8"."""
    ranges = [part.split("-") for part in text.split(",") if part]
    return [n for ends in ranges for n in range(int(ends[0]), int(ends[-1]) + 1)]


def _threads_per_core(root):
    folder = Path(root) / "sys/devices/system/cpu/cpu0/topology"
    return (
        len(listed(read(folder, "thread_siblings_list") or read(folder, "core_cpus_list"))) or None
    )


def cgroup_files(root, name):
    """The texts of a cgroup's file, from this process' own group to the root."""
    base = Path(root) / "sys/fs/cgroup"
    own = [line[3:] for line in read(root, "proc/self/cgroup").splitlines() if line[:3] == "0::"]
    group = base / own[0].lstrip("/") if own else base
    steps = [step for step in (group, *group.parents) if step.is_relative_to(base)]
    return [text for step in steps if (text := read(step, name))]


def core_quota(root):
    """Return the container's CPU quota in cores, or None without a quota."""
    pairs = [text.split() for text in cgroup_files(root, "cpu.max")]
    return min((int(q) / int(period) for q, period in pairs if q.isdigit()), default=None)


def memory_limit(root):
    """The container's limit on memory in bytes, or None."""
    texts = cgroup_files(root, "memory.max")
    return min((int(text) for text in texts if text.isdigit()), default=None)


def virtual(root):
    """Return the kind of virtual machine, "" if there is no sign of one."""
    product = " ".join(
        read(root, f"sys/class/dmi/id/{name}") for name in ("sys_vendor", "product_name")
    )
    kernel = read(root, "proc/version")
    for word, kind in (("microsoft", "WSL"), ("gvisor", "gVisor")):
        if word in kernel.lower():
            return kind
    for word in (
        "KVM",
        "QEMU",
        "VMware",
        "VirtualBox",
        "Xen",
        "Amazon EC2",
        "Google Compute Engine",
        "Virtual Machine",
        "Parallels",
        "Bochs",
    ):
        if word.lower() in product.lower():
            return word
    if kind := read(root, "sys/hypervisor/type"):
        return kind
    return (
        "a hypervisor"
        if re.search(r"^flags\s*:.*\bhypervisor\b", read(root, "proc/cpuinfo"), re.M)
        else ""
    )


# ---------------------------------------------------------------- other systems


def _by_psutil():
    psutil = importable("psutil")
    if not psutil:
        return {"usable_cores": usable_cores()}
    return {
        "usable_cores": usable_cores(),
        "physical_cores": psutil.cpu_count(logical=False),
        "memory": psutil.virtual_memory().total,
        "swap": psutil.swap_memory().total,
    }


def _system():
    # The number alone: the rest of a kernel's name may be that of a company or a person.
    release = re.sub(r"[^0-9.].*", "", platform.release())
    kernel = f"{platform.system()} {release}".strip()
    with contextlib.suppress(OSError, KeyError):
        return f"{platform.freedesktop_os_release()['PRETTY_NAME']}, {kernel}"
    return kernel


def _blas():
    numpy = importable("numpy")
    try:
        blas = numpy.show_config(mode="dicts")["Build Dependencies"]["blas"]
        return f"{blas['name']} {blas['version']}"
    except (AttributeError, KeyError, TypeError):
        return "unknown"

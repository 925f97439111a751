"""Chapter 1: the ladder of latencies, from a register to the far side of an ocean, in lanes."""

from lightspeed.catalog import find, link, memory
from lightspeed_show import Axis, Bars, Chart, human_axis, human_time, si


def lanes():
    """What waits for the same kind of thing: lane -> name -> seconds, one way."""
    hosts = {"InfiniBand": link("infiniband_ndr"), "Ethernet (RoCE)": link("ethernet_400g")}
    messages = {"NVLink": link("nvlink4").end_to_end}
    for name, wire in hosts.items():
        messages[name] = wire.end_to_end
        messages[f"{name}, two leaf switches"] = wire.end_to_end_across
    return {
        "a load, on a CPU": named("cpu_register", "cpu_l1", "cpu_l2", "cpu_l3", "cpu_dram"),
        "a load, on a GPU": named("gpu_shared", "gpu_l1", "gpu_l2", "gpu_hbm"),
        "a message": messages,
        "a drive": {
            "NVMe SSD, a random read": memory("nvme_ssd").latency,
            "Hard disk, a seek": memory("hard_disk").latency,
        },
        "light": named("path_hall", "path_country", "path_atlantic", "path_pacific"),
    }


def named(*keys):
    return {memory(key).name: memory(key).latency for key in keys}


def ladder(hidden=""):
    """The chart of all lanes; the rung of the memory `hidden` is left blank."""
    every, blank = lanes(), memory(hidden).name if hidden else ""
    colors = ("blue", "green", "orange", "amber", "purple")
    bars = []
    for (label, lane), color in zip(every.items(), colors, strict=True):
        rungs = {name: latency for name, latency in lane.items() if name != blank}
        texts = [si(latency, "s", 2) for latency in rungs.values()]
        bars.append(Bars(list(rungs), list(rungs.values()), None, label, texts, color))
    scale = find("human_scale")
    scale_words = f"if {si(scale.tick, 's')} lasted {human_time(scale.feels_like)}"
    return Chart(
        Axis("latency", "s", "log", domain=(1e-10, 10)),
        Axis(scale="category", categories=[name for lane in every.values() for name in lane]),
        bars,
        x_top=human_axis(scale.stretch, scale_words),
        height=600,
    )

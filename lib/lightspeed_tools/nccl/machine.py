"""What the GPUs are joined by: told by the names of devices and by NCCL's messages, or described.

Line rates come from the catalog. A name tells what is inside a node; it never tells the network,
which is known only from NCCL's messages or from the reader: `--hardware`, `--nic 8x400G`,
`--domain 72`, or a TOML file of the same.
"""

import re
import tomllib
from dataclasses import dataclass, replace

from lightspeed.catalog import number
from lightspeed_models.nccl_fit import FABRICS, Fabric
from lightspeed_tools.nccl.log import ReportError

# The port of an adapter as one writes it -> its line in the catalog.
PORTS = {
    "100G": "ethernet_100g", "200G": "ethernet_200g", "400G": "ethernet_400g",
    "800G": "ethernet_800g", "10G": "ethernet_10g", "HDR": "infiniband_hdr",
    "NDR": "infiniband_ndr", "XDR": "infiniband_xdr",
}  # fmt: skip
PCIE3, PCIE4, PCIE5 = (f"pcie{generation}_x16.bandwidth" for generation in (3, 4, 5))


@dataclass(frozen=True)
class Kind:
    """What a device name implies: the link inside, how many GPUs it joins, and the fabric whose
    model was fitted to one node of them, if any.
    """

    pattern: str
    name: str
    inside: str
    domain: int
    fabric: str = ""


# The first that matches. A card's PCIe generation is that of its data sheet.
KINDS = (
    Kind(r"\bH(?:100|200) NVL\b", "", "", 0),  # bridges between pairs: no one line
    Kind(r"\bA800-SXM", "A800 SXM, NVLink 3 of 200 GB/s", "nvlink3_a800.bandwidth", 8),
    Kind(r"\bA800\b", "", "", 0),  # bridges between pairs, or none
    Kind(r"\bH800.*PCIe", "PCIe 5", PCIE5, 8),
    Kind(r"\bH800\b", "H800 SXM, NVLink 4 of 200 GB/s", "nvlink4_h800.bandwidth", 8),
    Kind(r"\bH20(?:-3e)?\b", "H20 SXM, NVLink 4", "nvlink4.bandwidth", 8),
    Kind(r"\bG[BH][23]00\b.*\b(?:NVL4)\b", "", "", 0),
    Kind(r"\bGB[23]00\b", "NVLink 5 of a rack of 72", "nvlink5.bandwidth", 72),
    Kind(r"\bGH200\b", "GH200, NVLink 4", "nvlink4.bandwidth", 4),
    Kind(r"\bB[23]00\b", "B200 or B300, NVLink 5", "nvlink5.bandwidth", 8, "b200"),
    Kind(r"\bH100.*PCIe", "PCIe 5", PCIE5, 8),
    Kind(r"\bH200\b", "H200 SXM, NVLink 4", "nvlink4.bandwidth", 8, "h200"),
    Kind(r"\bH100 (?:80GB HBM3|SXM)", "H100 SXM, NVLink 4", "nvlink4.bandwidth", 8, "h100"),
    Kind(r"\bA100.*PCI", "", "", 0),  # bridges between pairs, or none
    Kind(r"\bA100-SXM", "A100 SXM, NVLink 3", "nvlink3.bandwidth", 8, "a100"),
    Kind(r"\bV100-SXM", "V100 SXM, NVLink 2", "nvlink2.bandwidth", 8),
    Kind(r"\bMI300X\b", "MI300X, xGMI", "xgmi_mi300x.bandwidth", 8),
    Kind(r"\bMI325X\b", "MI325X, xGMI", "xgmi_mi300x.bandwidth", 8),
    Kind(r"\bMI35[05]X\b", "MI350X or MI355X, xGMI", "xgmi_mi355x.bandwidth", 8),
    Kind(r"\bRTX PRO 6000\b|\bRTX 6000D\b|\bRTX 50\d\d\b", "PCIe 5", PCIE5, 8),
    Kind(r"\bA40\b|\bA10G?\b|\bL40S?\b|\bL4\b|\bRTX 40\d\d\b|\bRTX 30\d\d\b|\bRTX A\d000\b",
         "PCIe 4", PCIE4, 8),
    Kind(r"\bT4\b|\bV100-PCI|\bP100-PCI|\bP40\b|\b[KM][468]0m?\b|\bGTX (?:1\d|9)\d\d\b"
         r"|\bRTX 20\d\d\b", "PCIe 3", PCIE3, 8),
)  # fmt: skip
# EFA is of AWS alone, and one of its instances has eight of a kind of GPU: with so many adapters.
EFA_NODES = {"H100": ("p5", 32), "A100": ("p4d", 4), "B200": ("p6", 8)}


@dataclass(frozen=True)
class Machine:
    """What joins the GPUs of a run: line rates in byte/s, one direction. `fabric` is a key of
    FABRICS if a model was fitted to it; `gpus` the GPUs of a full node. None: not known.
    """

    name: str
    ground: str
    how: str  # "stated", "inferred" or "given"
    inside: float | None = None
    domain: int = 1
    network: float | None = None
    gpus: int | None = None
    fabric: str = ""
    hosts_joined: bool = False  # whether the scale-up link may join hosts
    port: float | None = None  # of one adapter

    def joins(self, n, nodes):
        """Whether the link inside joins all ranks of a run."""
        return nodes == 1 or (self.hosts_joined and n <= self.domain)


def machine_of(report, facts, option=None):
    """The `Machine` of a run, from what is given (see `described`) and what the file says."""
    machine = _named(report, facts)
    if option is None:
        return machine
    if option.fabric and (FABRICS[option.fabric].network or facts.nodes.value == 1):
        return option
    if not machine or option.inside:
        return replace(option, gpus=facts.per_node, fabric="")
    return Machine(
        name=", ".join(filter(None, [machine.name if not option.inside else "", option.name])),
        ground=option.ground,
        how="given",
        inside=option.inside or machine.inside,
        domain=option.domain if option.domain > 1 else machine.domain,
        network=option.network or machine.network,
        gpus=facts.per_node,
        fabric=machine.fabric if facts.nodes.value == 1 and not option.inside else "",
        hosts_joined=option.hosts_joined or (option.domain <= 1 and machine.hosts_joined),
        port=option.port,
    )


def _named(report, facts):
    kinds = {_kind(name) for name in report.names}
    kind = kinds.pop() if len(kinds) == 1 else None
    if kind is None or not kind.inside:
        return None
    ground = f"the devices are called {report.names[0]}"
    alone = Machine(
        kind.name, ground, "inferred", number(kind.inside), kind.domain,
        fabric=kind.fabric if facts.nodes.value == 1 else "", hosts_joined=kind.domain > 8,
    )  # fmt: skip
    chip = re.search(r"\b(?:H100|A100|B200)\b", report.names[0])
    fabric, nics = EFA_NODES[chip[0]] if chip and kind.fabric else ("", None)
    matches = report.efa_nics == nics == facts.adapters.value
    by_hint = "EFA" in report.hints and "sockets" not in report.hints
    whole = by_hint and not facts.adapters.known and facts.per_node == 8
    if facts.nodes.value in (None, 1) or not fabric or not (matches or whole):
        return alone
    ground += (
        f", and NCCL found {nics} adapters of EFA"
        if matches
        else f", and NCCL runs over EFA: with eight of them a node, that is {fabric}"
    )
    return _of_fabric(fabric, ground, "inferred")


def _kind(name):
    return next((kind for kind in KINDS if re.search(kind.pattern, name)), None)


def _of_fabric(key, ground, how):
    fabric: Fabric = FABRICS[key]
    return Machine(
        fabric.name, ground, how, fabric.rate(1),
        domain=8, network=fabric.rate(2) if fabric.network else None, gpus=8, fabric=key,
    )  # fmt: skip


# ---------------------------------------------------------------- as described


def described(hardware=None, nic=None, domain=None, file=None):
    """Return the `Machine` that options describe; None without options. Raises ReportError, naming
    the option.

    >>> described(nic="8x400G").network
    400000000000.0
    """
    facts = {}
    if file:
        with open(file, "rb") as opened:
            try:
                facts = tomllib.load(opened)
            except tomllib.TOMLDecodeError as error:
                raise ReportError(0, f"{file} is not TOML: {error}") from None
        keys = ("name", "nic", "domain", "inside", "hardware")
        strange = sorted(set(facts) - set(keys))
        if strange:
            raise ReportError(
                0, f"{file}: there is no key {strange[0]!r}; there are {', '.join(keys)}"
            )
    hardware, nic = hardware or facts.get("hardware"), nic or facts.get("nic")
    domain = domain or facts.get("domain")
    if domain is not None and (not isinstance(domain, int) or domain < 1):
        raise ReportError(0, f"domain {domain!r}: expected the GPUs that NVLink joins, such as 72")
    rate, port = adapters(nic) if nic else (None, None)
    if hardware:
        return _of_hardware(hardware, nic, rate, port, domain)
    if not (nic or domain or facts):
        return None
    inside = facts.get("inside")
    names = [facts.get("name", ""), f"{nic} a node" if nic else ""]
    names += [f"scale-up links join {domain} GPUs"] if domain else []
    return Machine(
        name=", ".join(filter(None, map(str, names))),
        ground=" and ".join(
            filter(None, [str(file or ""), "--nic" * bool(nic), "--domain" * bool(domain)])
        ),
        how="given",
        inside=_bytes(inside) if inside is not None else None,
        domain=domain or 1,
        network=rate,
        hosts_joined=bool(domain),
        port=port,
    )


def _of_hardware(hardware, nic, rate, port, domain):
    """The `Machine` of a fabric that was measured, or of any chip whose links are known."""
    if hardware.lower() in FABRICS:
        machine = _of_fabric(hardware.lower(), "--hardware", "given")
    else:
        plain = re.sub(r"[_\s-]+", " ", hardware).upper().strip()
        spellings = [plain, f"{plain} SXM", plain.replace(" ", "-"), f"{plain}-SXM"]
        kinds = (_kind(spelling) for spelling in spellings)
        kind = next((kind for kind in kinds if kind and kind.inside), None)
        if kind is None:
            raise ReportError(
                0,
                f"--hardware {hardware!r}: expected a chip whose links are known, such as H20,"
                f" MI300X or GB200, or one of {', '.join(FABRICS)}; others by --machine TOML",
            )
        machine = Machine(
            kind.name, "--hardware", "given", number(kind.inside), kind.domain,
            fabric=kind.fabric, hosts_joined=kind.domain > 8,
        )  # fmt: skip
    if domain:
        machine = replace(machine, domain=domain, hosts_joined=True)
    if not rate:
        return machine
    name = f"{machine.name.partition(':')[0]}, {nic} a node"
    return replace(
        machine, name=name, ground="--hardware and --nic", network=rate, port=port, fabric=""
    )


def adapters(nic):
    """Parse (byte/s of a node, of one port) from 8x400G, 8x400Gbps or 4xHDR."""
    match = re.fullmatch(r"(\d+)\s*[x×]\s*(\S.*)", str(nic).strip())
    port = match[2].upper() if match else ""
    port = re.sub(r"(?<=\d)\s*G(?:B|BIT|BITS)?(?:PS|/S)?$", "G", port)
    if "GB/s" in str(nic) or not match or int(match[1]) < 1 or (
        port not in PORTS and not re.fullmatch(r"\d+G", port)
    ):  # fmt: skip
        raise ReportError(
            0,
            f"--nic {nic!r}: expected adapters of a node and the rate of each in Gbit/s, such as"
            f" 8x400G or 8x400Gbps, or its name, such as 8xNDR (a GB/s is eight Gbit/s)",
        )
    rate_key = PORTS.get(port)
    rate = number(f"{rate_key}.bandwidth") if rate_key else int(port[:-1]) * 1e9 / 8
    if not rate:
        raise ReportError(0, f"--nic {nic!r}: expected adapters of a node with a rate above 0")
    return int(match[1]) * rate, rate


def _bytes(inside):
    """byte/s of the link inside, from a key of the catalog or "450 GB/s"."""
    text = str(inside)
    if match := re.fullmatch(r"(\d+(?:\.\d+)?)\s*GB/s", text):
        return float(match[1]) * 1e9
    try:
        return float(number(text if "." in text else f"{text}.bandwidth"))
    except (KeyError, ValueError):
        raise ReportError(
            0, f"inside {inside!r}: expected a rate such as '450 GB/s', or a link of the catalog"
            " such as nvlink4"
        ) from None  # fmt: skip

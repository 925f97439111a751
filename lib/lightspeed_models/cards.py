"""A GPU as people name it, or by six numbers of its own."""

import functools
import re

from lightspeed.catalog import Entry, Number, entries, entry_of, find, parse
from lightspeed.errors import BadArgument, meant

# Names of the six numbers -> those of the catalog, and an example of each.
SIX = {
    "memory": ("hbm_capacity", "48GB"), "bandwidth": ("hbm_bandwidth", "864GB/s"),
    "bf16": ("bf16", "181TFLOPS"), "fp8": ("fp8", "362TFLOPS"), "fp4": ("fp4", "0"),
    "link": ("link_bandwidth", "32GB/s"),
}  # fmt: skip
EXAMPLE = ",".join(f"{name}={value}" for name, (_, value) in SIX.items())
NOISE = {"nvidia", "amd", "apple", "intel", "geforce", "tesla", "instinct", "gpu", "hgx", "hbm3",
         "hbm3e", "hbm2e", "nvl72", "tensor", "core", "superchip", "ac", "vf", "hf", "oam", "sxm",
         "generation", "graphics", "server", "workstation", "edition", "blackwell"}  # fmt: skip
OTHERS = {"spark": "dgx_spark", "gb10": "dgx_spark", "leonardo": "a100_64gb", "v100": "v100_sxm"}
# Drivers' names that say another memory than the GPU's, or a board's number.
ALIASES = ((r"\bgh200 (480|120) ?gb", "gh200"), (r"\bgh200 144 ?g\w*", "gh200 144gb"),
           (r"\ba100 pg509 \d+", "a100 40gb"))  # fmt: skip
# Variants with clocks, cores or memory of their own.
UNLIKE = re.compile(r"\b(laptop|max q|4090 d|h20 3e|mig)\b")
NEAR = 0.075  # memory that a name tells may differ by this: 80 GB of 85.5, 141 of 151


@functools.cache
def cards() -> dict[str, Entry]:
    """Chips of the catalog with memory, its bandwidth and a rate of products, by key."""
    chips = {**entries("accelerators"), **entries("tested")}
    return {
        key: entry for key, entry in chips.items()
        if {"hbm_capacity", "hbm_bandwidth"} <= entry.numbers.keys()
        and entry.numbers.keys() & {"bf16", "fp16"}
    }  # fmt: skip


@functools.cache
def card(words: str) -> tuple[Entry, int | None]:
    """(the chip that the words name, how many of them, if they say so). Six numbers of a card of
    one's own are written as `EXAMPLE`; what is left out it does not have, and a card without `link`
    stands alone.

    Raises BadArgument for a chip that the catalog does not have, and for a memory that is not its
    own.

    >>> card("H100 80GB")[0].key, card("8xH100")[1]
    ('h100_sxm', 8)
    >>> card("memory=48GB,bandwidth=864GB/s,bf16=181TFLOPS")[0].hbm_capacity
    48 GB
    """
    if "=" in words:
        return _own(words), None
    text = re.sub(r"[\s_/-]+", " ", words.lower()).strip()
    if variant := UNLIKE.search(text):
        expected = (
            f"a card of the catalog (a {variant[0]} variant has clocks and memory of its own)"
        )
        raise BadArgument("card", "words", words, expected, f"Six numbers of its own: {EXAMPLE}")
    for pattern, plain in ALIASES:
        text = re.sub(pattern, plain, text)
    many = re.match(r"(\d+) ?[x*×] ?(?=[a-z])|(\d+) (?=[a-z])", text)
    text = text[many.end() :] if many else text
    memory = re.search(r"\b(\d+) ?g(i?b)?\b", text)
    plain = text.replace(memory[0], " ") if memory else text
    parts = [re.sub(r"^sxm\d$", "sxm", part) for part in re.findall(r"[a-z0-9]+", plain)]
    name = "_".join(part for part in parts if part not in NOISE)
    size = f"_{memory[1]}gb" if memory else ""
    tries = (f"{name}_sxm{size}", name + size, name, f"{name}_sxm", f"{name}_80gb",
             f"rtx_{name}", OTHERS.get(name, ""))  # fmt: skip
    key = next((one for one in tries if one in cards()), None)
    if key is None:
        expected = f"a GPU of the catalog ({meant(name, list(cards()))})"
        raise BadArgument("card", "words", words, expected, f"Or six numbers of its own: {EXAMPLE}")
    entry = cards()[key]
    total = float(entry.hbm_capacity)
    if memory and min(abs(total / (int(memory[1]) * unit) - 1) for unit in (1e9, 2**30)) > NEAR:
        hint = f"Or six numbers of its own: {EXAMPLE}"
        raise BadArgument("card", "words", words, f"{total / 2**30:.0f} GiB for {entry.name}", hint)
    return entry, int(many[1] or many[2]) if many else None


def chip_of(name: str) -> Entry | None:
    """The catalog's chip of a device, by the name that its driver has for it; None where there is
    none.

    >>> chip_of("NVIDIA A800-SXM4-80GB").key, chip_of("NVIDIA B300 SXM6 AC").key
    ('a800', 'b300')
    >>> chip_of("NVIDIA GeForce RTX 4090 Laptop GPU") is None
    True
    """
    try:
        return card(name)[0]
    except BadArgument:
        return None


def _own(words: str) -> Entry:
    """The `Entry` of a card of one's own; its `unsaid` are the numbers that the words leave out."""
    numbers, unsaid = {}, set(SIX)
    for part in re.split(r"[,\s]+", words.strip()):
        name, _, value = part.partition("=")
        if name not in SIX:
            raise BadArgument("card", "words", part, f"one of {', '.join(SIX)}", f"As {EXAMPLE}")
        unsaid.discard(name)
        if re.fullmatch(r"0|none|-", value):
            continue
        spaced = re.sub(r"^([\d.]+)\s*(?=[A-Za-z])", r"\1 ", value)
        try:
            amount, unit = parse(spaced)
        except ValueError as error:
            raise BadArgument("card", "words", part, str(error), f"As {EXAMPLE}") from None
        right = find("h100_sxm").numbers[SIX[name][0] if name != "fp4" else "fp8"].unit
        if unit != right or amount < 0:
            raise BadArgument("card", "words", part, f"{right} above 0", f"As {EXAMPLE}")
        if amount == 0:  # "0GB/s" is none, as "0" is
            continue
        key = f"own.{name}"
        numbers[SIX[name][0]] = Number(amount, unit, key=key, printed=value, note="as given")
    if lacks := [name for name in ("memory", "bandwidth", "bf16") if SIX[name][0] not in numbers]:
        raise BadArgument("card", "words", words, f"{', '.join(lacks)} too", f"As {EXAMPLE}")
    about = {"kind": "gpu", "vendor": "", "unsaid": tuple(sorted(unsaid))}
    return entry_of("own", "a card of your own", about, numbers)

"""The measured rows that lie under the curves of explorers, thinned from the shipped samples.

They are written beside the explorers, as JSON: a page in a browser reads them, without numpy.
"""

import json
from pathlib import Path

import numpy as np

from lightspeed.catalog import entries
from lightspeed_models.evidence.chips import FORMATS, MOVED
from lightspeed_models.evidence.pairings.serving import CHIPS
from lightspeed_models.evidence.sets import dataset, records
from lightspeed_models.evidence.word_column import evenly

FILE = Path(__file__).parents[3] / "lightspeed_course" / "explorers" / "published.json"
PRODUCTS = 100  # of a chip and a format
DIGITS = 4
# How the explorer of chapter 2 sets weights, activations and arithmetic for a format of the set.
AS_SET = {
    "bfloat16": "bf16 bf16 bf16",
    "fp8": "fp8 fp8 fp8",
    "fp8_static": "fp8 fp8 fp8",
    "fp8_block": "fp8 fp8 fp8",
    "int8_wo": "int8 bf16 bf16",
    "int4_wo": "int4 bf16 bf16",
    "sq": "int8 int8 int8",
}
# The link between the GPUs of a node, as the explorer of chapter 7 names it.
LINKS = {
    "a100_80gb": "nvlink3",
    "h100_sxm": "nvlink4",
    "h200_sxm": "nvlink4",
    "b200": "nvlink5",
}
# What the set of served models calls those of the catalog.
MODELS = {
    "Llama 3.1 8B Instruct": "llama3_8b",
    "Llama 3.1 70B Instruct": "llama3_70b",
    "Llama 3.3 70B Instruct": "llama3_70b",
    "Llama 3.1 405B Instruct": "llama3_405b",
    "Qwen 3 32B": "qwen3_32b",
}


def products():
    """chip -> setting -> [m, k, n, seconds, library and format], evenly; "of": how many."""
    rows, by_chip = dataset("gemm"), {}
    m, k, n = (rows[name] for name in "mkn")
    intensity = 1 / (1 / m + 1 / k + 1 / n)  # up to a constant of the format
    setting = rows["format"].lookup(lambda f: list(FORMATS).index(f), np.intp)
    for chip in sorted(entries("accelerators").keys() & set(rows["chip"].present())):
        for kind in dict.fromkeys(AS_SET.values()):
            of = [
                list(FORMATS).index(f) for f, format_codes in AS_SET.items() if format_codes == kind
            ]
            own = np.flatnonzero((rows["chip"] == chip) & np.isin(setting, of))
            if not len(own):
                continue
            own = own[np.argsort(intensity[own], kind="stable")]
            by_chip.setdefault(chip, {})[kind] = {
                "of": len(own),
                "rows": [
                    [*(int(x[i]) for x in (m, k, n)), rounded(rows["latency"][i]),
                     f"{rows['library'][i]}, {rows['format'][i]}"]
                    for i in evenly(own, PRODUCTS)
                ],
            }  # fmt: skip
    return by_chip


def collectives():
    """link -> operation -> ranks -> chip -> {library, rows: [bytes, seconds]}, two bytes each."""
    rows, by_link = dataset("nccl"), {}
    rows = rows.where(rows["format"] == "half")
    for chip in LINKS:
        own = rows.where(rows["chip"] == chip)
        newest = max(own["library"].present(), key=lambda v: tuple(map(int, v.split("."))))
        own = own.where(own["library"] == newest)
        for operation in own["operation"].present():
            for ranks in np.unique(own["ranks"]).tolist():
                some = own.where((own["operation"] == operation) & (own["ranks"] == ranks))
                points = []
                for elements in np.unique(some["elements"]).tolist():
                    # Of a size that was measured more than once, the row in the middle.
                    times = np.sort(some["latency"][some["elements"] == elements])
                    points.append([int(elements) * MOVED["half"], rounded(times[len(times) // 2])])
                by_ranks = by_link.setdefault(LINKS[chip], {}).setdefault(operation, {})
                by_ranks.setdefault(int(ranks), {})[chip] = {"library": newest, "rows": points}
    return by_link


def serving():
    """chip -> model -> devices -> [seconds a token, tokens a second, batch, tokens of an answer,
    task]: bf16, split over all devices as tensor parallelism.
    """
    rows, by_chip = dataset("serving_energy"), {}
    whole = (rows["format"] == "bfloat16") & (rows["tensor"] == rows["devices"])
    for i in np.flatnonzero(whole & rows["model"].isin(MODELS)):
        chip, model = CHIPS[rows["chip"][i]], MODELS[rows["model"][i]]
        numbers = ("latency_median", "rate", "batch", "output_tokens")
        by_chip.setdefault(chip, {}).setdefault(model, {}).setdefault(
            int(rows["devices"][i]), []
        ).append([*(rounded(rows[name][i]) for name in numbers), rows["task"][i]])
    return by_chip


def rounded(value):
    return float(f"{value:.{DIGITS}g}")


def thinned():
    """All of it, with the sources: the text of the file."""
    tables = {"gemm": products(), "nccl": collectives(), "serving_energy": serving()}
    sources = {
        name: {k: getattr(records()[name], k) for k in ("title", "attribution", "repository")}
        for name in tables
    }
    text = json.dumps({"sources": sources} | tables, ensure_ascii=False, sort_keys=True)
    return text.replace("]], ", "]],\n") + "\n"


if __name__ == "__main__":
    FILE.write_text(thinned(), "utf-8")

"""Formulas that pages print, in LaTeX, against the laws that they stand for: three points each."""

import math
import random
import re
from pathlib import Path

import pytest

from lightspeed import collectives, experts, kernels, networks, pipeline, reliability, scaling
from lightspeed.training import training_flops, training_time

CHAPTERS = Path(__file__).parents[2] / "chapters"
NAMES = {r"\lambda": "lam", r"\mu": "mu", r"\alpha": "alpha", r"\delta": "delta"}
LIMITED = {("02_roofline_2_kernels", "p"): 3, ("04_littles_law_2_attention", "E"): 16}
FUNCTIONS = {"min": min, "max": max, "sqrt": math.sqrt, "log2": math.log2}


def as_python(tex, symbols):
    """A formula as Python: fractions, roots, products that nothing stands between."""
    text = re.sub(r"\\[, ]|\\(?:cdot|times)", " ", tex).replace(r"\log_2", " log2 ")
    while r"\frac" in text or r"\sqrt" in text:
        text = re.sub(r"\\frac\{([^{}]*)\}\{([^{}]*)\}", r"((\1)/(\2))", text)
        text = re.sub(r"\\sqrt\{([^{}]*)\}", r"sqrt(\1)", text)
    for greek, name in NAMES.items():
        text = text.replace(greek, f" {name} ")
    text = re.sub(r"\^\{([^{}]*)\}", r"**(\1)", text).replace("^", "**").replace("\\", "")
    names = sorted([*symbols, *FUNCTIONS], key=len, reverse=True)
    tokens = re.findall("|".join([*map(re.escape, names), r"\d+", r"\*\*", r"[-+*/(),]"]), text)
    assert "".join(tokens) == re.sub(r"\s", "", text), f"{tex}: not all of it is read: {tokens}"
    parts = []
    for token in tokens:
        ends = parts and re.fullmatch(r"\w+|\)", parts[-1]) and parts[-1] not in FUNCTIONS
        if ends and re.fullmatch(r"\w+|\(", token):
            parts.append("*")
        parts.append(f"{token} " if token == "log2" else token)
    return re.sub(r"log2 (\w+)", r"log2(\1)", "".join(parts))


# page: formula as printed, its symbols with whole numbers or shares, the law
FORMULAS = [
    ("01_numbers_to_know", r"\frac{6\,P\,D}{N\,X\,U}", "P D N X / U",
     lambda P, D, N, X, U: training_time(training_flops(P, D), N, X, U)),
    ("01_numbers_to_know", "6PD / (NXU)", "P D N X / U",
     lambda P, D, N, X, U: training_time(training_flops(P, D), N, X, U)),
    ("02_roofline_2_kernels", r"c\,h N^2 e", "c h N e",
     lambda c, h, N, e: c * kernels.score_bytes(h, N, e)),
    ("02_roofline_2_kernels", r"2 h N d\,(1 + N/b)\,e", "h N d b e /",
     lambda h, N, d, b, e: kernels.query_block_bytes(h, N * b, d, b, e)),
    ("02_roofline_2_kernels", r"(p + 1)\,R C\,e", "R C e p",
     lambda R, C, e, p: kernels.softmax_bytes(R, C, p, e)),
    ("02_roofline_2_kernels", r"\min(s\,e, q)", "s e",
     lambda s, e: kernels.strided_bytes(1, s, e)),
    ("03_amdahl_gustafson", "1 / (s + (1 - s)/n)", "n / s",
     lambda n, s: scaling.amdahl_speedup(n, serial=s)),
    ("03_amdahl_gustafson", "n - s_n (n - 1)", "n / s_n",
     lambda n, s_n: scaling.gustafson_speedup(n, serial=s_n)),
    ("04_littles_law_2_attention", r"E\,(1 - (1 - a/E)^B)", "E B a",
     lambda E, B, a: experts.experts_read(B, E, a)),
    ("06_parallelism_3_waits", "(p - 1)/(m + p - 1)", "p m",
     lambda p, m: pipeline.bubble_over_total(p, m)),
    ("06_parallelism_3_waits", "1 - (1 - q)^n", "n / q", lambda n, q: networks.any_hit(q, n)),
    ("06_parallelism_3_waits", r"\sqrt{2\,\delta\,M}", "delta M",
     lambda delta, M: reliability.young_interval(delta, M)),
    ("07_nccl_bandwidth", r"2\,(n-1)\,(\alpha + S/(n\,W))", "n alpha S W",
     lambda n, alpha, S, W: collectives.ring_time(S, n, W, alpha)),
    ("07_nccl_bandwidth", r"2 \log_2 n\,(\alpha + S/W)", "n alpha S W",
     lambda n, alpha, S, W: collectives.tree_time(S, n, W, alpha)),
    ("08_network", r"1/(1 + \frac{p}{1-p} W)", "W / p", lambda W, p: networks.go_back_n(p, W)),
    ("08_network", r"\frac{1}{1 + \frac{p}{1-p}\,W}", "W / p",
     lambda W, p: networks.go_back_n(p, W)),
    ("08_network", "1 - (1-p)^n", "n / p", lambda n, p: networks.any_hit(p, n)),
]  # fmt: skip


@pytest.mark.parametrize(("page", "tex", "symbols", "law"), FORMULAS)
def test_a_printed_formula_is_its_law(page, tex, symbols, law):
    text = (CHAPTERS / f"{page}.py").read_text("utf-8")
    assert tex in text, f"{page} prints no {tex!r}: is what stands there now still the law?"
    counts, _, shares = (part.split() for part in symbols.partition("/"))
    numbers = random.Random(tex)
    code = as_python(tex, [*counts, *shares, "q"])
    for _ in range(3):
        values = {name: 2 ** numbers.randint(1, 3) for name in counts}
        values |= {name: numbers.uniform(0.1, 0.4) for name in shares}
        values |= {name: LIMITED[page, name] for name in values if (page, name) in LIMITED}
        whole = {"N": values["N"] * values["b"]} if "b" in values else {}  # whole blocks
        right = float(law(**values))
        shown = eval(code, FUNCTIONS | {"q": 32} | values | whole)  # q: a sector, where it is none
        assert math.isclose(shown, right, rel_tol=1e-9), (tex, code, values, shown, right)

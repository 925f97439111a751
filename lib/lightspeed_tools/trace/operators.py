"""The work of an operator by its arguments' shapes: FLOPs, and the bytes that it moves at least.
Pure laws; `work` sets them against a chip.

Names are those of PyTorch, vLLM, SGLang, AITER and Inductor. What no shape tells (how long the
requests of paged attention are, which rows an index picks) has no law here.
"""

from __future__ import annotations

import ast
import functools
import marshal
import math
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from lightspeed.roofline import matmul_bytes, matmul_flops

FORMATS = {"bfloat16": "bf16", "half": "fp16", "float": "tf32", "double": "fp64"}
FORMATS |= {"float8_e4m3fn": "fp8", "float8_e4m3fnuz": "fp8", "float8_e5m2": "fp8"}
WIDTHS = {"bf16": 2, "fp16": 2, "tf32": 4, "fp64": 8, "fp8": 1}
BYTES = {"bfloat16": 2, "half": 2, "float": 4, "double": 8, "long int": 8, "int": 4, "bool": 1}
BYTES |= {"unsigned char": 1, "signed char": 1, "short": 2, "float8_e4m3fn": 1}
BYTES |= {"float8_e4m3fnuz": 1, "float8_e5m2": 1}
PACKED = "awq|gptq|marlin|fp4|int4|w4a|mxfp"  # weights that their shapes don't tell
KINDS = {
    "product": rf"^(?!.*(?:{PACKED}))(aten::(mm|addmm|bmm|baddbmm|_scaled_mm|_addmm_activation"
               r"|_int_mm)(_out|\.out|\.default)?$|(?!aten)\w+::\w*(gemm|scaled_mm)\w*$)",
    "grouped": rf"^(?!.*(?:{PACKED}))(aten::_(scaled_)?grouped_mm$"
               r"|\w+::\w*fused_(experts|moe)\w*$)",
    "attention": r"^aten::_(scaled_dot_product_(flash|cudnn|efficient)_attention"
                 r"|(flash|efficient)_attention_forward)(_backward)?$"
                 r"|^aten::_(flash|efficient)_attention_backward$"
                 r"|^flash_attn::_flash_attn_(forward|backward)$",
    "convolution": r"^aten::(cudnn|miopen|mkldnn)_convolution$|^aten::_?convolution$"
                   r"|^aten::convolution_backward$",
    "pass": r"^aten::(add|sub|mul|div|neg|exp|log|sqrt|rsqrt|pow|gelu|silu|relu|sigmoid|tanh|where"
            r"|clamp|clamp_min|threshold|leaky_relu|hardtanh|masked_fill|copy|_to_copy|clone"
            r"|sum|mean|_softmax|_log_softmax|_softmax_backward_data|_log_softmax_backward_data"
            r"|(native|cudnn|miopen)_(layer|batch|group)_norm|_fused_rms_norm|native_dropout|cat"
            r"|eq|ne|lt|gt|all|lerp|addcmul|addcdiv|mse_loss|_foreach_\w+|_fused_(adam|adamw|sgd))"
            r"(_backward)?_?$"
            r"|^(_C|sgl_kernel|aiter|vllm)::(fused_add_|add_)?rms_?norm\w*$|^triton_(poi|red|per)_fused"
            r"|^(_C|sgl_kernel|aiter)::\w+_and_mul\w*$|^_C::(static|dynamic)_\w*quant$",
}  # fmt: skip
LAWS = re.compile("|".join(f"(?P<{kind}>{words})" for kind, words in KINDS.items()))
PICKS = re.compile(r"embedding|index|gather|slice|select|scatter")  # of a kernel that fused them
SHRINKS = re.compile(
    r"::(sum|mean|all|mse_loss|copy_)$"
)  # what they write is small, or an argument
FACTORS = {"attention": 2.5, "convolution": 2.0}  # a backward pass over the forward one


class Work(NamedTuple):
    """FLOPs and bytes of one call, at least, in a number format ("" where nothing is multiplied);
    `shape` is what a table shows.
    """

    kind: str
    shape: tuple
    number_format: str
    flops: float
    size: float


def kind_of(name: str) -> str | None:
    """Return the law for an operator of this name, None if there is none."""
    match = LAWS.search(name)
    if not match or (match["pass"] and name.startswith("triton") and PICKS.search(name)):
        return None
    return next(kind for kind in KINDS if match[kind] is not None)


def packed(args: dict[str, Any], kind: str) -> bytes:
    """Pack an operator's shapes, types and, if its law needs them, values, compactly enough to keep
    millions.
    """
    values = args.get("Concrete Inputs") if kind in ("attention", "convolution") else None
    # version 2 has no references: like arguments give like bytes
    return marshal.dumps((args.get("Input Dims"), args.get("Input type"), values), 2)


@functools.cache
def work_of(name: str, arguments: bytes) -> Work | None:
    """Return the `Work` of one call; None if the arguments do not determine it."""
    kind = kind_of(name)
    dims, types, values = marshal.loads(arguments)
    if kind is None or not isinstance(dims, list):
        return None
    types = [str(one).removeprefix("c10::").lower() for one in types or []]
    types += [""] * (len(dims) - len(types))
    law = {"product": _product, "grouped": _grouped, "attention": _attention,
           "convolution": _convolution, "pass": _pass}[kind]  # fmt: skip
    try:
        return law(name, dims, types, [str(value) for value in values or []])
    except (ValueError, SyntaxError, IndexError, TypeError, KeyError):
        return None


def _product(name: str, dims: list, types: list[str], values: list[str]) -> Work | None:
    first = 1 if "addm" in name or "baddbmm" in name else 0
    if name.startswith("aten::"):
        pairs = [first]
    else:  # the result may come first
        pairs = [1, 0] if len(dims) > 2 and dims[0][:-1] == dims[1][:-1] else [0]
    for at in pairs:
        left, right = dims[at], dims[at + 1]
        batch = left[0] if len(left) == 3 and len(right) == 3 else 1
        rows = math.prod(left[:-1]) // batch
        depth, columns = left[-1], right[-1] if right[-2] == left[-1] else right[-2]
        if min(batch, rows, depth, columns) < 1 or depth not in right[-2:]:
            continue
        form = FORMATS.get(types[at], types[at])
        width = WIDTHS.get(form, 2)
        out = 2 if form == "fp8" else width
        return Work("product", (batch, rows, depth, columns), form,
                    batch * matmul_flops(rows, depth, columns),
                    batch * matmul_bytes(rows, depth, columns, width, width, out))  # fmt: skip
    return None


def _grouped(name: str, dims: list, types: list[str], values: list[str]) -> Work | None:
    """Each token through the experts that it chose, and each expert's weights that any chose."""
    flat = [d for d in dims if len(d) == 2]
    weights = [(d, t) for d, t in zip(dims, types, strict=False) if len(d) == 3]
    tokens, hidden = flat[0]
    top = next((d[1] for d in flat[1:] if d[0] == tokens and d[1] <= weights[0][0][0]), 1)
    experts, form = weights[0][0][0], FORMATS.get(weights[0][1], weights[0][1])
    each = sum(math.prod(d[1:]) for d, _ in weights if d[0] == experts)
    reads = min(experts, tokens * top) * each * WIDTHS[form]
    shape = (tokens, top, experts, hidden)
    return Work("grouped", shape, form, 2.0 * tokens * top * each, reads + 4.0 * tokens * hidden)


def _attention(name: str, dims: list, types: list[str], values: list[str]) -> Work | None:
    first = 1 if "backward" in name else 0
    shapes = dims[first : first + 2]
    if "scaled_dot" not in name:  # queries stand before heads
        shapes = [(b, h, n, d) for b, n, h, d in shapes]
    (batch, heads, queries, width), (_, kv_heads, keys, _) = shapes
    causal = "True" in values
    flops = attention_flops(batch, heads, queries, keys, width, causal)
    form = FORMATS.get(types[first], types[first])
    size = WIDTHS[form] * 2.0 * batch * width * (heads * queries + kv_heads * keys)
    back = FACTORS["attention"] if first else 1.0
    shape = (batch, heads, queries, keys, width, causal, bool(first))
    return Work("attention", shape, form, back * flops, back * size)


def attention_flops(
    batch: int, heads: int, queries: int, keys: int, width: int, causal: bool
) -> float:
    """Return FLOPs of scores and sums: four for each query, key and element of a head; a causal
    query sees only the keys up to itself.

    >>> attention_flops(1, 1, 4, 4, 1, False), attention_flops(1, 1, 4, 4, 1, True)
    (64, 40.0)
    """
    rows = min(queries, keys)
    pairs = rows * (keys - rows) + rows * (rows + 1) / 2 if causal else queries * keys
    return 4 * batch * heads * pairs * width


def _convolution(name: str, dims: list, types: list[str], values: list[str]) -> Work | None:
    """Two FLOPs for each number of a filter at each place of the result; a backward pass makes two
    gradients, or the one that its mask asks for.
    """
    back = name.endswith("backward")
    at = 1 if back else 0
    image, filters = dims[at], dims[at + 1]
    if back:
        places, gradients = dims[0][2:], (values[-1].count("True") or 2) if values else 2
        count = float(min(2, gradients))
    else:
        lists = [ast.literal_eval(v) for v in values if v.startswith(("[", "("))]
        plain = name.removeprefix("aten::").lstrip("_") == "convolution"
        strides, paddings = lists[:2] if plain else lists[1::-1]
        places, count = convolved(image[2:], filters[2:], strides, paddings, lists[2]), 1.0
        if plain and values[6] == "True":  # transposed: each place of the image spreads a filter
            places = image[2:]
    form = FORMATS.get(types[at], types[at])
    flops = count * 2.0 * image[0] * math.prod(places) * math.prod(filters)
    reads = math.prod(image) + math.prod(filters) + image[0] * filters[0] * math.prod(places)
    shape = (tuple(image), tuple(filters), tuple(places), back)
    return Work("convolution", shape, form, flops, count * WIDTHS[form] * reads)


def convolved(
    image: Sequence[int], filters: Sequence[int], strides: Sequence[int], paddings: Sequence[int],
    dilations: Sequence[int],
) -> list[int]:  # fmt: skip
    """Return the output positions of a convolution in each dimension.

    >>> convolved((224, 224), (7, 7), (2, 2), (3, 3), (1, 1))
    [112, 112]
    """
    each = zip(image, filters, strides, paddings, dilations, strict=True)
    return [(n + 2 * pad - far * (f - 1) - 1) // step + 1 for n, f, step, pad, far in each]


def _pass(name: str, dims: list, types: list[str], values: list[str]) -> Work | None:
    """Every argument is read once, and as much written as the largest has; other names have their
    results among the arguments.
    """
    sizes = [size for shape, kind in zip(dims, types, strict=False) for size in _sizes(shape, kind)]
    if not sizes:
        return None
    writes = max(sizes) if name.startswith("aten::") and not SHRINKS.search(name) else 0
    return Work("pass", (max(sizes),), "", 0.0, float(sum(sizes) + writes))


def _sizes(shape: list, kind: str) -> list[int]:
    """Bytes of a tensor, or of each of a list; none of a scalar, whose shape is empty."""
    if shape and isinstance(shape[0], list):
        return [math.prod(one) * 4 for one in shape if one]
    return [math.prod(shape) * BYTES[kind]] if shape and kind in BYTES else []

"""Run the references of the puzzles under Triton's interpreter on a CPU, and print the record.

    TRITON_INTERPRET=1 python tests/kernels/with_triton.py > tests/kernels/with_triton.json

in an environment with `triton` and `numpy`, and `lib` on its path. The kernels are those of
references.py, with types and constants written out as Triton wants them. Nothing else needs it.
"""

import hashlib
import importlib.util
import json
import re
import sys
import tempfile
from datetime import date
from pathlib import Path

import numpy as np
import triton

from lightspeed_course.puzzles import PUZZLES, references
from lightspeed_models.simulators.kernels import Array

CONSTANTS = {"B", "BM", "BN", "BK", "D", "part", "causal"}


def decorated(head):
    """A kernel's first line as Triton wants it: sizes of blocks are constants."""
    names = (name.strip() for name in head[2].split(","))
    signature = (f"{name}: tl.constexpr" if name in CONSTANTS else name for name in names)
    return f"@triton.jit\ndef {head[1]}({', '.join(signature)}):"


def in_triton(source):
    """references.py as a module of Triton."""
    body = source.split("LOW = -1e30")[1].replace("LOW", "-1e30")
    body = re.sub(r"tl\.zeros\(\(([^)]*)\)\)", r"tl.zeros((\1), tl.float32)", body)
    body = re.sub(r"tl\.full\(\(([^)]*)\), -1e30\)", r"tl.full((\1), -1e30, tl.float32)", body)
    body = re.sub(r"def (_\w+)\(([^)]*)\):", decorated, body)
    path = Path(tempfile.mkdtemp()) / "in_triton.py"  # Triton reads a kernel's source from its file
    path.write_text("import triton, triton.language as tl\n" + body)
    spec = importlib.util.spec_from_file_location("in_triton", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Tensor:
    """What the interpreter asks of a tensor, over numpy's memory."""

    device = "cpu"

    def __init__(self, numbers):
        self.numbers = numbers
        self.dtype = {"float32": "fp32", "int32": "i32"}[str(numbers.dtype)]

    def data_ptr(self):
        return self.numbers.ctypes.data

    def untyped_storage(self):
        return self

    cpu = untyped_storage

    def new_empty(self, *_, **__):
        return Tensor(self.numbers)

    def set_(self, storage, *_):
        self.numbers = storage.numbers

    def storage_offset(self):
        return 0

    def size(self):
        return self.numbers.size

    def stride(self):
        return (1,)

    def copy_(self, other):
        self.numbers[...] = other.numbers


def launch(kernel, grid, *arguments):
    kernel[(*grid, *(1,) * (3 - len(grid)))](*arguments)


def worst_error(module, name):
    """The largest error of a puzzle's reference over its cases, in fp32."""
    worst = 0.0
    for case in PUZZLES[name].cases(1):
        tensors = {
            x.name: Tensor(np.array(x.values, np.int32 if x.integer else np.float32))
            for x in case.arguments
            if isinstance(x, Array)
        }
        arguments = [tensors[x.name] if isinstance(x, Array) else x for x in case.arguments]
        getattr(module, name)(launch, *arguments)
        for array, expected in case.expected.items():
            gap = np.abs(tensors[array].numbers - expected) / np.maximum(1, np.abs(expected))
            worst = max(worst, float(gap.max()))
    return worst


if __name__ == "__main__":
    source = Path(references.__file__).read_text()
    module = in_triton(source)
    record = {
        "triton": triton.__version__,
        "run": str(date.today()),
        "references": hashlib.sha256(source.encode()).hexdigest(),
        "errors": {name: float(f"{worst_error(module, name):.1e}") for name in PUZZLES},
    }
    json.dump(record, sys.stdout, indent=1)
    print()

"""One MLP on several processes: split by tensors and by data, beside what the laws of chapter 6
predict. Measured for chapter 6.

The prediction knows two things of this machine, both measured in the same run: what one process
reaches in a large matrix product while the others do the same, and how long an all-reduce of so
many bytes takes.
"""

import json
from dataclasses import dataclass

from lightspeed_tools.measure.instruments.launch import (
    INSTALL,
    LIMIT,
    answers,
    clean,
    launcher,
    module,
    needs,
    turns,
)
from lightspeed_tools.measure.instruments.ranks import sample
from lightspeed_tools.measure.instruments.timing import Quantity, Unavailable
from lightspeed_tools.measure.records.record import all_of, find

WIDTH, HIDDEN = 512, 2048  # of the MLP: its weights are 8 MiB in float32
TOKENS = (16, 64, 256, 1024)
SQUARE = 1024  # side of the matrices that set the peak
RANKS = 2
# a token, in units of WIDTH x HIDDEN: forward alone, and forward with backward
FLOPS = {"tensor": 4, "data": 12}


def measure(quick=True, report=None):
    """Times of an MLP on two processes, whole and split both ways. Unavailable without MPI."""
    needs("mpi4py", INSTALL)
    job = {
        "backend": "mpi",
        "limit": LIMIT,
        "split": {"tokens": TOKENS, "budget": 0.15 if quick else 1.0},
    }
    command = [*launcher("mpi", RANKS), *module("rank_worker", json.dumps(job))]
    quantities = []
    for said in answers(command, LIMIT + 10, clean()):
        if said.get("wrong"):
            raise Unavailable(f"The split MLP differs from the whole one ({said['key']}).")
        if said["samples"]:
            quantities.append(
                Quantity(
                    f"split.{said['key']}",
                    "s",
                    tuple(said["samples"]),
                    {**said["parameters"], "ranks": RANKS},
                    better="lower",
                    counted=said["counted"],
                    note=turns(RANKS),
                )
            )
            if report and said["key"] == "tensor_whole":
                report(f"{said['parameters']['tokens']} tokens")
    return quantities


def on_rank(backend, job, say, watch):
    """The work of one process."""
    import numpy

    n, rank = backend.size, backend.rank
    budget = job["split"]["budget"]
    rng = numpy.random.default_rng(6)  # the same numbers on every rank
    up, down = (
        rng.standard_normal(shape, numpy.float32) for shape in ((WIDTH, HIDDEN), (HIDDEN, WIDTH))
    )
    part = HIDDEN // n
    mine = slice(rank * part, (rank + 1) * part)
    up_part, down_part = up[:, mine].copy(), down[mine].copy()

    def timed(key, call, parameters, counted, wrong=0):
        watch.begin(f"{key} {parameters}")
        call()
        samples, _ = sample(backend, call, budget)
        say(key=key, samples=samples, parameters=parameters, counted=counted, wrong=wrong)

    square = rng.standard_normal((SQUARE, SQUARE), numpy.float32)
    timed("gemm", lambda: square @ square, {"n": SQUARE}, {"flops": 2 * SQUARE**3})
    for tokens in job["split"]["tokens"]:
        X, G = (rng.standard_normal((tokens, WIDTH), numpy.float32) for _ in range(2))
        share = slice(rank * tokens // n, (rank + 1) * tokens // n)
        X_part, G_part = X[share].copy(), G[share].copy()
        partial, summed = numpy.empty_like(X), numpy.empty_like(X)
        gradients, total = (
            numpy.empty((2, WIDTH * HIDDEN), numpy.float32),
            numpy.empty((2, WIDTH * HIDDEN), numpy.float32),
        )
        add_states, add_gradients = (
            backend.call("all_reduce", partial, summed),
            backend.call("all_reduce", gradients, total),
        )

        def tensor(X=X, partial=partial, add=add_states):
            numpy.matmul(forward(X, up_part), down_part, out=partial)
            add()

        def data(X=X_part, G=G_part, gradients=gradients, add=add_gradients):
            backward(X, G, up, down, gradients)
            add()

        def whole(X=X, G=G):
            return backward(X, G, up, down, numpy.empty((2, WIDTH * HIDDEN), numpy.float32))

        tensor()
        data()
        right = forward(X, up) @ down, whole()
        # Sums in another order: compared with the size of what is summed.
        wrong = [
            int(abs(got - want).max() > 1e-4 * abs(want).max())
            for got, want in zip((summed, total), right, strict=True)
        ]
        wrong = [sum(backend.collect(w)) for w in wrong]
        flops = {way: count * tokens * WIDTH * HIDDEN for way, count in FLOPS.items()}
        at = {"tokens": tokens}
        timed("tensor_whole", lambda X=X: forward(X, up) @ down, at, {"flops": flops["tensor"]})
        timed(
            "tensor", tensor, at, {"flops": flops["tensor"] // n, "bytes": partial.nbytes}, wrong[0]
        )
        timed("data_whole", whole, at, {"flops": flops["data"]})
        timed("data", data, at, {"flops": flops["data"] // n, "bytes": gradients.nbytes}, wrong[1])
        timed("all_reduce", add_states, {"size": partial.nbytes}, {})
    timed("all_reduce", add_gradients, {"size": gradients.nbytes}, {})


def forward(X, up):
    """The hidden layer of an MLP with ReLU."""
    import numpy

    return numpy.maximum(X @ up, 0)


def backward(X, G, up, down, gradients):
    """Forward and backward; writes the gradients of both matrices (flat), and returns them."""
    hidden = forward(X, up)
    hidden @ down  # the output: the loss would need it
    gradients[1] = (hidden.T @ G).ravel()
    above = (G @ down.T) * (hidden > 0)
    gradients[0] = (X.T @ above).ravel()
    above @ up.T  # the gradient of the input: the layer below needs it
    return gradients


@dataclass(frozen=True)
class Split:
    """A way to split at one number of tokens: seconds predicted and measured, and the speedup."""

    way: str
    tokens: int
    compute: float
    send: float
    time: float
    predicted_speedup: float
    speedup: float
    steady: bool

    @property
    def predicted(self):
        """Seconds without overlap: compute, then send."""
        return self.compute + self.send


def splits(record):
    """A record's `Split`s in order; predicted: FLOPs over a product's peak, plus the all-reduce of
    what is sent. Raises NotMeasured (a LookupError) without a peak.
    """
    gemm = find(record, "split.gemm")
    peak = gemm.counted["flops"] / gemm.value
    found = []
    for way in FLOPS:
        for part in all_of(record, f"split.{way}"):
            tokens = part.parameters["tokens"]
            whole = all_of(record, f"split.{way}_whole", tokens=tokens)
            send = all_of(record, "split.all_reduce", size=part.counted["bytes"])
            if not (whole and send):  # too slow for the time that was given
                continue
            compute, steady = (
                part.counted["flops"] / peak,
                part.trusted and whole[0].trusted and send[0].trusted,
            )
            faster = whole[0].counted["flops"] / peak / (compute + send[0].value)
            found.append(
                Split(
                    way,
                    tokens,
                    compute,
                    send[0].value,
                    part.value,
                    faster,
                    whole[0].value / part.value,
                    steady,
                )
            )
    return found

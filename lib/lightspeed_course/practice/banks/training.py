"""Questions of chapter 3 on training: FLOPs, days, and how much of the peak was used."""

from __future__ import annotations

from lightspeed import training as t
from lightspeed.catalog import accelerator
from lightspeed_course.practice.derivation import derivation, step
from lightspeed_course.practice.parameters import chip, counted
from lightspeed_course.practice.questions import Misconception, Parameter, Question, register

CHAPTER = "03_amdahl_gustafson"


def percent(*choices):
    """A share, shown in per cent; the first one is canonical."""
    return Parameter(100 * choices[0], tuple(100 * c for c in choices), "%")


per_token = Question(
    id="training.flops_per_parameter",
    chapter=CHAPTER,
    level="recall",
    prompt=(
        "How many FLOPs does training cost for each parameter and token, attention scores left out"
        " and nothing recomputed?"
    ),
    parameters={},
    expected=lambda: t.training_flops(1, 1),
    unit="FLOP",
    tolerance=0,
    solution=(
        lambda: derivation(
            step(
                "Forward, each parameter is multiplied with something and added up.",
                "1[FLOP] + 1[FLOP]",
            ),
            "Backward, the same is done for the gradient of the input, and once more for the"
            " gradient of the weight.",
            step("Three passes.", "3 * 2[FLOP]", (t.training_flops(1, 1), "FLOP")),
        )
    ),
    misconceptions=(
        Misconception(
            "forward only", lambda: 2, "That is inference. What else does a training step do?"
        ),
        Misconception(
            "backward only", lambda: 4, "That is the backward pass. The forward pass came first."
        ),
        Misconception(
            "forward done twice",
            lambda: t.training_flops(1, 1, recomputed=1),
            "That counts a forward pass repeated to save memory: work of the hardware, not of the"
            " model.",
        ),
        Misconception(
            "a multiply-add is one",
            lambda: 3,
            "Three passes is right. How many FLOPs is a multiply-add?",
        ),
    ),
)


def run(flops, n, key, utilization):
    return t.training_time(flops, n, accelerator(key).bf16, utilization)


days = Question(
    id="training.days",
    chapter=CHAPTER,
    level="apply",
    prompt=(
        "A model of {{params}} is trained on {{tokens}} with {{n}} chips ({{key}}) at an MFU of"
        " {{utilization}}. How many days does it take?"
    ),
    parameters={
        "params": counted("parameter", 70e9, 7e9, 13e9, 405e9),
        "tokens": counted("token", 15e12, 2e12, 5e12),
        "n": Parameter(4096, (2048, 4096, 8192)),
        "key": chip("h100_sxm", "a100_80gb", "tpu_v5p"),
        "utilization": percent(0.4, 0.35, 0.45),
    },
    expected=lambda params, tokens, n, key, utilization: run(
        t.training_flops(params, tokens), n, key, utilization
    ),
    unit="day",
    solution=lambda params, tokens, n, key, utilization: derivation(
        step(
            "The work: six FLOPs for each parameter and token.",
            "6[FLOP/parameter/token] * parameters * tokens",
            (t.training_flops(params, tokens), "FLOP"),
            parameters=(params, "parameter"),
            tokens=(tokens, "token"),
        ),
        step(
            "What the machine gets done: a share of the peak, on each chip.",
            "n * peak * utilization",
            n=n,
            peak=accelerator(key).bf16,
            utilization=(utilization, "%"),
        ),
        step(
            "Divide, and turn seconds into days.",
            "work / (n * peak * utilization) / day",
            (run(t.training_flops(params, tokens), n, key, utilization) / 86400, "day"),
            day=(86400, "s/day"),
            work=(t.training_flops(params, tokens), "FLOP"),
            n=n,
            peak=accelerator(key).bf16,
            utilization=(utilization, "%"),
        ),
    ),
    misconceptions=(
        Misconception(
            "inference",
            lambda params, tokens, n, key, utilization: run(
                2 * params * tokens, n, key, utilization
            ),
            "You counted the forward pass. What does a training step do after it?",
        ),
        Misconception(
            "hardware FLOPs",
            lambda params, tokens, n, key, utilization: run(
                t.training_flops(params, tokens, 1), n, key, utilization
            ),
            "MFU counts what the model needs. Recomputed work belongs to HFU.",
        ),
        Misconception(
            "at the peak",
            lambda params, tokens, n, key, utilization: run(
                t.training_flops(params, tokens), n, key, 1
            ),
            "Runs do not reach the peak. Where does the utilization go?",
        ),
        Misconception(
            "half",
            lambda params, tokens, n, key, utilization: (
                (run(t.training_flops(params, tokens), n, key, utilization)) / 2
            ),
            "Is your peak the dense one, or one with sparsity? And is a multiply-add two FLOPs in"
            " the model, too?",
        ),
        Misconception(
            "utilization speeds it up",
            lambda params, tokens, n, key, utilization: (
                (run(t.training_flops(params, tokens), n, key, utilization)) * utilization**2
            ),
            "Should a lower utilization make the run longer, or shorter? What does it in yours?",
        ),
    ),
    smaller="numbers.training_flops",
)


def reached(params, rate, key, per_token):
    return per_token * params * rate / accelerator(key).bf16


mfu = Question(
    id="training.mfu",
    chapter=CHAPTER,
    level="apply",
    prompt=(
        "A model of {{params}} trains on {{key}} chips; each chip gets through {{rate}} tokens a"
        " second. What is the MFU?"
    ),
    parameters={
        "params": counted("parameter", 65e9, 30e9, 70e9),
        "rate": Parameter(380, (250, 300, 380), show=str),
        "key": chip("a100_80gb", "h100_sxm"),
    },
    expected=lambda params, rate, key: t.mfu(params, rate, 1.0, 1, accelerator(key).bf16),
    unit="%",
    solution=lambda params, rate, key: derivation(
        step(
            "The FLOPs that the model needs in a second.",
            "6[FLOP/parameter/token] * parameters * rate",
            parameters=(params, "parameter"),
            rate=(rate, "token/s"),
        ),
        step(
            "Over the dense peak.",
            "6[FLOP/parameter/token] * parameters * rate / peak",
            (t.mfu(params, rate, 1.0, 1, accelerator(key).bf16), "%"),
            parameters=(params, "parameter"),
            rate=(rate, "token/s"),
            peak=accelerator(key).bf16,
        ),
    ),
    misconceptions=(
        Misconception(
            "sparse peak",
            lambda params, rate, key: 6 * params * rate / accelerator(key).bf16_sparse,
            "Is that over the sparse peak? A data sheet may print it first. MFU is taken of the"
            " dense one.",
        ),
        Misconception(
            "forward only",
            lambda params, rate, key: reached(params, rate, key, 2),
            "What else does training do with each token, after the forward pass?",
        ),
        Misconception(
            "hardware utilization",
            lambda params, rate, key: t.hfu(params, rate, 1.0, 1, accelerator(key).bf16),
            "That counts a repeated forward pass: HFU. The question does not say that this run"
            " recomputes.",
        ),
        Misconception(
            "multiplies only",
            lambda params, rate, key: reached(params, rate, key, 3),
            "A multiply-add is two FLOPs, in the model as on the data sheet.",
        ),
    ),
    smaller="training.flops_per_parameter",
)

from_hfu = Question(
    id="training.mfu_from_hfu",
    chapter=CHAPTER,
    level="apply",
    prompt=(
        "A paper reports {{hfu}} of peak. Its FLOP count includes a full forward pass repeated to"
        " save memory. What is the MFU, attention scores aside?"
    ),
    parameters={"hfu": percent(0.52, 0.44, 0.48, 0.56)},
    expected=lambda hfu: hfu * t.training_flops(1, 1) / t.training_flops(1, 1, recomputed=1),
    unit="%",
    solution=lambda hfu: derivation(
        step("What the model needs for each parameter and token.", "2[FLOP] + 4[FLOP]"),
        step("The hardware repeats the forward pass.", "2[FLOP] + 4[FLOP] + 2[FLOP]"),
        step(
            "So three quarters of what it does count.",
            "HFU * 6[FLOP] / 8[FLOP]",
            (hfu * t.training_flops(1, 1) / t.training_flops(1, 1, recomputed=1), "%"),
            HFU=(hfu, "%"),
        ),
    ),
    holds={
        "The forward pass is a third": lambda hfu: (
            t.training_flops(1, 1, recomputed=1) - t.training_flops(1, 1)
            == t.training_flops(1, 1) / 3
        ),
        "three quarters of": (
            lambda hfu: t.training_flops(1, 1) / t.training_flops(1, 1, recomputed=1) == 3 / 4
        ),
    },
    misconceptions=(
        Misconception(
            "as printed", lambda hfu: hfu, "Part of that work was repeated. Should it count again?"
        ),
        Misconception(
            "the wrong way",
            lambda hfu: hfu * 4 / 3,
            "MFU leaves work out. Can it be higher than HFU?",
        ),
        Misconception(
            "two thirds",
            lambda hfu: hfu * 2 / 3,
            "The forward pass is a third of the model's work. Of which total is the repeated one a"
            " share?",
        ),
        Misconception(
            "half",
            lambda hfu: hfu / 2,
            "It is the forward pass that is repeated, not the whole step.",
        ),
    ),
    smaller="training.flops_per_parameter",
)

at_critical = Question(
    id="training.critical_batch",
    chapter=CHAPTER,
    level="recall",
    prompt=(
        "A benchmark reaches its target after {{samples}} samples if the batch is tiny. How many"
        " does it need at its critical batch?"
    ),
    parameters={
        "samples": Parameter(4_000_000, (1_000_000, 4_000_000, 6_000_000), show=lambda v: f"{v:,}"),
    },
    expected=lambda samples: t.samples_to_target(1.0, samples, 1.0),
    tolerance=0.01,
    solution=lambda samples: derivation(
        "Samples grow with the batch as $1 + B / B_c$, and here $B = B_c$.",
        step(
            "The samples of tiny batches are needed once, and once more for the one critical"
            " batch.",
            "samples * (1 + 1)",
            t.samples_to_target(1.0, samples, 1.0),
            samples=samples,
        ),
    ),
    misconceptions=(
        Misconception(
            "free batch",
            lambda samples: samples,
            "That is the count for tiny batches. What does a larger batch cost?",
        ),
        Misconception(
            "half as many",
            lambda samples: samples / 2,
            "It takes fewer steps, but each of them has a whole batch of samples.",
        ),
        Misconception(
            "half as many more",
            lambda samples: 1.5 * samples,
            "How large is the batch over the critical one? Add that to one.",
        ),
    ),
    holds={
        "It takes fewer steps": lambda samples: (
            t.samples_to_target(2.0, samples, 1.0) / 2.0 < t.samples_to_target(1.0, samples, 1.0)
        ),
    },
)

large_batch = Question(
    id="training.large_batch",
    chapter=CHAPTER,
    level="apply",
    prompt=(
        "A benchmark reaches its target after {{samples}} samples if the batch is tiny. Its"
        " critical batch is {{critical}}. To keep a large cluster busy it takes a batch of"
        " {{batch}}. How many samples does it need?"
    ),
    parameters={
        "samples": Parameter(2_000_000, (1_000_000, 3_000_000), show=lambda v: f"{v:,}"),
        "critical": Parameter(4096, (2048, 8192), show=lambda v: f"{v:,}"),
        "batch": Parameter(16384, (12288, 32768), show=lambda v: f"{v:,}"),
    },
    expected=lambda samples, critical, batch: t.samples_to_target(batch, samples, critical),
    unit="",
    solution=lambda samples, critical, batch: derivation(
        step(
            "How many critical batches is the batch?",
            "batch / critical",
            batch=batch,
            critical=critical,
        ),
        step(
            "The samples of tiny batches are needed once, and once more for each critical batch.",
            "samples * (1 + batch / critical)",
            t.samples_to_target(batch, samples, critical),
            samples=samples,
            batch=batch,
            critical=critical,
        ),
        after="The cluster is faster, but it has more to do.",
    ),
    holds={
        "but it has more to do": (
            lambda samples, critical, batch: (
                t.samples_to_target(batch, samples, critical) > 2 * samples
            )
        ),
    },
    misconceptions=(
        Misconception(
            "free batch",
            lambda samples, critical, batch: samples,
            "That is the count for tiny batches. What does a batch above the critical one cost?",
        ),
        Misconception(
            "at the critical batch",
            lambda samples, critical, batch: 2 * samples,
            "That holds at the critical batch. How many critical batches is this one?",
        ),
        Misconception(
            "in proportion",
            lambda samples, critical, batch: samples * batch / critical,
            "The samples of a tiny batch are needed as well: they are the 1 in the sum.",
        ),
        Misconception(
            "steps",
            lambda samples, critical, batch: t.samples_to_target(batch, samples, critical) / batch,
            "That is how many steps it takes. A step has a whole batch of samples.",
        ),
        Misconception(
            "critical over batch",
            lambda samples, critical, batch: samples * (1 + critical / batch),
            "By yours a larger batch needs fewer samples. Is the ratio of the two batches turned"
            " upside down?",
        ),
    ),
    smaller="training.critical_batch",
)

register(per_token, days, mfu, from_hfu, at_critical, large_batch)

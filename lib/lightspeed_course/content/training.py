"""What the formulas of training.md call."""

from lightspeed import training as t
from lightspeed.catalog import accelerator
from lightspeed_course.practice.questions import Parameter


def percent(*choices):
    """A share, shown in per cent; the first one is canonical."""
    return Parameter(100 * choices[0], tuple(100 * c for c in choices), "%")


def run(flops, n, key, utilization):
    return t.training_time(flops, n, accelerator(key).bf16, utilization)


def reached(params, rate, key, per_token):
    return per_token * params * rate / accelerator(key).bf16

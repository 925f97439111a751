"""What the formulas of planning.md call."""

OFFERS = {
    "network": ("a network twice as fast", "data", 0.5),
    "nvlink": ("links inside the node twice as fast", "tensor", 0.5),
    "chip": ("chips whose products are a tenth faster", "compute", 1 / 1.1),
    "schedule": ("a schedule with half the bubble", "bubble", 0.5),
}


def after(terms, offer):
    """Seconds of a step whose terms are these, with one of OFFERS."""
    _, term, times = OFFERS[offer]
    return sum(t * (times if name == term else 1) for name, t in terms.items())


def step(compute, tensor, data, bubble):
    return {"compute": compute, "tensor": tensor, "data": data, "bubble": bubble}


def best_offer(compute, tensor, data, bubble):
    """Return the offer with the shortest step."""
    return min(OFFERS, key=lambda offer: after(step(compute, tensor, data, bubble), offer))


# Seconds of a step and gigabytes of the fullest GPU; one plan of each set is beaten in both.
FRONTS = {
    "c": {"a": (12.8, 68), "b": (13.5, 64), "c": (14.4, 66), "d": (15.5, 33)},
    "b": {"a": (8.4, 70), "b": (9.9, 71), "c": (9.1, 52), "d": (12.0, 40)},
    "d": {"a": (20.0, 75), "b": (22.5, 60), "c": (30.0, 31), "d": (31.5, 35)},
}


def listed(key):
    """List the plans of a set in words."""
    lines = (
        f"{name}: {seconds:g} s, {memory} GB" for name, (seconds, memory) in FRONTS[key].items()
    )
    return "; ".join(lines)

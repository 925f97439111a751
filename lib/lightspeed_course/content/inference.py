"""What the formulas of inference.md call."""

LATE = {
    "first tokens are quick, but tokens stutter: each step that reads a prompt is long": "chunks",
    "the queue is long and the KV cache is full to the last block": "places",
    "a lone user's step is no faster than half the promise, and most of it is launches": "host",
    "steps are short, no cache is full, and requests wait for a free slot": "slots",
}


def logged(running, waiting, used):
    """Return an engine's log line on its requests and its cache."""
    return f"Running: {running} reqs, Waiting: {waiting} reqs, KV cache usage: {used:.1%}"


SLOTS = 256

LINES = {
    logged(44, 20, 0.997): "places",
    logged(SLOTS, 31, 0.38): "slots",
    logged(12, 40, 0.09): "budget",
    logged(3, 0, 0.021): "idle",
}


def best_readers(replicas, reading, writes):
    """How many of the replicas should read prompts, for the most requests a second."""

    def rate(readers):
        return min(readers / reading, (replicas - readers) * writes)

    return max(range(1, replicas), key=rate)


def pays(tokens, plain, checked):
    """Whether drafts make tokens faster than steps without drafts."""
    return tokens * plain > checked


def when(tokens, night, checked_night, noon, checked_noon):
    """When drafts pay: at night, at noon, always or never."""
    quiet, full = pays(tokens, night, checked_night), pays(tokens, noon, checked_noon)
    return {(1, 1): "both", (1, 0): "night", (0, 1): "noon", (0, 0): "neither"}[quiet, full]

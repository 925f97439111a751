"""Evenly spaced values for a curve: what numpy has in linspace and geomspace, on a bare Python."""


def evenly(low, high, count):
    """`count` values with equal steps from `low` to `high`, both of them included.

    >>> evenly(0, 1, 5)
    (0.0, 0.25, 0.5, 0.75, 1.0)
    """
    step = (high - low) / (count - 1)
    return (*(low + step * i for i in range(count - 1)), float(high))


def by_ratio(low, high, count):
    """`count` values with equal ratios from `low` to `high`, both of them included.

    >>> by_ratio(1, 16, 3)
    (1.0, 4.0, 16.0)
    """
    return (*(low * (high / low) ** (i / (count - 1)) for i in range(count - 1)), float(high))

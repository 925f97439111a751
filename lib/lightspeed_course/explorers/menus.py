"""What the explorers share: machines for a menu, and every state that is one change away.

A sentence that says "no other" or "nearest" holds only if every choice was tried. So an explorer
that says one takes its choices from the controls that the reader sees, never from its own list.
"""

import re

from lightspeed.catalog import entries
from lightspeed_course.explorers.measured_machines import measured


def machines(*numbers, one_of=()):
    """Name -> key of the accelerators, then of the measured machines, that have all these numbers.

    Where `one_of` names some, they have at least one of those, too.
    """
    machines_by_key = {}
    for key, entry in (*entries("accelerators").items(), *measured().items()):
        if all(n in entry for n in numbers) and (not one_of or any(n in entry for n in one_of)):
            machines_by_key[entry.name] = key
    return machines_by_key


def one_change(at, controls):
    """(control, value, state) of each state that differs from `at` in one of these controls."""
    for control in controls:
        for _, value in control.options:
            if value != at[control.name]:
                yield control, value, at | {control.name: value}


def listed(names, most):
    """Machines in a sentence: "A and B", or "A, B and 3 more" where there are more than `most`."""
    labels = [re.sub(r", [^()]*(?= \(|\)|$)", "", name) for name in names[:most]]
    if len(names) > most:
        labels.append(f"{len(names) - most} more")
    return labels[0] if len(labels) == 1 else f"{', '.join(labels[:-1])} and {labels[-1]}"

"""Words that the class and its command share; light, for a command's help comes at once."""


def listed(names, most=12):
    """Names in one line, the first ones of many."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more

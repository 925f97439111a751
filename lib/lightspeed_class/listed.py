"""Words that the class and its command share; light, for a command's help comes at once."""


def listed(names, most=12):
    """Join names in one line, at most `most` of them."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more

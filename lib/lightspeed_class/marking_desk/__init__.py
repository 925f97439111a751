"""Marking by hand: a page on this machine with what students handed in beside what was found."""

"""Twelve puzzles: write a kernel that is right and asks for no more bytes than it must.

cases.py        what each puzzle is given and must leave, drawn anew for each try
references.py   one right solution of each
attempts.py     a solution tried: right, within the bytes, and what crossed
"""

from lightspeed_course.puzzles.attempts import Attempt, attempt
from lightspeed_course.puzzles.cases import PUZZLES

__all__ = ("PUZZLES", "Attempt", "attempt")

"""The writing of numbers stands in the library, where numbers show themselves; charts and tables
find it here.
"""

from lightspeed.values import human_time, plain, plural, prefixed, si

__all__ = ("human_time", "plain", "plural", "prefixed", "si")

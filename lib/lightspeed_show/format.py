"""The writing of numbers stands in the library; charts and tables find it here."""

from lightspeed.values import human_time, plain, plural, prefixed, si

__all__ = ("human_time", "plain", "plural", "prefixed", "si")

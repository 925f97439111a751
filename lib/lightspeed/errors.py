"""A wrong argument in words: which one, its value, what was expected, and the likely word."""

import difflib
from collections.abc import Iterable
from typing import Any, TypeVar

__all__ = ("BadArgument", "did_you_mean", "meant", "nearest", "one_of")

T = TypeVar("T")


class BadArgument(ValueError):
    """An argument that a law rejects; the message gives its name, value and what was expected."""

    def __init__(self, law: str, argument: str, value: Any, expected: str, hint: str = "") -> None:
        self.law, self.argument, self.value, self.expected = law, argument, value, expected
        text = repr(value) if not hasattr(value, "dimensionality") else f"{value:~P}"
        text = text if len(text) <= 80 else text[:77] + "..."
        message = f"{law}: {argument} = {text}: expected {expected}."
        super().__init__(f"{message} {hint}".strip())


def nearest(word: object, words: Iterable[object]) -> str | None:
    """Return the one of `words` most similar to `word`, or None if none is similar."""
    return next(iter(difflib.get_close_matches(str(word), map(str, words), n=1)), None)


def meant(word: object, words: Iterable[object], likeness: float = 0.6) -> str:
    """Return the likely correction of `word`, or all `words`, to end a sentence with."""
    words = list(words)
    near = next(iter(difflib.get_close_matches(str(word), map(str, words), 1, likeness)), None)
    return f"did you mean {near}?" if near else f"there are {', '.join(map(str, words))}"


def did_you_mean(word: object, words: Iterable[object]) -> str:
    """Return a "did you mean" question for a mistyped `word`; empty if nothing is similar."""
    near = nearest(word, words)
    return f"Did you mean {near!r}?" if near else ""


def one_of(law: str, argument: str, value: T, allowed: Iterable[T]) -> T:
    """Return `value` if it is one of `allowed`, else raise BadArgument naming the nearest."""
    if value in allowed:
        return value
    raise BadArgument(
        law, argument, value, "one of " + ", ".join(map(str, allowed)), did_you_mean(value, allowed)
    )

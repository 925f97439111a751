"""Which law is it? Each law of the library by its name, and by the words that describe it."""

import ast
import importlib
import inspect
import pkgutil
import re
import textwrap
from functools import cache
from typing import Any

import lightspeed
from lightspeed.errors import nearest
from lightspeed.law import Argument

__all__ = ("describe", "find", "laws", "one_line")

# Words of a question that no law is known by.
_SMALL = {
    *("a", "an", "and", "are", "at", "be", "by", "can", "do", "does", "for", "from", "has", "have"),
    *("how", "i", "if", "in", "is", "it", "long", "many", "much", "my", "need", "of", "on", "or"),
    *("take", "that", "the", "there", "to", "we", "what", "when", "which", "why", "will", "with"),
}


@cache
def laws() -> dict[str, Any]:
    """Return every law by its dotted name, such as `roofline.ridge_point`, module by module."""
    modules = [
        importlib.import_module(f"lightspeed.{m.name}")
        for m in pkgutil.iter_modules(lightspeed.__path__)
        if not m.ispkg and m.name != __name__.rpartition(".")[2]
    ]
    return {
        f"{module.__name__.partition('.')[2]}.{name}": value
        for module in modules
        for name, value in vars(module).items()
        if hasattr(value, "arguments") and value.__module__ == module.__name__
    }


def find(words: str) -> list[str]:
    """The dotted names of the laws that `words` mean: one of that name alone if there is one, else
    those with each word in name, arguments, description or subject, names first, subjects last;
    else those with at least half of the words, by how many they have. Small words of a question
    don't count.

    Raises:
        LookupError: no law has these words; the message has the closest name.
    """
    text = words.strip().lower().removeprefix("lightspeed.")
    exact = [name for name in laws() if text in (name, name.partition(".")[2])]
    if exact:
        return exact
    every = re.findall(r"[^\W_]+", text)
    terms = [rf"\b{re.escape(term)}" for term in every if term not in _SMALL or len(every) == 1]
    ways = (
        r"\W+".join(terms),
        "".join(rf"(?=.*{term})" for term in terms),
    )  # as a phrase, else any
    for pattern in filter(None, ways):
        matches = [name for name in laws() if re.search(pattern, _text(name))]
        if matches:
            texts = {name: (_words(name), _own(name)) for name in matches}
            return sorted(matches, key=lambda n: [not re.search(pattern, t) for t in texts[n]])
    has = {
        name: [sum(bool(re.search(term, t)) for term in terms) for t in (_text(name), _own(name))]
        for name in laws()
    }
    if matches := [name for name, (count, _) in has.items() if 0 < count >= len(terms) / 2]:
        return sorted(matches, key=has.__getitem__, reverse=True)
    letters = r"[^\W_]+(?:-[^\W_]+)*"
    vocabulary = {*laws(), *(word for name in laws() for word in re.findall(letters, _text(name)))}
    close = nearest(text, sorted(vocabulary))
    hint = f"; did you mean {close!r}?" if close else ""
    raise LookupError(f"no law has {words!r} in its name, arguments or description{hint}")


def one_line(name: str) -> str:
    """Return a law's name and the first sentence of its docstring."""
    sentence = re.split(r"(?<=[.;])\s|\n\n", _doc(laws()[name]), maxsplit=1)[0]
    return f"{name:<42} {textwrap.shorten(sentence.rstrip(':;'), 100, placeholder=' …')}"


def describe(name: str) -> str:
    """A law's call, description, equation, arguments with their units, result and chapter."""
    law = laws()[name]
    module = inspect.getmodule(law.__wrapped__)
    chapter = re.search(r"[Cc]hapters?\s+([\d, and]*\d)", inspect.getdoc(module) or "")
    returns = law.returns.items() if isinstance(law.returns, dict) else [("", law.returns)]
    rows = [
        ("equation", _equation(law)),
        *(
            (arg, spec.row() if isinstance(spec, Argument) else f"one of {', '.join(spec)}")
            for arg, spec in law.arguments.items()
        ),
        ("returns", ", ".join(" in ".join(filter(None, pair)) for pair in returns).strip()),
        ("import", f"from {law.__module__} import {law.__name__}"),
        ("chapter", chapter[1] if chapter else ""),
    ]
    lines = [f"{name}{inspect.signature(law)}", textwrap.indent(_doc(law), "  "), ""]
    for label, text in rows:
        body = text if label == "equation" else textwrap.fill(text, 84)
        if text:
            lines.append(f"  {label:<14}{textwrap.indent(body, ' ' * 16).strip()}")
    return "\n".join(lines)


def _doc(law: Any) -> str:
    """What the author wrote of a law, without the doctest."""
    return re.split(r"\n *>>>", inspect.cleandoc(law.__wrapped__.__doc__ or ""), maxsplit=1)[
        0
    ].strip()


def _text(name: str) -> str:
    law = laws()[name]
    subject = (inspect.getdoc(inspect.getmodule(law.__wrapped__)) or "").split("\n\n")[0]
    return f"{_own(name)} {_words(subject).lower()}"


def _own(name: str) -> str:
    """What a law says itself: name, arguments and description."""
    law = laws()[name]
    text = _words(" ".join((name, *law.arguments, _doc(law)))).lower()
    compounds = re.findall(r"\w+(?:-\w+)+", text)  # all-reduce is also written allreduce
    return " ".join((text, *(word.replace("-", "") for word in compounds)))


def _words(name: str) -> str:
    return " ".join(re.split(r"[\s_.]+", name))


def _equation(law: Any) -> str:
    """The body of a law as it is written: what follows its docstring."""
    [function] = ast.parse(textwrap.dedent(inspect.getsource(law.__wrapped__))).body
    assert isinstance(function, ast.FunctionDef)
    lines = [ast.unparse(statement) for statement in function.body[1:]]
    return "\n".join(lines).removeprefix("return ")

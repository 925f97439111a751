"""Finds the statements of the course that nothing holds to be true: `lightspeed statements`.

A statement is a sentence that a learner reads and that compares, ranks or counts out: it matches
one of `TRIGGERS`. It is *bound* if a gate (`lightspeed_authoring.gates`) holds it to a
condition, *excused* if one gives a reason, else it is *open*. Questions and what begins with a word
of `DEMANDS` ("Find the largest number") state nothing.

Read are the Markdown and the strings of chapters and solutions, `because` and `sound` of the
gallery's entries, and prompts, options, hints and solutions of the questions. Explorers are
not: tests try every choice of their menus. `lightspeed check` fails on an open one of a page.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from lightspeed_authoring.gates import Gate, Sentence, held, occurs, refusal, sentences
from lightspeed_authoring.notebooks import label, read
from lightspeed_authoring.prose import strings

ROOT = Path(__file__).parents[2]

_N = r"""(?:\ufffc|\d[\d.,]*|two|three|four|five|six|seven|eight|nine|ten
          |a\ (?:dozen|hundred|thousand|million)|several|many)"""
_PART = r"(?:third|quarter|fifth|sixth|seventh|eighth|ninth|tenth|hundredth|thousandth)"
_LONGER = (
    r"(?:long|well|soon|far|yet|such|usual|before|above|here|if|though|it|they|we|you|a|an|the)"
)
TRIGGERS = {
    "than": r"(?<!other\ )(?<!rather\ )\bthan\b",
    "bound": r"\bat\ (?:most|least|best|worst)\b | \bno\ (?:more|fewer|less|later|longer)\b",
    "no": r"\b(?:no(?!\ (?:matter|doubt|overlap)\b)|none|never|nothing|nobody|nowhere|neither)\b",
    "all": (
        r"""(?<!first\ of\ )(?<!after\ )(?<!at\ )(?<!above\ )
              \ball\b(?!-|\ (?:that|you|at\ once|right|but|in\ all)\b)
              | \b(?:every(?!\ (?:so|now)\b)|everything(?!\ else)|everybody)\b
              | \b(?:always|whatever|whichever)\b"""
    ),
    "only": r"(?<!not\ )(?<!if\ )\bonly\b",
    "most": r"(?<!at\ )\b(?:most|mostly|majority|least|best|worst|almost\ (?:all|no|none))\b",
    "superlative": (
        r"""\b(?:near|large|small|fast|slow|cheap|high|low|bigg|great|few|wide|narrow
              |long|short|old|new|strong|weak|heavi|light|hard|easi|simpl|deep|tight|close|dear|hott|cold|rare|late|earli)e?st\b"""
    ),
    "factor": (
        rf"""\b(?:halve[sd]?|double[sd]?|twice|triples?d?|thrice|tenfold|squares)\b(?!_)
              | {_N}\ times\ (?:as|the|its|their|that|what|more|less|fewer|\w+er)\b
              | \b(?:half|a\ {_PART}|{_N}\ {_PART}s)\ (?:of|the|as|its|their|that)\b
              | {_N}\ orders\b | {_N}(?:\ ?×)"""
    ),
    "meets": (
        r"""\b(?:meets?|exceeds?|beats?|outweighs?|dominates?|surpass(?:es)?|outgrows?
              |overtakes?|wins?)\b"""
    ),
    "below": (
        rf"""\b(?:below|above|under)\b
              (?!\s*[.,;:)\]]|\s+(?:is|are|shows?|has|have|holds?|gives?|that|every)\b)
              | \bwithin\ (?:{_N}|a\ (?:factor|few)|its|reach|\w+\ (?:per\ cent|percent)
              |the\ (?:tolerance|limit|error|budget))"""
    ),
    "equal": (
        rf"""\b(?:equals?|identical)\b
              | \bas\ (?!{_LONGER}\b)\w+\ (?:\w+\ )?as\b(?!\ (?:possible|you)\b)
              | \bthe\ same\b[^.;:]*\bas\b"""
    ),
    "enough": (
        r"""\b(?:enough|suffices?)\b | \bfits?\ (?:in|into|on)\b
              | \b(?:must|not|n't|to|can|cannot|will|would|may)\ fit\b"""
    ),
    "comparison": (
        r"""\b(?:is|are|gets?|becomes?|grows?|runs?|stays?|lies|looks)\ (?:\w+\ )?
              (?:faster|slower|larger|smaller|bigger|higher|lower|cheaper|dearer|wider|narrower
              |longer|shorter|better|worse|stronger|weaker)\b"""
    ),
}
_TRIGGERS = {name: re.compile(pattern, re.I | re.X) for name, pattern in TRIGGERS.items()}
DEMANDS = (
    "add ask choose click commit compare compute convert count divide do draw explain find give "
    "guess imagine keep let look make mark measure move multiply name open plot predict press read "
    "run say see set show sketch start state suppose take tell think try turn use write"
)  # fmt: skip
_DEMAND = re.compile(rf"[*_“\"(]*(?:{'|'.join(DEMANDS.split())})\b", re.I)
OPEN, BOUND, EXCUSED = "open", "bound", "excused"


@dataclass(frozen=True)
class Statement:
    """A sentence, where it stands, what shows that it states something, and what holds it."""

    file: str
    place: str
    text: str
    trigger: str
    gate: Gate | None

    @property
    def state(self) -> str:
        return OPEN if self.gate is None else BOUND if self.gate.condition else EXCUSED

    def __str__(self) -> str:
        held_by = (
            ""
            if self.gate is None
            else f"\n    {self.state}: {self.gate.condition or self.gate.reason}"
        )
        return f"{self.file}:{self.place}: [{self.trigger}] {self.text}{held_by}"


def trigger(sentence: Sentence) -> str | None:
    """What makes a sentence a statement, the first of `TRIGGERS` in it, or None."""
    words = sentence.masked.strip()
    if words.endswith("?") or _DEMAND.match(words):
        return None
    return next(
        (
            f"{name}: {m[0].strip()}"
            for name, pattern in _TRIGGERS.items()
            if (m := pattern.search(words))
        ),
        None,
    )


def _stated(
    file: str, place: str | int, text: str, gates: Iterable[Gate] = ()
) -> Iterator[Statement]:
    """The statements of a text; `gates` are those that name their words.

    A number as `place` is the line on which the text begins.
    """
    for sentence in sentences(text):
        if found := trigger(sentence):
            own = [*sentence.gates, *(gate for gate in gates if occurs(gate.words, sentence.text))]
            gate = min(own, key=lambda g: not g.condition, default=None)
            where = str(place + sentence.line) if isinstance(place, int) else place
            yield Statement(file, where, sentence.text, found, gate)


def of_page(path: Path) -> list[Statement]:
    """The statements of a chapter's or a solution's script, in their order."""
    found = []
    for cell in read(path):
        line, source = cell.metadata.line, cell.metadata.written
        if cell.cell_type == "markdown":
            found += _stated(label(path), line, source)
        else:
            for at, text in strings(source):
                if re.search(r"[.!?][\"'”’)*_]*\s*\Z", text):  # a label is no sentence
                    found += _stated(label(path), str(line + at - 1), text, cell.metadata.gates)
    return found


def of_gallery(folder: Path = ROOT / "chapters") -> list[Statement]:
    """The statements of the gallery's rebuttals."""
    found = []
    for entry in tomllib.loads((folder / "gallery.toml").read_text("utf-8"))["claim"]:
        held_to = [
            (
                (words, "", text.removeprefix("because:").strip())
                if text.startswith("because:")
                else (words, text, "")
            )
            for words, text in entry.get("holds", {}).items()
        ]
        gates = list(
            _named(held_to, entry["because"] + entry["sound"], f"gallery.toml: {entry['id']}")
        )
        for part in ("because", "sound"):
            found += _stated("chapters/gallery.toml", f"{entry['id']}, {part}", entry[part], gates)
    return found


def of_question(question) -> list[Statement]:
    """The statements of a question; its solution is that of the canonical values."""
    texts = texts_of(question)
    held_to = [(words, "a function of the parameters", "") for words in question.holds]
    gates = list(_named(held_to, "\n".join(texts.values()), question.id))
    return [
        found
        for part, text in texts.items()
        for found in _stated(_file(question), f"{question.id}, {part}", text, gates)
    ]


def texts_of(question) -> dict[str, str]:
    """What a learner reads of a question: part -> text."""
    steps = question.solution
    if callable(steps):
        steps = steps(**question.variant().inputs())
    return {
        "prompt": question.prompt,
        **{f"option {key}": text for key, text in question.options.items()},
        **{f"hint on {m.name!r}": m.hint for m in question.misconceptions},
        "solution": getattr(steps, "words", steps),
    }


def false_statements(question, seeds: Iterable = (None, *range(20))) -> list[str]:
    """The statements of a question that do not hold for the variants of these seeds."""
    found = []
    for seed in seeds if question.holds else ():
        variant = question.variant(seed)
        for words, condition in question.holds.items():
            for sample in variant.samples:
                if not held(condition(**variant.inputs(sample))):
                    found.append(
                        f"{question.id}, seed {seed}, {dict(sample)}: does not hold: {words}"
                    )
    return found


def _named(held_to: list[tuple[str, str, str]], texts: str, where: str) -> Iterator[Gate]:
    """A gate for each (words, condition, reason); ValueError for words or reasons that are none."""
    for words, condition, reason in held_to:
        if not occurs(words, texts):
            raise ValueError(f"{where}: holds: no text of it has the words {words!r}")
        if not condition and (wrong := refusal(reason)):
            raise ValueError(f"{where}: holds: {words}: {wrong}")
        yield Gate(words, 0, condition, reason)


def _file(question) -> str:
    """The text that a question is in, as content/roofline.md."""
    return f"content/{question.id.partition('.')[0]}.md"


# --- the course ----------------------------------------------------------------------------------


@cache
def of_course(*names: str) -> dict[str, list[Statement]]:
    """The statements of each file; with names, of the files that have one of them in theirs."""
    from lightspeed_course.practice.questions import bank, topics

    def wanted(file: str) -> bool:
        return not names or any(name in file for name in names)

    scripts = [
        path
        for folder in ("chapters", "solutions")
        for path in sorted((ROOT / folder).glob("*.py"))
    ]
    found = {label(path): of_page(path) for path in scripts if wanted(label(path))}
    if wanted("chapters/gallery.toml"):
        found["chapters/gallery.toml"] = of_gallery()
    for question in (question for topic in topics() for question in bank(topic)):
        if wanted(_file(question)):
            found.setdefault(_file(question), []).extend(of_question(question))
    return found


def count(statements: list[Statement], state: str) -> int:
    return sum(each.state == state for each in statements)


def ungated(*names: str) -> list[str]:
    """The pages (of these names, or all) with open statements, one text each."""
    return [
        f"{file}: {n} statements that nothing holds: run `lightspeed statements {file}`, then "
        "write {{holds ...}} or {{because ...}} behind each"
        for file, found in of_course(*names).items()
        if not file.startswith("content/") and (n := count(found, OPEN))
    ]


def report(names: list[str], everything: bool = False) -> list[str]:
    """The open statements of the named files (all without names), and a table of counts.

    With `everything` those too that are bound or excused, each with what holds it.
    """
    chosen = of_course(*names)
    if not chosen:
        raise ValueError(
            f"no file of the course has {' or '.join(names)} in its name; "
            f"there are {', '.join(of_course())}"
        )
    listed = (s for found in chosen.values() for s in found if everything or s.state == OPEN)
    return [*map(str, listed), "", *counts(chosen)]


def counts(chosen: dict[str, list[Statement]]) -> list[str]:
    """A table: how many statements each file has, and how many are bound, excused and open."""
    rows = [[file, *(count(f, s) for s in (BOUND, EXCUSED, OPEN))] for file, f in chosen.items()]
    rows.append(["all", *(sum(row[i] for row in rows) for i in (1, 2, 3))])
    width = max(len(row[0]) for row in rows)
    return [
        f"{'':{width}}  statements  bound  excused  open",
        *(f"{f:{width}}  {b + e + o:10}  {b:5}  {e:7}  {o:4}" for f, b, e, o in rows),
    ]

"""Counts the statements of the course, and which of them nothing holds to be true:
`lightspeed statements`.

A statement is a sentence that a learner reads and that compares, ranks or counts out: it matches
one of `TRIGGERS`. It is *held* if a claim (`lightspeed_authoring.claims`) has its anchor in
it, and an anchor has what matched, and its “because” if it has one; one whose anchors have not what
matched is *loose*. Questions and what begins
with a word of `DEMANDS` ("Find the largest number") state nothing.

Read are the Markdown and the strings of chapters and solutions, `because` and `sound` of the
gallery's entries, hints, solutions and `why` of questions (a prompt assumes, and all options but
one are false), and, outside the pages, README, docs and the strings of `ROOMS`. Those have their
claims in tests/notebooks/outside.py, or a test that shows what they say:

    @pytest.mark.holds("docs/teach.md", "words of the page", "words of another sentence")
"""

import ast
import re
import tomllib
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from lightspeed_authoring.claims import claims
from lightspeed_authoring.notebooks import label, read
from lightspeed_authoring.prose import strings
from lightspeed_authoring.sentences import Sentence, occurs, plain, sentences
from lightspeed_show.bound import held

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
        r"""(?<!first\ of\ )(?<!after\ )(?<!at\ )(?<!above\ )(?<!-)
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
    "run say see set show sketch start state suppose take tell think try turn use watch write"
)  # fmt: skip
_read: Counter[tuple[str, str, str]] = Counter()  # every sentence that was looked at
_DEMAND = re.compile(rf"[*_“\"(]*(?:{'|'.join(DEMANDS.split())})\b", re.I)
_CAUSE = re.compile(r"\b(?:because|which is why|that is why)\b", re.I)
# Pages whose loose sentences are only counted, until they are written anew.
LATER = tuple(f"chapters/{chapter}" for chapter in ("04", "05", "06", "09", "10"))
# The rooms of the library whose strings a user reads.
ROOMS = ("evidence", "measure", "incidents", "explorers", "nccl", "practice")


@dataclass(frozen=True)
class Statement:
    """A sentence, where it stands, what shows that it states something, and whether it is held;
    `loose` if its anchors leave out what makes it a statement.
    """

    file: str
    place: str
    text: str
    trigger: str
    held: bool
    loose: bool = False

    def __str__(self) -> str:
        state = "held" if self.held else "loose" if self.loose else self.trigger
        return f"{self.file}:{self.place}: [{state}] {self.text}"


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
    file: str, place: str | int, text: str, anchors: Collection[str] = ()
) -> Iterator[Statement]:
    """The statements of a text; a number as `place` is the line on which the text begins."""
    for sentence in sentences(text):
        _read[file, str(place), sentence.text] += 1
        if why := trigger(sentence):
            where = str(place + sentence.line) if isinstance(place, int) else place
            own = [words for words in anchors if occurs(words, sentence.text)]
            stated = any(_has_trigger(words, sentence) for words in own)
            # A cause is held by an anchor that has it, and so by a condition that is about it.
            is_held = stated and (
                not _CAUSE.search(sentence.masked) or any(map(_CAUSE.search, own))
            )
            yield Statement(file, where, sentence.text, why, is_held, bool(own) and not stated)


def _has_trigger(anchor: str, sentence: Sentence) -> bool:
    """Whether an anchor has one of the words that make a sentence a statement."""
    words = plain(" ".join(part.masked for part in sentences(anchor)) or anchor).lower()
    return any(
        match[0].strip().lower() in words
        for pattern in _TRIGGERS.values()
        for match in pattern.finditer(sentence.masked)
    )


def _stated_in_strings(
    file: str, line: int, source: str, anchors: Collection[str] = (), docstrings: bool = True
) -> Iterator[Statement]:
    """The statements of the strings of Python code that begins on this line."""
    for at, text in strings(source, docstrings):
        if re.search(r"[.!?][\"'”’)*_]*\s*\Z", text):  # a label is no sentence
            yield from _stated(file, str(line + at - 1), text, anchors)


def of_page(path: Path) -> list[Statement]:
    """The statements of a chapter's or a solution's script, in their order."""
    result = []
    for cell in read(path):
        reader = _stated if cell.cell_type == "markdown" else _stated_in_strings
        anchors = [claim.anchor for claim in claims(cell.metadata.holds)]
        result += reader(label(path), cell.metadata.line, cell.source, anchors)
    return result


def loose_anchors(paths: Iterable[Path]) -> list[str]:
    """The sentences of pages whose anchors leave out what makes them statements, a fault each."""
    return [
        f"{one.file}:{one.place}: no anchor has the words {one.trigger.partition(': ')[2]!r} of"
        f" “{one.text}”: widen one to what is compared, if its condition implies that"
        for path in paths
        if not label(path).startswith(LATER)
        for one in of_page(path)
        if one.loose
    ]


_QUANTIFIER = re.compile(
    r"(?<!\bat )(?<!\bin )(?<!nearly )(?<!almost )(?<!-)\b"
    r"(?:all|every|always|whatever|whichever|only|never|nobody|no (?:other|two|one))\b(?!-)",
    re.I,
)
# What a condition says of more than one case, or of a whole: a loop, a set, an equality of both.
_OVER = {"all", "any", "max", "min", "sorted", "set", "sum", "len", "abs", "isclose"}
_LOOPS = (ast.GeneratorExp, ast.ListComp, ast.SetComp, ast.DictComp, ast.Set)


def unquantified(paths: Iterable[Path]) -> list[str]:
    """The anchors with a quantifier whose condition has none, a fault each."""
    return [
        f"{label(path)}:{cell.metadata.holds_line + claim.line}: {match[0]!r} of"
        f" “{claim.anchor}” is held by one case: assert it of each, all(... for ...), or narrow it"
        for path in paths
        if not label(path).startswith(LATER)
        for cell in read(path)
        for claim in claims(cell.metadata.holds or "")
        if (match := _QUANTIFIER.search(re.sub(r"\{\{.*?\}\}", "", claim.anchor)))
        and not _over_cases(claim.tree, cell.metadata.holds)
    ]


def _over_cases(condition: ast.expr, source: str) -> bool:
    """Whether a condition, or what its cell assigns for it, says something of several cases."""
    used = {node.id for node in ast.walk(condition) if isinstance(node, ast.Name)}
    own = [
        node.value
        for node in ast.parse(source).body
        if isinstance(node, ast.Assign)
        and used & {name.id for name in ast.walk(node) if isinstance(name, ast.Name)}
    ]
    return any(
        isinstance(node, _LOOPS)
        or (isinstance(node, ast.Compare) and _of_a_whole(node))
        or (isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] in _OVER)
        for tree in (condition, *own)
        for node in ast.walk(tree)
    )


def _of_a_whole(node: ast.Compare) -> bool:
    return any(isinstance(sign, ast.Eq | ast.In | ast.NotIn) for sign in node.ops)


def of_gallery(folder: Path = ROOT / "chapters") -> list[Statement]:
    """The statements of the gallery's rebuttals."""
    result = []
    for entry in tomllib.loads((folder / "gallery.toml").read_text("utf-8"))["claim"]:
        anchors = entry.get("holds", {})
        _refuse_stray(anchors, entry["because"] + entry["sound"], f"gallery.toml: {entry['id']}")
        for part in ("because", "sound"):
            where = f"{entry['id']}, {part}"
            result += _stated("chapters/gallery.toml", where, entry[part], anchors)
    return result


def of_question(question) -> list[Statement]:
    """The statements of a question; its solution is that of the canonical values."""
    texts = texts_of(question)
    anchors = list(question.holds)
    every = [question.prompt, *question.options.values(), *texts.values()]
    _refuse_stray(question.holds, "\n".join(every), question.id)
    return [
        statement
        for part, text in texts.items()
        for statement in _stated(_file(question), f"{question.id}, {part}", text, anchors)
    ]


def outside(folder: Path = ROOT) -> dict[str, str]:
    """What holds the words outside the pages: file or room -> its cell, as under a `holds` tag."""
    file = folder / "tests/notebooks/outside.py"
    parts = re.split(r"(?m)^# %% (.+)\n", file.read_text("utf-8")) if file.exists() else []
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def held_by_tests(folder: Path = ROOT) -> dict[str, list[str]]:
    """The words that tests hold: file or room -> words, by their marks `holds`."""
    words_of: dict[str, list[str]] = {}
    for path in sorted(folder.glob("tests/**/test_*.py")):
        if ".holds(" not in (source := path.read_text("utf-8")):
            continue
        for node in ast.walk(ast.parse(source)):
            for mark in getattr(node, "decorator_list", ()):
                if ast.unparse(mark).startswith("pytest.mark.holds("):
                    name, *words = map(ast.literal_eval, mark.args)
                    words_of.setdefault(name, []).extend(words)
    return words_of


def of_outside(folder: Path = ROOT) -> dict[str, list[Statement]]:
    """The statements of README, docs and `ROOMS`: file or room -> statements, in their order."""
    anchors = held_by_tests(folder)
    for name, source in outside(folder).items():
        anchors.setdefault(name, []).extend(claim.anchor for claim in claims(source))
    result = {}
    for path in (folder / "README.md", *sorted(folder.glob("docs/**/*.md"))):
        name = str(path.relative_to(folder))
        result[name] = list(_stated(name, 1, path.read_text("utf-8"), anchors.get(name, ())))
    for room in ROOMS:
        result[room] = []
        for path in sorted(folder.glob(f"lib/*/{room}/**/*.py")):
            name, source = str(path.relative_to(folder)), path.read_text("utf-8")
            result[room] += _stated_in_strings(name, 1, source, anchors.get(room, ()), False)
    return result


def texts_of(question) -> dict[str, str]:
    """What the course says to be so in a question: part -> text."""
    steps = question.solution
    if callable(steps):
        steps = steps(**question.variant().inputs())
    return {
        **{f"hint on {m.name!r}": m.hint for m in question.misconceptions},
        "solution": getattr(steps, "words", steps),
        "why": question.why,
    }


def false_statements(question, seeds: Iterable = (None, *range(20))) -> list[str]:
    """The statements of a question that do not hold for the variants of these seeds."""
    faults = []
    for seed in seeds if question.holds else ():
        variant = question.variant(seed)
        for words, condition in question.holds.items():
            for sample in variant.samples:
                if not held(condition(**variant.inputs(sample))):
                    faults.append(
                        f"{question.id}, seed {seed}, {dict(sample)}: does not hold: {words}"
                    )
    return faults


def _refuse_stray(anchors: Iterable[str], texts: str, where: str) -> None:
    """ValueError for an anchor that stands in none of the texts."""
    for words in anchors:
        if not occurs(words, texts):
            raise ValueError(f"{where}: holds: no text of it has the words {words!r}")


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
    by_file = {label(path): of_page(path) for path in scripts if wanted(label(path))}
    if wanted("chapters/gallery.toml"):
        by_file["chapters/gallery.toml"] = of_gallery()
    for question in (question for topic in topics() for question in bank(topic)):
        if wanted(_file(question)):
            by_file.setdefault(_file(question), []).extend(of_question(question))
    by_file |= {name: statements for name, statements in of_outside().items() if wanted(name)}
    return by_file


def all_sentences() -> int:
    """How many sentences a learner reads in the course, whether they state anything or not."""
    _read.clear()  # of what else was looked at before
    of_course.cache_clear()
    of_course()
    return len(_read)


def report(names: list[str], everything: bool = False) -> list[str]:
    """The statements of the named files (all without names) that nothing holds, and a table of
    counts. With `everything` the held ones too.
    """
    by_file = of_course(*names)
    if not by_file:
        raise ValueError(
            f"no file of the course has {' or '.join(names)} in its name; "
            f"there are {', '.join(of_course())}"
        )
    statements = (s for group in by_file.values() for s in group if everything or not s.held)
    return [*map(str, statements), "", *counts(by_file)]


def counts(by_file: dict[str, list[Statement]]) -> list[str]:
    """A table: how many statements each file makes, and how many of them a claim holds."""
    rows = [(file, len(group), sum(s.held for s in group)) for file, group in by_file.items()]
    rows.append(("all", sum(row[1] for row in rows), sum(row[2] for row in rows)))
    width = max(len(row[0]) for row in rows)
    return [
        f"{'':{width}}  statements  held  not held",
        *(f"{file:{width}}  {n:10}  {k:4}  {n - k:8}" for file, n, k in rows),
    ]

"""Questions as text: a Markdown file a topic, whose formulas are Python.

    ## network.copy_time

    - level: apply
    - unit: s
    - `size = given(2, 1, 2, 8, unit="GB")`
    - `link = given(50, 25, 50, unit="GB/s")`

    A link carries {{link}}. How long does a copy of {{size}} take?

    1. The bytes over what the link carries.
       `size / link == roofline.transfer_time(size, link)`

    - **upside down** `link / size`
      Is that a time?

After the facts and parameters come the prompt, the `key` and text of each option, the steps of the
solution, a remark, the misconceptions, `assert`s that hold its sentences to be true, and in a
quotation what learners answered. The last step is the answer, by the law behind `==` where there is
one, unless `answer:` says another. A step may name its result, which later formulas take, and have
lines `name = expression` for what its formula calls otherwise; `[byte]` behind a value is its unit.
A step without words is Python that gives steps. Formulas know the parameters in SI, the results,
the library's modules, the verbs of `parameters.py`, and the Python file of the same name.

`questions.load` reads a file of one's own. An error, QuestionError, names file, line and what is
expected.
"""

import ast
import re
from dataclasses import dataclass, field

from lightspeed.errors import did_you_mean

FACTS = (
    *("chapter", "level", "kind", "unit", "tolerance", "names", "edges", "valid", "answer"),
    *("smaller", "rests", "why"),
)
CODES = re.compile(r"(?:^|(?<=\n))(?:`[^`]+`(?:\n|\Z))+\Z")
MISCONCEPTION = re.compile(r"\*\*(.+?)\*\*( \(slight\))?\s*`([^`]+)`\s*(.+)\Z", re.S)
OPTION = re.compile(r"`(\w+)`:?\s+(.+)\Z", re.S)
MET = re.compile(r"`([^`]+)`\s+([^:]+):\s+(.+?)\s+→\s+`([^`]+)`\Z", re.S)


class QuestionError(ValueError):
    """A question that cannot be read: file, line and what is expected."""

    def __init__(self, file, line, reason):
        super().__init__(f"{file}:{line}: {reason}")


@dataclass
class Text:
    """What a file says of one question, nothing of it evaluated; each part with its line."""

    id: str
    line: int
    facts: dict = field(default_factory=dict)  # key -> (value, line)
    parameters: dict = field(default_factory=dict)  # name -> (Python, line)
    prompt: str = ""
    options: dict = field(default_factory=dict)
    steps: list = field(default_factory=list)  # (words, lines of Python, line)
    after: str = ""
    misconceptions: list = field(default_factory=list)  # (name, slight, Python, hint, line)
    holds: list = field(default_factory=list)  # (words, Python, line)
    right: list = field(default_factory=list)  # honest answers of learners
    wrong: list = field(default_factory=list)  # (answer, class, mistake, pattern)


# --- Markdown ------------------------------------------------------------------------------------


def read(text, file):
    """The questions that a text has, each as a `Text`. `file` is its name in errors."""
    found, facts = [], {}
    for kind, block, line in _blocks(text):
        try:
            if kind == "h2":
                found.append(Text(block, line, dict(facts)))
            elif re.fullmatch("h[3-6]", kind):
                raise ValueError(f"{block!r}: a question begins with two signs, as ## network.copy")
            elif found:
                _take(found[-1], kind, block, line)
            elif kind == "bullets":
                facts = {_fact(item)[0]: (_fact(item)[1], at) for item, at in block}
        except ValueError as error:
            raise QuestionError(file, getattr(error, "line", line), error) from None
    if not found:
        raise QuestionError(file, 1, "no question: one begins with a line such as ## network.copy")
    return found


def _blocks(text):
    """(kind, content, line) of each block: of a list the items with their lines, else the text."""
    from markdown_it import MarkdownIt

    reader, tokens, lines = MarkdownIt("commonmark"), [], text.split("\n")
    reader.block.parse(text, reader, {}, tokens)
    for at, token in enumerate(tokens):
        if token.level or not token.map:
            continue
        line = token.map[0] + 1
        source = "\n".join(lines[token.map[0] : token.map[1]]).rstrip()
        if token.type in ("bullet_list_open", "ordered_list_open"):
            items = [
                n
                for n in range(at, _end(tokens, at))
                if tokens[n].type == "list_item_open" and tokens[n].level == 1
            ]
            block = [(tokens[n + 2].content, tokens[n].map[0] + 1) for n in items]
            yield token.type.split("_")[0].replace("bullet", "bullets"), block, line
        elif token.type == "heading_open":
            yield token.tag, tokens[at + 1].content, line
        elif token.type == "blockquote_open":
            inside = tokens[at : _end(tokens, at)]
            yield "quote", [(t.content, t.map[0] + 1) for t in inside if t.type == "inline"], line
        elif token.type != "html_block" and token.nesting >= 0:
            kind = "asserts" if re.match(r"```python\n\s*assert\b", source) else "words"
            yield kind, _joined(source) if token.type == "paragraph_open" else source, line


def _end(tokens, start):
    return next(n for n in range(start + 1, len(tokens)) if tokens[n].level == 0)


def _take(into, kind, block, line):
    """Put a block where its place among the others says that it belongs."""
    if kind == "bullets":
        for text, at in block:
            _item(into, text, at)
    elif kind == "ordered":
        into.steps += [(*_step(text), at) for text, at in block]
    elif kind == "words" and not into.misconceptions:
        part = "after" if into.steps else "prompt"
        setattr(into, part, "\n\n".join(filter(None, (getattr(into, part), block))))
    elif kind == "asserts":
        body = block.removeprefix("```python\n").removesuffix("```")
        for node in ast.parse(body).body:
            if not (isinstance(node, ast.Assert) and isinstance(node.msg, ast.Constant)):
                raise ValueError('expected assert CONDITION, "words of the question"')
            into.holds.append((node.msg.value, ast.unparse(node.test), line + node.lineno))
    elif kind == "quote":
        for text, _ in block:
            if text.startswith("Right:"):
                into.right += [ast.literal_eval(a) for a in re.findall(r"`([^`]+)`", text)]
            elif met := MET.match(text):
                answer, of, mistake = map(_joined, met.groups()[:3])
                into.wrong.append((ast.literal_eval(answer), of, mistake, _line(met[4])))
            else:
                raise ValueError(
                    "expected Right: `answer`, … or - `answer` class: mistake → `says`"
                )
    else:
        raise ValueError('expected assert CONDITION, "words of the question", or a quotation')


def _item(into, text, line):
    if met := MISCONCEPTION.match(text):
        name, slight, python, hint = met.groups()
        into.misconceptions.append((name, bool(slight), _joined(python), _joined(hint), line))
    elif text.startswith("`") and (named := re.match(r"`(\w+)\s+=\s+([^`]+)`\Z", text)):
        into.parameters[named[1]] = (_joined(named[2]), line)
    elif met := OPTION.match(text):
        into.options[met[1]] = _joined(met[2])
    else:
        key, value = _fact(text)
        into.facts[key] = (value, line)


def _fact(text):
    key, colon, value = text.partition(":")
    if not colon or key not in FACTS:
        meant = did_you_mean(key, FACTS) or f"There are {', '.join(FACTS)}."
        raise ValueError(
            f"{text.splitlines()[0]!r}: expected - key: value, - `name = given(...)`, - `key`: an "
            f"option, or - **misconception** `Python` and a hint. {meant}"
        )
    code = re.fullmatch(r"`([^`]+)`", value.strip())
    return key, _joined(code[1] if code else value)


def _step(text):
    codes = CODES.search(text)
    lines = [_joined(c) for c in re.findall(r"`([^`]+)`", codes[0])] if codes else []
    return _joined(text[: codes.start()] if codes else text), lines


def _joined(text):
    return _line(text.strip())


def _line(text):
    return re.sub(r"\s*\n\s*", " ", text)

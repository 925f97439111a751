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
quotation what learners answered. Behind the name of a misconception stands `(slight)` if it is
within the tolerance of some numbers, and `(also)` if it comes to the same as another: a learner is
told both. The last step is the answer, by the law behind `==` where there is one, unless `answer:`
says another. A step may name its result, which later formulas take, and have lines
`name = expression` for what its formula calls otherwise; `[byte]` behind a value is its unit. A
step without words is Python that gives steps. Formulas know the parameters in SI, the results, the
library's modules, the verbs of `parameters.py`, and the Python file of the same name.

`questions.load` reads a file of one's own. An error, QuestionError, names file, line and what is
expected, of all faults at once.
"""

import ast
import re
from dataclasses import dataclass, field
from typing import Any

from lightspeed.errors import did_you_mean, nearest

FACTS = (
    *("chapter", "level", "kind", "unit", "tolerance", "names", "edges", "valid", "answer"),
    *("smaller", "rests", "why"),
)
FORMULAS = ("edges", "valid", "answer")  # of these, what is Python
CODES: Any = re.compile(r"(?:(?:^|(?<=\n))(?:`[^`]+`(?:\n|\Z))+)?\Z")
MISCONCEPTION = re.compile(
    r"\*\*(.+?)\*\*(?: \((slight|also|slight, also)\))?\s*`([^`]+)`\s*(.+)\Z", re.S
)
PARAMETER = re.compile(r"`(\w+)\s+=\s+([^`]+)`\Z")
OPTION = re.compile(r"`(\w+)`:?\s+(.+)\Z", re.S)
MET = re.compile(r"`([^`]+)`\s+([^:]+):\s+(.+?)\s+→\s+`([^`]+)`\Z", re.S)


class QuestionError(ValueError):
    """Questions that cannot be read: for each fault file, line and what is expected, a line each.

    `faults` are (line, reason), in the order of the file.
    """

    def __init__(self, file, *faults):
        self.file, self.faults = file, sorted(dict.fromkeys(faults), key=lambda fault: fault[0])
        super().__init__("\n".join(f"{file}:{line}: {reason}" for line, reason in self.faults))


class Misnamed(ValueError):
    """A fact under another name: what it would be under the nearest."""

    def __init__(self, reason, key, value):
        super().__init__(reason)
        self.key, self.value = key, value


class Faults(list):
    """Gathers the faults of parts that do not rest on each other: `with faults: ...`."""

    def __init__(self, file):
        super().__init__()
        self.file, self.broken = file, set()  # ids of questions that lack a part

    def __enter__(self):
        return self

    def __exit__(self, kind, error, traceback):
        if isinstance(error, QuestionError):
            self += error.faults
        return isinstance(error, QuestionError)

    def refuse(self):
        """Raise them together, if there are any."""
        if self:
            raise QuestionError(self.file, *self) from None


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
    misconceptions: list = field(default_factory=list)  # (name, mark or '', Python, hint, line)
    holds: list = field(default_factory=list)  # (words, Python, line)
    right: list = field(default_factory=list)  # honest answers of learners
    wrong: list = field(default_factory=list)  # (answer, class, mistake, pattern)


def read(text, file):
    """The questions that a text has, each as a `Text`. `file` is its name in errors."""
    questions, faults = parts(text, file)
    faults.refuse()
    return questions


def parts(text, file):
    """(questions, faults) of a text. What cannot be read is replaced by what has its name, and the
    question is among `faults.broken`; it is left out where what rests on it cannot be told.
    """
    questions, facts, faults, bad = [], {}, Faults(file), set()
    for kind, block, line in _blocks(text):
        try:
            if kind == "h2":
                questions.append(Text(block, line, dict(facts)))
            elif re.fullmatch("h[3-6]", kind):
                raise ValueError(f"{block!r}: a question begins with two signs, as ## network.copy")
            elif questions:
                _take(questions[-1], kind, block, line)
            elif kind == "bullet":
                key, value = _fact(block)
                facts[key] = value, line
        except Misnamed as error:  # read on as if it were right
            faults.append((line, str(error)))
            (questions[-1].facts if questions else facts)[error.key] = error.value, line
        except (SyntaxError, ValueError) as error:
            code = (error.text or "").strip() if isinstance(error, SyntaxError) else ""
            why = f"{code!r} is not Python: {error.args[0]}" if code else str(error)
            faults.append((line, why))
            if kind in ("asserts", "quote") or block[:2] == "**":
                continue  # nothing rests on it
            if questions and _stand_in(questions[-1], kind, block, line):
                faults.broken.add(questions[-1].id)
            else:
                bad.add(len(questions))
    if not questions and not faults:
        faults.append((1, "no question: one begins with a line such as ## network.copy"))
    # What stands above the first question is of all.
    return [q for n, q in enumerate(questions, 1) if not {0, n} & bad], faults


def _stand_in(into, kind, block, line):
    """Put a number in place of a parameter or step that cannot be read; whether it was one."""
    name = re.search(r"(?:^|;)\s*(\w+)\s*=(?!=)", block.partition("`")[2].partition("`")[0])
    if kind == "ordered":
        into.steps.append((block, [f"{name[1]} = 1" if name else "1"], line))
    elif name:
        into.parameters[name[1]] = "given(1)", line
    return kind == "ordered" or name


def _blocks(text):
    """(kind, text, line) of each block, of each item of a list, and of each part of a quotation."""
    from markdown_it import MarkdownIt
    from markdown_it.tree import SyntaxTreeNode

    reader, tokens, lines = MarkdownIt("commonmark"), [], text.split("\n")
    reader.block.parse(text, reader, {}, tokens)
    document: Any = SyntaxTreeNode(tokens)
    for node in document.children:
        start, end = node.map
        source = "\n".join(lines[start:end]).rstrip()
        match node.type:
            case "bullet_list" | "ordered_list" as kind:
                for item in node.children:
                    texts = [part.content for part in item.walk() if part.type == "inline"]
                    yield kind.removesuffix("_list"), (texts or [""])[0], item.map[0] + 1
            case "heading":
                yield node.tag, node.children[0].content, start + 1
            case "blockquote":
                for part in node.walk():
                    if part.type == "inline":
                        yield "quote", part.content, part.map[0] + 1
            case "fence" if re.match(r"```python\n\s*assert\b", source):
                yield "asserts", source, start + 1
            case "paragraph":
                yield "words", _joined(source), start + 1
            case kind if kind != "html_block":
                yield "words", source, start + 1


def _take(into, kind, block, line):
    """Put a block where its place among the others says that it belongs."""
    match kind:
        case "bullet":
            _item(into, block, line)
        case "ordered":
            codes = CODES.search(block)[0]
            words, python = _joined(block.removesuffix(codes)), re.findall(r"`([^`]+)`", codes)
            lines = python if words else filter(None, [" ".join(python)])
            into.steps.append((words, [_formula(each, bool(words)) for each in lines], line))
        case "words" if not into.misconceptions:
            part = "after" if into.steps else "prompt"
            setattr(into, part, "\n\n".join(filter(None, (getattr(into, part), block))))
        case "asserts":
            body = block.removeprefix("```python\n").removesuffix("```")
            for node in ast.parse(body).body:
                if not (isinstance(node, ast.Assert) and isinstance(node.msg, ast.Constant)):
                    raise ValueError('expected assert CONDITION, "words of the question"')
                into.holds.append((node.msg.value, ast.unparse(node.test), line + node.lineno))
        case "quote" if block.startswith("Right:"):
            into.right += [ast.literal_eval(answer) for answer in re.findall(r"`([^`]+)`", block)]
        case "quote" if match := MET.match(block):
            answer, of, mistake = map(_joined, match.groups()[:3])
            into.wrong.append((ast.literal_eval(answer), of, mistake, _line(match[4])))
        case "quote":
            raise ValueError("expected Right: `answer`, … or - `answer` class: mistake → `says`")
        case _:
            raise ValueError('expected assert CONDITION, "words of the question", or a quotation')


def _item(into, text, line):
    if match := MISCONCEPTION.match(text):
        name, mark, python, hint = match.groups()
        into.misconceptions.append((name, mark or "", _formula(python), _joined(hint), line))
    elif match := PARAMETER.match(text):
        into.parameters[match[1]] = _formula(match[2]), line
    elif match := OPTION.match(text):
        into.options[match[1]] = _joined(match[2])
    else:
        key, value = _fact(text)
        into.facts[key] = value, line


def _fact(text):
    key, colon, value = text.partition(":")
    if not colon or key not in FACTS:
        hint = did_you_mean(key, FACTS) or f"There are {', '.join(FACTS)}."
        first = text.partition("\n")[0]
        reason = (
            f"{first!r}: expected - key: value, - `name = given(...)`, - `key`: an option, or - "
            f"**misconception** `Python` and a hint. {hint}"
        )
        near = nearest(key, FACTS) if colon else None
        raise Misnamed(reason, *_fact(f"{near}:{value}")) if near else ValueError(reason)
    code = re.fullmatch(r"`([^`]+)`", value.strip())
    value = _joined(code[1] if code else value)
    return key, _formula(value) if key in FORMULAS else value


def _formula(python, naming=False):
    """Python of one line; what is neither a formula nor, if `naming`, name = formula is refused."""
    python = _joined(python)
    match ast.parse(python).body:
        case [ast.Expr(tree)] if not isinstance(tree, ast.Starred):
            return python
        case [ast.Assign([ast.Name()])] if naming:
            return python
    also = ", or name = formula" if naming else ""
    raise ValueError(f"{python!r}: expected a formula{also}")


def _joined(text):
    return _line(text.strip())


def _line(text):
    return re.sub(r"\s*\n\s*", " ", text)

"""Numbers in prose: bound to an expression (lightspeed_show.bound), or refused.

`typed_numbers` and `typed_in_code` find what was typed instead of bound. All that a reader sees
counts: prose, headings, tables, inline code, LaTeX, alt text, captions, labels and comments in
code.

Refused   two or more digits; a decimal point; a power of ten; a single digit with a unit, a percent
          sign or a factor; a number that is the whole of a table cell; an expression that only
          formats a literal.
Allowed   names (H100, bf16, v5e, PCIe 5, NVLink 4, names in the catalog), chapter and question
          numbers, years of citations, dates, link targets, identifiers, coefficients of one digit
          (2BDF, 1/2, 2 × B), number words.
"""

import ast
import io
import re
import tokenize
import tomllib
from collections.abc import Iterator
from functools import cache
from importlib.resources import files

from lightspeed_show.bound import BRACES, split

# --- what counts as a typed number ----------------------------------------------------------------

_UNIT = r"""(?:
    (?:[kKMGTPE]i?)? (?: B|b|[Bb]ytes?|[Bb]its?|bps|FLOPs?|FLOPS|OPs?|OPS|ops?|Hz|Wh?|J|T/s )
  | [mµμunpfk]? (?: s|J|W|m|sec )
  | (?:nano|micro|milli|pico|kilo|mega|giga|tera|peta|exa)[a-z]+ | [kKMGT]
  | [Ss]econds?|minutes?|min|hours?|h|days?|weeks?|months?|years?|cycles?|decades?
  | tokens?|param(?:eter)?s?|GPUs?|TPUs?|CPUs?|chips?|cores?|nodes?|ranks?|devices?|hosts?
  | layers?|heads?|experts?|requests?|queries|users?|(?:[AHBV]|GB|GH|MI)\d{2,3}X?s?
  | elements?|weights?|dollars?|USD|cents?|percent|per\s+cent|percentage
  | thousand|million|billion|trillion|dozen
  | orders?\s+of\s+magnitude|times|fold|°C? ) (?![A-Za-z0-9_])"""
# emphasis or a space between a number and its unit
_GAP = r"[*_`)]*(?:[\s\u00a0\u2009\u202f~-]|\\[,;:\ ])?[*_`]*"
# B, \text{...}, batch_size
_SYMBOL = r"(?:(?![aI]\b)[A-Za-zα-ωΑ-Ω](?![A-Za-z0-9])|\\[A-Za-z]+|[A-Za-z]\w*_\w+)"
_TIMES = r"(?:×|\$\\times\$|x(?![A-Za-z0-9_]))"
_NUMBER = re.compile(
    r"(?<![\w\ufffc])(?<!\w\.)(?:(?:\d{1,3}(?:(?:,|\{,\}|[\u2009\u202f])\d{3})+|\d+)(?:\.\d+)?|\.\d+|[¼½¾⅓⅔⅛⅜⅝⅞])"
    r"(?:[eE][+-]?\d+(?![A-Za-z]))?"
)
_AFTER = re.compile(
    rf"(?:{_GAP}(?:\\?%|{_UNIT})(?!\s?[·*]\s?[A-Z]) | {_GAP}{_TIMES}(?!\s*{_SYMBOL}) |"
    r" [⁰¹²³⁴⁵⁶⁷⁸⁹⁻]+)",
    re.X,
)
_MATH_AFTER = re.compile(
    r"(?:\s|~|\\[,;:!\ ]|[{}])*(?:\\?% |"
    rf" \\(?:text|mathrm|mathsf|textrm|operatorname)\s*\{{[\s~\\,]*{_UNIT}"
    rf"| (?:×|\\times\b)(?!\s*{_SYMBOL}))",
    re.X,
)
_BEFORE = re.compile(
    rf"(?P<symbol>{_SYMBOL})?\s*(?:×|\\times)\s*$ | \\?[$€£]\s?$ | \bfactors?\s(?:of\s)?$", re.X
)
_THAN = r"(?:faster|slower|more|less|fewer|bigger|larger|smaller|cheaper|higher|lower)"
_FACTOR = re.compile(rf"(?<![\w])x\d+(?=\s+{_THAN})|(?<![\w])x\d\d+\b")

_YEAR = r"(?:19[5-9]\d|20[0-3]\d)"
_MONTH = r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]*\.?"
_NOT_QUANTITY = rf"(?![\d.,]*\d)(?!{_GAP}(?:%|×|x\b|{_UNIT}))"
_FAMILY = (
    r"(?:PCIe|PCI\ Express|NVLink|NVSwitch|Gen|CUDA|Python|USB|HBM|DDR|LPDDR|GDDR"
    r"|Llama|GPT|Qwen|Gaudi|Trainium|Zen)"
)
_TAG = (
    r"</?(?:a|abbr|b|br|center|code|details|div|em|figcaption|figure|h[1-6]|hr|i|img|kbd|li|mark"
    r"|ol|p|pre|small|span|strong|sub|summary|sup|table|tbody|td|th|thead|tr|u|ul)"
    r"""(?:\s+[A-Za-z][\w:-]*(?:\s*=\s*(?:"[^"]*"|'[^']*'|[^\s"'>]+))?)*\s*/?>"""
)
_SEEN_ATTRIBUTE = re.compile(r"""\b(?:alt|title|aria-label)\s*=\s*(?:"([^"]*)"|'([^']*)')""")

# What is not a quantity, by pattern. A match is blanked before numbers are looked for.
_NAMES = [
    re.compile(pattern, re.X | re.M)
    for pattern in (
        r"<!--[\s\S]*?-->",
        # the target of a link or an image; its title and alt text stay
        r"(?<=\]\()\s*<?[^\s)>]+>?",
        r"^\s*\[[^\]]+\]:\s+\S+",
        r"\b(?:https?://|doi:|arXiv:)[^\s)>\]]+ | \b10\.\d{4,}/[^\s)>\]]+",
        r"&\#?\w+;",
        r"\[\^\w+\]",
        r"^\s*(?:\#+\s+)?\d{1,2}(?:\.\d{1,2})*[.)]\s",  # numbered lists, numbered headings
        r"^\#+\s+\d{1,2}(?:\.\d{1,2})*\s",
        rf"""\b(?:[Cc]hapter|[Ll]esson|[Ss]ection|[Ss]ec\.|[Pp]art|[Qq]uestion|[Pp]roblem|[Ee]xercise
             |[Ff]igure|[Ff]ig\.|[Tt]able|[Ee]quation|[Ee]q\.|[Ss]tep|[Aa]ppendix|[Pp]age|pp?\.|[Vv]ol\.|[Vv]olume|[Ii]ssue|[Ll]ab)s?
             \s+\d{{1,3}}(?:\.\d+)*
             (?:(?:,\s|\sand\s|\sto\s|[-–]|,\sand\s)\d{{1,3}}(?:\.\d+)*{_NOT_QUANTITY})*
             {_NOT_QUANTITY}
          | §+\s?\d+(?:\.\d+)*""",
        # DDR5-6400, GPT-3, A100-80GB: the head has two capitals or a digit
        r"\b(?:[A-Z]{2,}[A-Za-z0-9]*|[A-Z][A-Za-z]*\d[A-Za-z0-9]*)(?:-[A-Za-z0-9]+)*-\d+[A-Za-z]*\b",
        (
            rf"\b{_FAMILY}[\ -]?\d{{1,2}}(?:\.\d{{1,2}}){{0,2}}[A-Za-z]?"
            rf"(?:\s[x×](?:1|2|4|8|16)\b)?{_NOT_QUANTITY}"
        ),
        r"\b\d{4}-\d{2}-\d{2}\b",
        rf"\b(?:\d{{1,2}}\s+)?{_MONTH}\s+(?:\d{{1,2}},\s+)?{_YEAR}\b",
        (
            rf"\({_YEAR}[a-d]?\) | (?<=[A-Za-z.&]\s){_YEAR}[a-d]?(?=[;)]) |"
            rf" (?<=[A-Za-z.],\s){_YEAR}[a-d]?(?=[;,.)]|\s*$)"
        ),
        rf"(?<=[A-Z]{{3}}\s){_YEAR}\b{_NOT_QUANTITY} | ©\s?{_YEAR}",  # ISCA 2009
        rf"\b(?:[Ii]n|[Ss]ince|[Uu]ntil|[Bb]efore|[Aa]fter|early|late|mid)[\s-]{_YEAR}\b{_NOT_QUANTITY}(?!\s+[a-z]+s\b)",
        r"(?<![\w.])0\d(?:\.\d)?(?![\w.,]*\d)",  # 01, 06.2: chapters, lessons
        r"(?<![\w.])\d+_[A-Za-z]\w*",  # 02_roofline
        r"\b\d{1,2}th\s+percentile",
        r"\A1[0-2]\Z",  # alone in a string, as 09 is: lessons
        r"\b0[xb][\da-fA-F_\ufffc]+",
        # fields of str.format, % formats
        r"\{(?:[A-Za-z_][\w.\[\]]*)?(?:![rsa])?(?::[^{}\s]*)?\} | %\d*\.\d+[efgEFG]",
    )
]
MATH = re.compile(
    r"\$\$[\s\S]+?\$\$|(?<![\\$\w])\$(?=[^\s$])[^$\n]*?(?<=[^\s\\])\$(?!\d)|\\\([\s\S]+?\\\)"
)
_CELL = re.compile(r"^\s*\|[^|\n]*\|(?P<cells>.*)\|\s*$", re.M)
_FORMAT_SPEC = re.compile(r"[<>^=]?[+ -]?#?0?\d*[,_]?\.\d+[efgEFG%]|[,_]?\.\d+~?[A-Za-z]?~?[PCH]?")
_IDENTIFIER = re.compile(r"[A-Za-z_#][\w#]*(?:[./:-]\w+)*")
_WRITERS = {
    "si", "plain", "human_time", "format", "Q", "str", "float", "int", "round", "abs", "max", "min",
    "sum",
}  # fmt: skip
_LENGTH = re.compile(r"(?:\d+(?:\.\d+)?(?:px|em|rem|ch|fr|vh|vw|deg)\s*)+|1fr")


def typed_numbers(text: str) -> Iterator[tuple[int, str]]:
    """Each number of a reader's text that is bound to nothing: its offset and a short excerpt."""
    for match in BRACES.finditer(text):
        reason = _unbound_expression(match[1])
        if reason:
            yield match.start(), f"{match[0]}: {reason}"
    text = BRACES.sub(lambda match: _blank(match[0], "\ufffc"), text)
    prose_text = re.sub(_TAG, _keep_alt_text, text)
    for pattern in (_catalog_names(), *_NAMES):
        prose_text = pattern.sub(lambda match: _blank(match[0]), prose_text)
    spans = {}
    prose = MATH.sub(lambda match: _blank(match[0]), prose_text)
    for number in _NUMBER.finditer(prose):
        if _is_quantity(prose, number, _AFTER):
            spans[number.start()] = number.end()
    for formula in MATH.finditer(prose_text):
        inside = formula[0].replace("$", " ")
        for number in _NUMBER.finditer(inside):
            if _is_quantity(inside, number, _MATH_AFTER):
                spans[formula.start() + number.start()] = formula.start() + number.end()
    for row in _CELL.finditer(prose):
        for cell in re.finditer(r"(?<![^|])\s*[*_`]*(\d+)[*_`]*\s*(?![^|])", row["cells"]):
            spans.setdefault(row.start("cells") + cell.start(1), row.start("cells") + cell.end(1))
    for factor in _FACTOR.finditer(prose):
        spans[factor.start()] = factor.end()
    for start, end in sorted(spans.items()):
        yield start, " ".join(text[start : end + 24].split("\n")[0].replace("\ufffc", "…").split())


def _is_quantity(text: str, number: re.Match, after: re.Pattern) -> bool:
    digits = number[0]
    if len(digits) > 1:
        return True
    if after.match(text, number.end()):
        return True
    before = _BEFORE.search(text[max(0, number.start() - 40) : number.start()])
    return bool(before and not before.groupdict().get("symbol"))


def _blank(text: str, char: str = " ") -> str:
    return re.sub(r"[^\n]", char, text)


def _keep_alt_text(tag: re.Match) -> str:
    characters = list(_blank(tag[0]))
    for attribute in _SEEN_ATTRIBUTE.finditer(tag[0]):
        group = 1 if attribute[1] is not None else 2
        characters[attribute.start(group) : attribute.end(group)] = attribute[group]
    return "".join(characters)


@cache
def _catalog_names() -> re.Pattern:
    """Names in the catalog with numbers in them, whole and short: "NVIDIA A100 SXM4", "A100"."""
    names = set()
    for file in files("lightspeed.catalog").iterdir():
        if file.name.endswith(".toml"):
            for tables in tomllib.loads(file.read_text("utf-8")).values():
                for entry in tables if isinstance(tables, list) else [tables]:
                    if not isinstance(entry, dict):  # a note on the whole file
                        continue
                    short = (
                        re.split(r" \(|, ", entry.get("name", ""))[0]
                        .removeprefix(entry.get("vendor", ""))
                        .strip()
                    )
                    names |= {
                        entry.get("name", ""),
                        short,
                        re.sub(r"^(\w+) \w+ (\d+ GB)$", r"\1 \2", short),
                    }
    longest_first = sorted(
        (re.escape(name) for name in names if re.search(r"\d", name)), key=len, reverse=True
    )
    return re.compile(rf"(?<!\w)(?:{'|'.join(longest_first)})(?![\w/])")


def _unbound_expression(text: str) -> str | None:
    """Why an expression states a literal instead of computing: {{240}}, {{si(240e9, "byte")}}."""
    try:
        tree = ast.parse(f"({split(text).code}\n)", mode="eval")
    except ValueError as error:
        return str(error)
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            for _, typed in typed_in_string(node.value):
                return f"the number {typed!r} is typed"
    writing = {
        id(node.func)
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") in _WRITERS
    }
    if any(isinstance(node, ast.Name) and id(node) not in writing for node in ast.walk(tree)):
        return None
    return "it holds only literals; bind the number to a variable of a code cell"


def typed_in_string(text: str) -> Iterator[tuple[int, str]]:
    """Typed numbers of one string of code: keys, file names, formats and styles are no prose."""
    if not any(pattern.fullmatch(text) for pattern in (_FORMAT_SPEC, _IDENTIFIER, _LENGTH)):
        yield from typed_numbers(text)


def typed_in_code(
    source: str, comments: bool = True, docstrings: bool = True
) -> Iterator[tuple[int, str]]:
    """Typed numbers in strings (and comments) of Python code: line, from 1, and an excerpt."""
    texts = strings(source, docstrings)
    places = [
        (line + text[:at].count("\n"), typed)
        for line, text in texts
        for at, typed in typed_in_string(text)
    ]
    if comments:
        for token in tokenize.generate_tokens(io.StringIO(source).readline):
            if token.type == tokenize.COMMENT:
                places += [
                    (token.start[0], typed) for _, typed in typed_numbers(token.string.lstrip("# "))
                ]
    yield from sorted(places)


def strings(source: str, docstrings: bool = True) -> list[tuple[int, str]]:
    """The strings of Python code with their lines; an f-string's expressions are one U+FFFC."""
    tree = ast.parse(source)
    finder = _Strings(set() if docstrings else {id(node) for node in _docstrings(tree)})
    finder.visit(tree)
    return finder.texts


def _docstrings(tree: ast.Module) -> Iterator[ast.Constant]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
            match node.body:
                case [ast.Expr(ast.Constant(str()) as text), *_]:
                    yield text


class _Strings(ast.NodeVisitor):
    """The strings of a program, an f-string as one text with its expressions blanked."""

    def __init__(self, skip: set[int]):
        self.skip = skip
        self.texts: list[tuple[int, str]] = []

    def visit_Constant(self, node: ast.Constant) -> None:
        if isinstance(node.value, str) and id(node) not in self.skip:
            self.texts.append((node.lineno, node.value))

    def visit_keyword(self, node: ast.keyword) -> None:
        if node.arg != "until":  # a lesson's number: job.sheet(until="10")
            self.visit(node.value)

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        parts = []
        for part in node.values:
            if isinstance(part, ast.FormattedValue):
                parts.append("\ufffc")
                self.visit(part.value)  # its format is not prose
            else:
                parts.append(ast.literal_eval(part))
        self.texts.append((node.lineno, "".join(parts)))

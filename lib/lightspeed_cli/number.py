"""`lightspeed number`: a constant of the catalog with its source, and who uses it."""

import difflib
import json
import re
from pathlib import Path

from lightspeed import catalog
from lightspeed.errors import BadArgument, meant, nearest
from lightspeed_cli.errors import UserError
from lightspeed_course.workspace import course_root
from lightspeed_models.cards import card
from lightspeed_show import si

# Inside the package: the constants themselves, this command, and a wheel's own copy of the course.
_NO_USERS = ("lightspeed/catalog", "lightspeed_cli", "lightspeed_course/_delivered")
_TERM = r"\b[a-z_]\w*(?:\.\w+)?"


def constants():
    """Return every dotted key of the catalog with its Number, in file order."""
    return {
        f"{entry.key}.{name}": value
        for kind in catalog.KINDS
        for entry in catalog.entries(kind).values()
        for name, value in entry.numbers.items()
    }


def search(word):
    """Return (lines, whole): one line for each constant with the word in its key, name, note or
    source; if none has the whole word, `whole` is False and the lines contain it.
    """
    texts = {key: _text(key, value) for key, value in constants().items()}
    # "nvlink" is a word of nvlink4, but "l4" is none of l40s.
    after = r"(?![^\W_])" if word[-1:].isdigit() else r"(?![^\W\d_])"
    whole = re.compile(rf"(?<![^\W_]){re.escape(word)}{after}", re.IGNORECASE)
    matches = [key for key, text in texts.items() if whole.search(text)]
    keys = matches or [key for key, text in texts.items() if word.lower() in text.lower()]
    return [_line(key, constants()[key]) for key in keys], bool(matches)


def _text(key, value):
    return " ".join((key, _entry(key).name, value.note, *map(str, value.sources)))


def _similar(word):
    """What was probably meant by a word that no constant has, to end a sentence with; or ""."""
    words = {
        part for key in constants() for part in re.findall(r"\w+", f"{key} {_entry(key).name}")
    }
    near = nearest(word.lower(), {part.lower() for part in words})
    return f"; did you mean {near}?" if near else ""


def of_entry(entry):
    """Return a line for each constant of an entry, such as h100_sxm; none if unknown."""
    return [
        _line(key, value) for key, value in constants().items() if key.partition(".")[0] == entry
    ]


def _line(key, value):
    second_hand = ", second hand" * any(source.second_hand for source in value.sources)
    return f"{key:<42} {_amount(value)}{second_hand}"


def nearby(key):
    """Return keys similar to a mistyped one: of its entry, or else the five closest."""
    same = [one for one in constants() if one.startswith(key.partition(".")[0] + ".")]
    return same or difflib.get_close_matches(key, constants(), 5, 0)


def describe(key):
    """Describe one constant and its users; raises KeyError if there is none."""
    value = constants()[key]
    rows = [("of", _entry(key).name), ("printed", value.printed), ("formula", _with_values(value))]
    rows += [
        (name, getattr(value, name))
        for name in ("density", "precision", "direction", "scope", "note")
    ]
    rows += [("source", source) for source in dict.fromkeys(value.sources)]
    rows += [
        (
            "read",
            f"{value.read}, {'; '.join(dict.fromkeys(source.how for source in value.sources))}",
        )
    ]
    rows += [("other", f"{other.get('printed', '')}: {other['source']}") for other in value.others]
    rows += [("rule", value.rule)] + [
        ("used by", user) for user in users(key) or ["no file names it"]
    ]
    return "\n".join(
        [f"{key} = {_amount(value)}", *(f"  {label:<11}{text}" for label, text in rows if text)]
    )


def users(key):
    """The chapters, exercises, solutions, library files and other constants that name this one."""
    root, lib = course_root(), Path(__file__).parents[1]
    files = [
        (root, path)
        for folder in ("chapters", "exercises", "solutions")
        for path in (root / folder).glob("*.*")
    ]
    packages = [path for package in lib.glob("lightspeed*") for path in package.rglob("*.py")]
    files += [
        (lib, path)
        for path in packages
        if not path.relative_to(lib).as_posix().startswith(_NO_USERS)
    ]
    users = {
        path.relative_to(base).with_suffix("").as_posix()
        for base, path in files
        if path.suffix in (".py", ".ipynb", ".toml") and _names(_source(path), *key.split("."))
    }
    derived = [other for other, value in constants().items() if key in _terms(value)]
    return sorted(users) + [f"the catalog, for {other}" for other in derived]


def _source(path):
    """What was written in a file: a notebook's cells, or nothing where its source is near."""
    if path.suffix != ".ipynb":
        return path.read_text("utf-8")
    if path.with_suffix(".py").exists():
        return ""
    return "\n".join("".join(cell["source"]) for cell in json.loads(path.read_bytes())["cells"])


def _names(text, entry, name):
    """Whether a file writes the key, or takes the name from the entry or a variable of it."""
    makes = r'\b(?:accelerator|link|memory|energy|find)\(["\'](\w+)["\']\)'
    owners = {re.escape(entry), rf'["\']{entry}["\']\)'}
    for targets, right in re.findall(r"(\w+(?:, \w+)*) = (.*)", text):
        variables, sources = targets.split(", "), re.findall(makes, right)
        if len(variables) == len(sources):
            owners |= {
                variable for variable, of in zip(variables, sources, strict=True) if of == entry
            }
    return bool(re.search(rf"(?<![\w.])(?:{'|'.join(owners)})\.{name}\b", text))


def _terms(value):
    """The dotted keys in a number's formula; a bare name there belongs to its own entry."""
    entry = value.key.partition(".")[0]
    return [term if "." in term else f"{entry}.{term}" for term in re.findall(_TERM, value.formula)]


def _with_values(value):
    amounts = iter([_amount(catalog.number(term)) for term in _terms(value)])
    return re.sub(_TERM, lambda match: f"{match[0]} [{next(amounts)}]", value.formula)


def _entry(key):
    return catalog.find(key.partition(".")[0])


def _amount(value):
    exact, readable = f"{float(value):.6g} {value.unit}".rstrip(), si(value, value.unit, 4)
    return exact if abs(value) in (0, 1) or 1e-2 < abs(value) < 1e5 else f"{exact} ({readable})"


def add(parser):
    """Put the arguments of the verb on its parser."""
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument(
        "key", nargs="?", help="such as h100_sxm.hbm_bandwidth, or h100_sxm for all of it"
    )
    what.add_argument("--list", action="store_true", help="every constant of the catalog")
    what.add_argument(
        "--search", metavar="WORD", help="constants with this word in key, name, note or source"
    )


def run(options):
    """Print one constant, or a line for each requested one."""
    try:
        constants()
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        # Somebody is at work on the catalog: what is not right yet, not where it was noticed.
        raise UserError(f"the catalog is inconsistent: {error}") from error
    if options.list:
        print("\n".join(_line(key, value) for key, value in constants().items()))
        return
    if not options.key:
        _search(options.search)
        return
    key = _as_the_catalog_spells(options.key.lower())
    if key in constants():
        print(describe(key))
    elif entry := of_entry(key):
        print("\n".join(entry))
    else:
        # Keys of one entry are alike already in their first half.
        raise UserError(
            f"there is no '{options.key}'; {meant(key, nearby(key), 0.8)};"
            f" `lightspeed number --search {key.partition('.')[0]}` looks for a word"
        )


def _as_the_catalog_spells(key):
    """The key with its GPU by the catalog's name: h100.bf16 is h100_sxm.bf16."""
    entry, dot, number = key.partition(".")
    if of_entry(entry) or "=" in entry:
        return key
    try:
        return card(entry)[0].key + dot + number
    except BadArgument:
        return key


def _search(word):
    if not word.strip():
        raise UserError("--search '': expected a word, such as nvlink; --list shows all")
    keys, whole = search(word)
    if not keys:
        raise UserError(
            f"no constant has '{word}' in its key, name, note or source{_similar(word)}"
        )
    if not whole:
        print(f"No constant has the word '{word}'; these contain it:")
    print("\n".join(keys))

"""A lesson is short, shows its law and none of its audit; what it says rests on a proof beside it.

A chapter is held to this once its proof is written. Words are those of Markdown without formulas,
code and numbers that the build puts in.
"""

import ast
import json
import re
from pathlib import Path

import pytest

from lightspeed_authoring.notebooks import read
from lightspeed_authoring.site import reading
from lightspeed_authoring.site.cells import call_of
from lightspeed_course.practice.questions import question
from lightspeed_show.format import si

CHAPTERS = Path(__file__).parents[2] / "chapters"
FAMILIES = reading.families(path.stem for path in CHAPTERS.glob("[0-9][0-9]_*.py"))
PROOFS = [name for more in FAMILIES.values() for name in more if name.endswith(reading.PROOF)]
LESSONS = [
    name
    for one, more in FAMILIES.items()
    if PROOFS and any(name in PROOFS for name in more)
    for name in (one, *more)
    if name not in PROOFS
]
MOST = {
    "02_roofline": 3000,
    "06_parallelism": 1900,
    "06_parallelism_2_sent": 3000,
    "09_serving": 3000,
}
RECALLING = [n for n in LESSONS if n[:2] >= "02" and n != "02_roofline_2_kernels"]
# Headings under which a proof keeps its audit.
OF_A_PROOF = re.compile(
    r"^#+ (Check\b|Measure it here|(Gallery of )?[Ww]rong claims|What .* leaves? out"
    r"|Where it breaks|Explain the difference|The same on a recorded machine)",
    re.M,
)


def cells(name):
    return read(CHAPTERS / f"{name}.py")


def prose(cell):
    text = re.sub(r"^```.*?^```|\$\$.*?\$\$", "", cell.source, flags=re.S | re.M)
    return re.sub(r"\$[^$\n]*\$|\{\{.*?\}\}|`[^`]*`|\]\([^)]*\)", "", text)


def words(cell):
    return len(re.findall(r"[^\W\d_][\w'’-]*", prose(cell)))


def seen(cell):
    """Lines of code that a reader sees: folded ones, live cells and comments aside."""
    if cell.cell_type != "code" or {"figure", "setup"} & {*cell.metadata.tags}:
        return 0
    call = call_of(cell.source, {})
    if call is not None and call[0] != "code":
        return 0
    return sum(bool(line.strip()) for line in cell.source.splitlines())


def tables(cell):
    if cell.cell_type == "markdown":
        return len(re.findall(r"^ *\|[ :|-]*---[ :|-]*\| *$", cell.source, re.M))
    tree = ast.walk(ast.parse(cell.source))
    return sum(isinstance(n, ast.Call) and getattr(n.func, "id", "") in TABLES for n in tree)


TABLES = ("table", "sweep")
DRAWN = re.compile(r"^(figure|explore\w*)\(", re.M)


def tagged(all_cells, tag):
    return [cell for cell in all_cells if tag in cell.metadata.tags]


@pytest.mark.parametrize("name", LESSONS)
def test_a_lesson_is_short(name):
    own = cells(name)
    text = [cell for cell in own if cell.cell_type == "markdown"]
    rest = [c for c in text if "card" not in c.metadata.tags]
    assert sum(map(words, rest)) <= MOST.get(name, 2600)
    assert sum(map(seen, own)) <= 80
    assert sum(tables(cell) for cell in own if "card" not in cell.metadata.tags) <= 4
    for cell in tagged(own, "setup"):
        assert len(cell.source.splitlines()) <= 6


@pytest.mark.parametrize("name", LESSONS)
def test_a_lesson_ends_in_three_sentences_and_a_card(name):
    own = cells(name)
    (kept,), (card,) = tagged(own, "takeaway"), tagged(own, "card")
    assert len(re.findall(r"^- .*?[.?!]\**$", kept.source, re.M | re.S)) >= 1
    assert len(re.findall(r"^- ", kept.source, re.M)) == 3
    assert tables(card) == 1 and "{{" in card.source, "with its values for the job"


@pytest.mark.parametrize("name", LESSONS)
def test_a_lesson_leads_to_its_proof_and_keeps_none_of_it(name):
    own = cells(name)
    proof = next(p for p in PROOFS if p[:2] == name[:2])
    assert f"]({proof}.ipynb" in own[0].source, "in the opening"
    following = [*LESSONS, "12_the_call"][LESSONS.index(name) + 1]
    end = "\n".join(c.source for c in own[-6:] if c.cell_type == "markdown")
    assert f"]({following}.ipynb)" in end, "leads to the next lesson"
    for cell in own:
        if cell.cell_type == "markdown":
            assert not OF_A_PROOF.search(cell.source), cell.source[:60]
        else:
            imported = re.findall(r"^ *(?:import|from) (\w+)", cell.source, re.M)
            assert not {"numpy", "matplotlib", "ipywidgets"} & {*imported}, cell.source[:60]
            assert "gallery(" not in cell.source and "measure_here" not in cell.source
    reading_list = re.search(r"^## Further reading\n(.*?)(?=^#|\Z)", "\n".join(
        cell.source for cell in own if cell.cell_type == "markdown"), re.S | re.M)  # fmt: skip
    assert not reading_list or len(re.findall(r"^- ", reading_list[1], re.M)) <= 3


@pytest.mark.parametrize("name", LESSONS)
def test_a_lesson_asks_shows_and_carries_the_job(name):
    own = cells(name)
    code = [cell.source for cell in own if cell.cell_type == "code"]
    assert 3 <= sum(bool(re.search(r"^ask\(", source, re.M)) for source in code) <= 6
    assert any("job.sheet(until=" in source for source in code)
    assert any("predict(" in source for source in code)
    before = 0
    for cell in own:
        if cell.cell_type == "code" and DRAWN.search(cell.source):
            break
        before += words(cell) if cell.cell_type == "markdown" else 0
    assert before <= 550, "the first picture within two screens"


@pytest.mark.parametrize("name", RECALLING)
def test_a_lesson_opens_with_a_question_of_an_earlier_one(name):
    code = [cell.source for cell in cells(name) if cell.cell_type == "code"]
    first = next(i for i, source in enumerate(code) if "ask(" in source)
    assert any("job.sheet(" in source for source in code[:first])
    assert not any(re.search(r"predict\(\"|explore\w*\(\)", source) for source in code[:first])
    earlier = question(re.search(r"ask\(\"([\w.]+)", code[first])[1]).chapter
    assert (CHAPTERS / f"{earlier}.py").exists() and earlier < name


@pytest.mark.parametrize("name", PROOFS)
def test_a_proof_says_first_how_well_it_holds(name):
    title, *rest = cells(name)
    assert re.match(r"# \d+\. .+: the proof$", title.source.splitlines()[0])
    (lesson,) = (one for one, more in FAMILIES.items() if name in more)
    assert f"]({lesson}.ipynb" in title.source, "the way back"
    assert any(tables(cell) for cell in [title, *rest[:5]]), "one table, a row a law"


def links(name):
    text = "\n".join(cell.source for cell in cells(name) if cell.cell_type == "markdown")
    return re.findall(r"\]\((?:\./)?(\d\d_\w+)\.ipynb#([^)]*)\)", text)


@pytest.mark.parametrize(
    "name", [one for lesson, more in FAMILIES.items() for one in (lesson, *more)]
)
def test_a_link_to_a_section_arrives(name):
    """In JupyterLab an anchor has the capitals of its heading, on the site it has none."""
    for page, anchor in links(name):
        text = "\n".join(c.source for c in cells(page) if c.cell_type == "markdown")
        there = [title.replace(" ", "-") for title in re.findall(r"^#+ +(.+)$", text, re.M)]
        assert anchor in there, f"{page} has no heading {anchor}"


def test_every_anchor_that_was_published_leads_to_a_section():
    now, known = reading.pages(), reading.moved()
    assert sum(map(len, known.values())) > 290 and known.keys() <= now.keys()
    assert reading.lost(now, known) == [], "name its new place in lib/…/site/moved.json"
    assert reading.followed(now, known) == known, "python -m lightspeed_authoring.site.reading"


def test_an_anchor_is_followed_to_its_own_chapter_first():
    now = {"02_a": ["x"], "02_a_proof": ["y", "z"], "03_b": ["y", "w"], "04_c": ["w"]}
    before = {"02_a": {"x": "", "y": "", "w": "03_b#w", "v": "nowhere#v"}}
    found = reading.followed(now, before)["02_a"]
    assert found == {"x": "02_a#x", "y": "02_a_proof#y", "w": "03_b#w", "v": "nowhere#v"}
    assert reading.lost(now, {"02_a": found}) == ["02_a#v"]
    # Another chapter has the same heading: a place written by hand stays while it stands.
    by_hand = {"02_a": {"decide": "02_a#x", "gone": "02_a#u"}}
    elsewhere = now | {"05_d": ["decide", "gone"]}
    assert reading.followed(elsewhere, by_hand)["02_a"] == {"decide": "02_a#x", "gone": "05_d#gone"}


CALL = "from lightspeed_course.explorers.roofline import explore\n\nexplore()"


def test_a_chapter_is_a_lesson_with_its_parts_and_its_proof():
    stems = ["06_p_proof", "06_p", "06_p_2_sent", "00_start", "00_terms", "12_call"]
    assert reading.families(stems) == {
        "00_start": [], "00_terms": [], "06_p": ["06_p_2_sent", "06_p_proof"], "12_call": [],
    }  # fmt: skip
    title = {"cell_type": "markdown", "source": "# 6.1. What must fit\n\n## `A` $x$: b?"}
    code = {"cell_type": "code", "source": CALL}
    assert reading.anchors(json.loads(json.dumps({"cells": [title, code]}))) == [
        "explore", "explore-roofline", "what-must-fit", "a-x-b",
    ]  # fmt: skip


PREDICTED = re.compile(r'^(predict|reveal)\("([\w.]+)"(?:, \.\.\.)?(?:, seed="([\w ]+)")?', re.M)


def pictures_before_the_reveal(name):
    """(question, seed, text of a picture) for each that stands between a guess and its reveal."""
    waiting = {}
    for cell in json.loads((CHAPTERS / f"{name}.ipynb").read_text("utf-8"))["cells"]:
        if cell["cell_type"] != "code":
            continue
        source = "".join(cell["source"])
        for verb, id, seed in PREDICTED.findall(source):
            if verb == "predict":
                waiting[id] = seed or None
            else:
                waiting.pop(id, None)
        if DRAWN.search(source):
            data = [output.get("data", {}) for output in cell["outputs"]]
            text = re.sub(r"<[^>]*>", " ", json.dumps(data, ensure_ascii=False))
            yield from ((id, seed, text) for id, seed in waiting.items())


def test_no_picture_answers_a_guess_above_it():
    """Neither the value that is asked for, with its unit, nor the right choice is in the text of
    a figure, or in what an explorer first says, between a guess and its reveal.
    """
    told, tried = [], 0
    for name in LESSONS:
        for id, seed, text in pictures_before_the_reveal(name):
            variant, asked = question(id).variant(seed), question(id)
            if asked.kind == "choice":
                answers = {asked.options[variant.right]}
            else:
                right = variant.right[0]
                answers = (
                    {si(right, asked.unit, 2), si(right, asked.unit, 3)} if asked.unit else set()
                )
                answers |= {f"{right:,.0f}"} if right >= 100 else set()
            tried += 1
            told += [
                f"{name}: {id}: {answer}"
                for answer in answers
                if re.search(rf"(?<![\d.,]){re.escape(answer)}(?!\d)", text)
            ]
    assert not told, "\n".join(told)
    assert tried > 10

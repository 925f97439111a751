"""What of a notebook comes alive on a page, and what its pages hold."""

import html
import json
import re
from pathlib import Path

import pytest

from lightspeed_authoring.site.cells import call_of, for_page, shown
from lightspeed_course.explorers import roofline
from lightspeed_course.web import live

CHAPTERS = sorted((Path(__file__).parents[2] / "chapters").glob("*.ipynb"))


@pytest.mark.parametrize(
    "source, call",
    [
        ('ask("a.b")', ["ask", "a.b"]),
        ('predict("a.b", ...)', ["predict", "a.b"]),
        ('ask("a.b", seed="chapter")', ["ask", "a.b", "chapter"]),
        ('predict("a.b", ..., seed="chapter")', ["predict", "a.b", "chapter"]),
        ('incident(2, job="week")', ["incident", 2, "week"]),
        ('reveal("a.b", skip=True)', ["reveal", "a.b"]),
        ("explore()", None),
        (
            "from lightspeed_course.explorers.nccl import explore as shown\nshown()",
            ["nccl.explore"],
        ),
        ('x = ask("a.b")', None),
        ("ask(name)", None),
        ("%matplotlib inline", None),
        ("", None),
        ('answer = ...\ncheck("a.b", answer)', []),
        (
            'def f(x):\n    ...\n\ncheck("a.b", f)',
            ["code", 'def f(x):\n    ...\n\ncheck("a.b", f)'],
        ),
    ],
)
def test_a_live_cell_is_known_by_its_last_line(source, call):
    assert call_of(source, {}) == call


def test_every_explorer_and_question_of_the_chapters_is_live_and_no_picture_lacks_its_words():
    made, calls = live.explorers(), []
    for path in CHAPTERS:
        notebook = json.loads(path.read_text("utf-8"))
        page = for_page(notebook)
        found = [json.loads(html.unescape(c)) for c in re.findall(r'data-call="([^"]*)"', page)]
        sources = ["".join(c["source"]) for c in notebook["cells"] if c["cell_type"] == "code"]
        expected = sum(
            bool(
                re.search(
                    r"^(explore\w*\(\)|(ask|predict|reveal|cards|today|incident|bench|progress)\()",
                    s,
                    re.M,
                )
            )
            for s in sources
        )
        assert len(found) == expected, path.name
        assert "data:image" not in page, f"{path.name}: a picture whose words are lost"
        for svg in re.findall(r"<svg .*?</svg>", page, re.S):
            assert "<title" in svg and "<desc" in svg, f"{path.name}: {svg[:200]}"
        calls += found
    strange = {c[0] for c in calls if len(c) == 1} - set(made) - set(live.PRACTICE)
    assert not strange, f"no explorer {strange}: is a notebook older than its source?"


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
def test_a_question_comes_alive_with_the_numbers_that_the_page_shows(path, own_store):
    for cell in json.loads(path.read_text("utf-8"))["cells"]:
        call = call_of("".join(cell["source"]), {}) if cell["cell_type"] == "code" else None
        if call and call[0] in ("ask", "predict", "reveal", "incident"):
            posed = live.practice(*call)
            text = posed.static if hasattr(posed, "static") else posed.markdown
            assert text == "".join(cell["outputs"][0]["data"]["text/markdown"]), call


def test_a_control_of_jupyter_is_told_and_its_first_words_are_shown():
    told = []
    for path in CHAPTERS:
        for cell in json.loads(path.read_text("utf-8"))["cells"]:
            told += [text for text in map(shown, cell.get("outputs", ())) if text]
    assert not [text for text in told if re.search(r"(SelectionSlider|Output)\(", text)]
    sliders = [n for n, text in enumerate(told) if "In Jupyter a slider" in text]
    assert sliders and all(re.search(r">[^<]*\d[^<]*</pre>", told[n + 1]) for n in sliders)


def test_a_link_restores_a_state_and_says_what_it_cannot():
    explorer = roofline.explore()
    explorer.follow("hardware=b200&B=128&weights=int8")
    assert (explorer.params["hardware"], explorer.params["weights"]) == ("b200", "int8")
    again = roofline.explore()
    again.follow(explorer.link())
    assert again.params == explorer.params
    for link in ("chip=b200", "hardware=b300x", "B=many", "B=nan"):
        with pytest.raises(ValueError, match=r"no control|no option"):
            roofline.explore().follow(link)


def test_each_state_of_each_explorer_comes_back_by_its_link():
    """Also where the text of one option is the value of another: moment 10 shows 11 processors."""
    lost = [
        (name, control.name, value)
        for name, explorer in live.explorers().items()
        for control in explorer.controls.values()
        for _, value in control.options
        if control.meant(str(value)) != value
    ]
    assert not lost, lost[:5]


def test_a_page_hears_what_its_cells_say(monkeypatch):
    from lightspeed_course.practice import store
    from lightspeed_show import host

    monkeypatch.setattr(host, "_here", {})
    monkeypatch.setattr(store, "_host", {})
    said, kept = [], []
    live.begin(lambda text: said.append(json.loads(text)), "[]", kept.append)
    live.hear(json.dumps({"open": "c1", "call": ["ask", "roofline.int8_critical_batch"]}))
    form = next(m for m in said if m.get("kind") == "form")
    for answer, heading in (("3 s", "Not yet."), ("", "Not answered."), ("7", "Not yet.")):
        live.hear(
            json.dumps({"to": form["made"], "content": {"event": "submit", "values": [answer]}})
        )
        status = [
            m["value"] for m in said if m.get("set") == form["made"] and m["name"] == "status"
        ]
        assert status[-1].startswith(heading), (answer, status[-1])
    assert len(kept) == 2, "what is not answered is not kept"
    live.hear(json.dumps({"open": "c2", "call": ["ask", "no.such"]}))
    assert said[-1]["failed"] == "c2" and "no.such" in said[-1]["words"]
    live.hear(json.dumps({"progress": True}))
    live.hear(json.dumps({"take": said[-1]["progress"]}))
    assert said[-1] == {"taken": "0 new events taken in."}
    live.hear(json.dumps({"take": "{}"}))
    assert "not a file of progress" in said[-1]["taken"]


def test_an_error_that_a_chapter_shows_stands_on_its_page():
    cell = {
        "cell_type": "code", "source": ["1 / 0"], "metadata": {},
        "outputs": [{"output_type": "error", "ename": "ZeroDivisionError", "evalue": "a < b"}],
    }  # fmt: skip
    assert "ZeroDivisionError: a &lt; b" in for_page({"cells": [cell]})

"""The page's Python shows what the lab's does: explorers, questions, code cells."""

import json
import math
import os
import re
import sys
from pathlib import Path

import pytest
from processes import finished

from lightspeed_authoring.site import build

HERE = Path(__file__).parent
WEB = Path(build.__file__).parent
CHAPTERS = sorted((HERE.parents[1] / "chapters").glob("[0-9][0-9]_*.ipynb"))
NUMBER = re.compile(r"(?<![\w.])-?\d[\d,]*\.?\d*(?:e[+-]?\d+)?")


def on_page(site, script, *more):
    """The lines that a script prints in the page's Python."""
    live = site / "_static" / "live"
    run = finished(["node", WEB / "run.mjs", live, script, *more])
    assert run.returncode == 0, run.stderr[-2000:]
    return run.stdout.splitlines()


@pytest.mark.slow
def test_pyodide_and_cpython_show_the_same(site):
    there = on_page(site, HERE / "states.py")
    lab = finished(
        [sys.executable, HERE / "states.py"],
        check=True,
        env=os.environ | {"LIGHTSPEED_DATA": "/nowhere"},
    )
    here = lab.stdout.splitlines()
    assert len(here) == len(there) > 300
    apart = [
        (
            json.loads(a)[:2],
            next((x, y) for x, y in zip(a.split(), b.split(), strict=False) if x != y),
        )
        for a, b in zip(here, there, strict=True)
        if a != b
    ]
    assert not apart, f"{len(apart)} of {len(here)} differ, first {apart[:3]}"


@pytest.mark.slow
def test_every_cell_of_the_chapters_shows_what_was_committed_or_says_why_not(site, tmp_path):
    cells, committed = {}, {}
    for path in CHAPTERS:
        cells[path.stem] = []
        for number, cell in enumerate(json.loads(path.read_text("utf-8"))["cells"]):
            if cell["cell_type"] == "code":
                cells[path.stem].append([number, "".join(cell["source"])])
                committed[path.stem, number] = cell
    (tmp_path / "cells.json").write_text(json.dumps(cells), "utf-8")
    wrong, same = [], dict.fromkeys(cells, 0)
    for line in on_page(site, WEB / "try_cells.py", tmp_path / "cells.json"):
        chapter, number, shown, problem, _ = json.loads(line)
        cell = committed.pop((chapter, number))
        where = f"{chapter} cell {number}"
        if "is not on this page" in problem:
            continue
        found = [told for told in map(words_of, shown) if told]
        found += [re.sub(r"^Line \d+: ", "", problem)] * bool(problem)
        expected = [told for told in map(words_of, cell["outputs"]) if told]
        if {"measured", "timed"} & {*cell["metadata"].get("tags", ())}:
            continue
        if len(found) != len(expected) or not all(map(alike, found, expected)):
            wrong.append(f"{where}: the page {found} where the chapter has {expected}"[:1500])
        same[chapter] += 1
    assert not committed, f"not run: {list(committed)}"
    assert not wrong, "\n".join(wrong)
    # A proof fits and measures, with numpy and the lab's own instruments.
    lessons = {chapter: n for chapter, n in same.items() if not chapter.endswith("_proof")}
    rare = {chapter: n for chapter, n in lessons.items() if n < len(cells[chapter]) / 3}
    assert not rare, f"the page runs fewer than a third of the cells: {rare}"
    assert sum(same.values()) > sum(map(len, cells.values())) / 3, same


def words_of(output):
    """What an output says: its text, or nothing for a picture."""
    if output.get("output_type") == "error":
        return f"{output['ename']}: {output['evalue']}"
    data = output.get("data", output)
    if "text/html" in data:  # its words stand beside it
        return ""
    stream = output.get("text") or output.get("stream")
    return "".join(stream or data.get("text/markdown") or data.get("text/plain", ""))


def alike(page, lab):
    """Whether two texts have the same words and, to nine digits, the same numbers; Jupyter breaks
    lines of its own in long values.
    """
    here, there = ([float(n.replace(",", "")) for n in NUMBER.findall(t)] for t in (page, lab))
    words = [re.sub(r"\s+", "", NUMBER.sub("#", text)) for text in (page, lab)]
    return words[0] == words[1] and all(
        math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-12) for a, b in zip(here, there, strict=True)
    )


@pytest.mark.parametrize(
    "page, lab, same",
    [
        ("| 1.50 GB |", "| 1.50 GB |", True),
        ("0.30000000000000004", "0.3", True),
        ("| 1.50 GB |", "| 1.51 GB |", False),
        ("| 1.50 GB |", "| 1.50 MB |", False),
        ("[1,\n 2]", "[1, 2]", True),
        ("1, 2", "1", False),
    ],
)
def test_what_counts_as_the_same(page, lab, same):
    assert alike(page, lab) is same

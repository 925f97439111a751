"""A pytest plugin: what the course adds where nbval runs a notebook.

Its kernel gets the environment of the build; outputs are compared by value (`outputs`). Where the
notebook's source stands beside it, the prose and the claims between the cells are evaluated in the
same kernel; a page that passed as a whole is noted (`proved`).
"""

import ast
import functools
import json
import os
import shutil
import tempfile
from pathlib import Path
from unittest import mock

import pytest
from nbval.plugin import IPyNbCell

from lightspeed_authoring.build import ROOT, kernel_environment
from lightspeed_authoring.claims import as_json
from lightspeed_authoring.forked_kernel import forked_kernels
from lightspeed_authoring.notebooks import page
from lightspeed_authoring.outputs import moved, moved_text
from lightspeed_authoring.proved import note_proof
from lightspeed_show.bound import expressions, fill

STORE = pytest.StashKey[str]()
SPANS = pytest.StashKey[list]()
PASSED = pytest.StashKey[int]()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_setup(item):
    """A notebook's kernel, which starts with its first cell, gets an empty store of its own."""
    if not isinstance(item, IPyNbCell):
        return (yield)
    stash = item.parent.stash
    if STORE not in stash:
        stash[STORE] = tempfile.mkdtemp(prefix="lightspeed-")
        item.config.add_cleanup(lambda: shutil.rmtree(stash[STORE], ignore_errors=True))
    environment = kernel_environment(Path(stash[STORE]))
    with mock.patch.dict(os.environ, environment), forked_kernels():
        return (yield)


def pytest_itemcollected(item):
    if isinstance(item, IPyNbCell):
        item.compare_outputs = functools.partial(_same_values, item)


def _same_values(item, fresh, committed):
    is_timing = "timed" in item.cell.metadata.get("tags", [])
    item.comparison_traceback = moved(committed, fresh, is_timing)
    return not item.comparison_traceback


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    """A cell, and then what stands between it and the next one."""
    if not isinstance(item, IPyNbCell) or not (spans := _spans(item)):
        return (yield)
    before, after = spans[item.cell_num] if item.cell_num else spans[0], spans[item.cell_num + 1]
    if item.cell_num == 0:
        _hold(item, before)
    result = yield
    _hold(item, after)
    stash = item.parent.stash
    stash[PASSED] = stash.get(PASSED, 0) + 1
    if stash[PASSED] == len(spans) - 1 and item.config.option.nbval:
        note_proof(item.parent.path)
    return result


def _spans(item):
    """(cell of the source, committed cell) pairs: those before the first code cell, then of each
    code cell itself and what follows it. Nothing where no source stands beside the notebook.
    """
    stash, path = item.parent.stash, item.parent.path
    if SPANS in stash:
        return stash[SPANS]
    stash[SPANS] = spans = []
    script = path.with_suffix(".py")
    if not script.exists() or path.parents[1] != ROOT:
        return spans
    cells, committed = page(script).cells, item.parent.nb.cells
    if [cell.id for cell in cells] != [cell.id for cell in committed]:
        item.raise_cell_error(
            f"{script.name} makes other cells; run `lightspeed build {path.stem}`"
        )
    spans.append([])
    for pair in zip(cells, committed, strict=True):
        if pair[0].cell_type == "code":
            spans.append([])
        spans[-1].append(pair)
    return spans


def _hold(item, span):
    """Fill in the prose of a span and try its claims, as the build does."""
    sources = {}
    for place, (cell, _) in enumerate(span):
        if cell.metadata.holds:
            sources[f"{place} holds"] = as_json(cell.metadata.holds)
        if cell.cell_type == "markdown":
            for n, each in enumerate(expressions(cell.source)):
                sources[f"{place} {n}"] = each.python
    if not sources:
        return
    reply = item.parent.kernel.kc.execute(
        "", silent=True, store_history=False, user_expressions=sources, reply=True, timeout=60
    )
    results, faults = reply["content"]["user_expressions"], []
    for place, (cell, committed) in enumerate(span):
        own = {key.split()[1]: r for key, r in results.items() if key.split()[0] == str(place)}
        faults += [f"{r['ename']}: {r['evalue']}" for r in own.values() if r["status"] != "ok"]
        if faults or not own:
            continue
        values = {key: ast.literal_eval(r["data"]["text/plain"]) for key, r in own.items()}
        faults += [fault for _, fault in json.loads(values.pop("holds", "[]"))]
        if cell.cell_type == "markdown" and committed.source != (
            new := fill(cell.source, list(values.values()))
        ):
            faults += moved_text(committed.source, new) or [
                f"prose: {committed.source} became {new}"
            ]
    if faults:
        item.raise_cell_error("What stands beside this cell does not hold", "\n".join(faults))

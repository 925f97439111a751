"""Claims as code: a false one stops the build and says which case failed, none reaches a reader,
each says something about its page, and a changed constant or law does not pass unnoticed.
"""

import ast
import json
import re
import sys
from dataclasses import replace

import plain
import pytest
from processes import finished

from lightspeed_authoring.build import build, sources
from lightspeed_authoring.claims import ClaimError, check_anchors, claims, false_claims
from lightspeed_authoring.notebooks import label, read
from lightspeed_authoring.sentences import occurs
from lightspeed_authoring.statements import ROOMS, ROOT, held_by_tests, of_outside, outside
from lightspeed_course.content.wrong_claims import claims as gallery_claims
from lightspeed_course.practice import question_files as files
from lightspeed_course.practice.questions import question, topics

# --- pages ----------------------------------------------------------------------------------------

PAGE = """\
# %%
a, b = 1, 2
print("b is larger than a.")

# %% tags=["holds"]
assert b > a, "b is larger than a"

# %% [markdown]
# So a is
# smaller than b. All agree.

# %% tags=["holds"]
from math import inf

assert a < b < inf, "smaller than b"
assert all(x <= b for x in (a, b)), "All agree"
"""


def built(tmp_path, source):
    (tmp_path / "chapters").mkdir(exist_ok=True)
    script = tmp_path / "chapters" / "01_page.py"
    script.write_text(source, encoding="utf-8")
    return build([script], tmp_path), script


def test_no_claim_reaches_a_reader(tmp_path):
    faults, script = built(tmp_path, PAGE)
    assert faults == []
    text = script.with_suffix(".ipynb").read_text("utf-8")
    assert "holds" not in text and "assert" not in text and "smaller than b. All agree." in text


@pytest.mark.slow
def test_a_page_with_claims_is_the_page_without(tmp_path):
    _, script = built(tmp_path, PAGE)
    with_claims = script.with_suffix(".ipynb").read_bytes()
    built(tmp_path, re.sub(r'(?ms)^# %% tags=\["holds"\]\n.*?(?=^# %%|\Z)', "", PAGE))
    assert script.with_suffix(".ipynb").read_bytes() == with_claims


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        (
            "a < b < inf",
            "a > b",
            "chapters/01_page.py:15: cell .* smaller than b\n    a > b is false: a = 1, b = 2",
        ),
        (
            "x <= b for",
            "x < b for",
            "chapters/01_page.py:16: .*: All agree\n    for x = 2: x < b is false: x = 2, b = 2",
        ),
        ("a < b < inf", "a and b", "a and b: TypeError: a condition is True or False, not 2"),
        pytest.param("a < b < inf", "a < c", "a < c: NameError", marks=pytest.mark.slow),
        ("b > a,", "b < a,", "chapters/01_page.py:6: cell .* does not hold: b is larger than a"),
        ('"b is larger than a"', '"c is"', "01_page.py:6: no string of the cell before it has the"),
        ('"All agree"', '"None agree"', "01_page.py:16: no sentence of the text before it has the"),
    ],
)
def test_a_false_claim_stops_the_build(tmp_path, old, new, words):
    (fault,), script = built(tmp_path, new.join(PAGE.rsplit(old, 1)))
    assert re.search(words, fault), fault
    assert not script.with_suffix(".ipynb").exists()


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ('# %% tags=["holds"]\nassert x > 1, "x"\n', "01_page.py:2: .* stands behind the cell"),
        (
            PAGE + '\n# %% tags=["holds"]\nassert a < b, "So"\n',
            "stands behind the cell .* one each",
        ),
    ],
)
def test_a_claim_stands_behind_its_words(tmp_path, source, words):
    (fault,), _ = built(tmp_path, source)
    assert re.search(words, fault), fault


def test_what_a_claim_needs_stays_out_of_the_page(tmp_path):
    (fault,), _ = built(tmp_path, PAGE + "\n# %%\ninf\n")
    assert "NameError: name 'inf' is not defined" in fault


# --- what can be said -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("source", "line", "words"),
    [
        ("assert x > 1", 0, "names the words it holds"),
        ("\nassert (x > 1, 'so')", 1, "names the words it holds"),
        ("assert x > 1, f'{x}'", 0, "names the words it holds"),
        ("for x in y:\n    assert x, 'so'", 0, "a claim stands by itself"),
        ("assert abs(1 / 0.8 - 1.25) < 1e-9, 'so'", 0, "reads no name of the page"),
        ("assert all(k < 9 for k in range(9)), 'so'", 0, "reads no name of the page"),
        ("x = 3\nassert x < 9, 'so'", 1, "x < 9 reads no name of the page"),
        ("assert math.pi > 3, 'so'", 0, "reads no name of the page"),
        ("assert x, 'so'\n#\n# ## The next section", 1, "that no reader would see"),
    ],
)
def test_refuses_a_claim_that_says_nothing(source, line, words):
    with pytest.raises(ClaimError, match=words) as caught:
        claims(source)
    assert caught.value.line == line


def test_an_anchor_stands_once():
    found = claims("assert x, 'than'")
    check_anchors(found, "It is more than one.", markdown=True)
    for text in ("It is more.", "It is more than one. It is less than two."):
        with pytest.raises(ClaimError, match="sentence of the text before it has the words 'than'"):
            check_anchors(found, text, markdown=True)
    check_anchors(found, 'f(caption="more than", alt="less than")', markdown=False)


@pytest.mark.parametrize(
    ("condition", "fault"),
    [
        ("low < high and high < low", "high < low is false: high = 2, low = 1"),
        ("low > high or low == high", "low > high or low == high is false: low > high = False"),
        ("not low < high", "not low < high is false"),
        ("all(k < high for k in range(9) if k)", "for k = 2: k < high is false: k = 2, high = 2"),
        (
            "all(i + j < high and i < 1 for i in (0, 1) for j in (0, 1))",
            "for i = 1, j = 0: i < 1 is false: i = 1",
        ),
        ("low / 0 < high", "low / 0 < high: ZeroDivisionError: division by zero"),
        ("high", "high: TypeError: a condition is True or False, not 2"),
    ],
)
def test_a_false_claim_says_which_case_failed(condition, fault):
    ((line, text),) = false_claims(f"\nassert {condition}, 'so'", {"low": 1, "high": 2})
    assert (line, text.split("\n    ")[0]) == (1, "does not hold: so")
    assert text.split("\n    ")[1].startswith(fault), text


def test_numpy_says_true_too():
    numpy = pytest.importorskip("numpy")
    assert not list(false_claims("assert x < 2, 'so'", {"x": numpy.float64(1)}))


# --- the course -----------------------------------------------------------------------------------


def run(jobs):
    """What plain.py prints for its jobs."""
    done = finished(
        [sys.executable, plain.__file__],
        input=json.dumps(jobs),
        env={**plain.os.environ, "PYTHONPATH": str(ROOT / "lib")},
        timeout=3000,  # a page that hangs; all of them take minutes on an idle machine
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.slow
def test_each_claim_turned_round_fails():
    """No condition is true whatever the page says: not one over nothing, or of literals."""
    pages = [label(path) for path in sources() if any(cell.metadata.holds for cell in read(path))]
    assert len(pages) >= 9
    found = run([["never_false", page] for page in pages])
    assert [text for page in found for text in page] == []


@pytest.mark.parametrize("topic", topics())
def test_each_claim_of_a_question_turned_round_fails(topic):
    found = []
    for text in files.texts(topic):
        source = "".join(f"assert ({code}), {words!r}\n" for words, code, _ in text.holds)
        claims(source)  # each reads a name of the library or of the question
        variant = question(text.id).variant()
        for words, code, line in text.holds:
            for node in plain.turned(ast.parse(code, mode="eval").body):
                other = ast.unparse(ast.fix_missing_locations(node))
                turned = replace(text, holds=[(words, other, line)])
                asked = files.built(turned, files.names_of(topic), topic)
                if any(asked.holds[words](**variant.inputs(case)) for case in variant.samples):
                    found.append(f"{topic}.md:{line}: {other}")
    assert found == []


def test_each_claim_of_the_gallery_and_outside_the_pages_turned_round_fails():
    found = []
    for claim in gallery_claims():
        for words, code in claim.holds.items():
            for node in plain.turned(ast.parse(code, mode="eval").body):
                other = ast.unparse(ast.fix_missing_locations(node))
                if not replace(claim, holds={words: other}).false_statements():
                    found.append(f"{claim.id}: {other}")
    for name, source in outside().items():
        found += [f"{name}: {condition}" for _, condition in plain.held_turned(source, {})]
    assert found == []


def test_a_claim_over_nothing_is_found():
    condition = ast.parse("x > 1 and all(k < x for k in range(x - x))", mode="eval").body
    turned = [ast.unparse(ast.fix_missing_locations(node)) for node in plain.turned(condition)]
    assert [eval(code, {"x": 2}) for code in turned] == [False, True]


def test_the_conditions_of_the_gallery_read_what_they_hold():
    for claim in gallery_claims():
        claims("".join(f"assert ({code}), {words!r}\n" for words, code in claim.holds.items()))


def test_claims_outside_the_pages_hold():
    texts = {name: [s.text for s in stated] for name, stated in of_outside().items()}
    assert all(texts[name] for name in ("README.md", *ROOMS)), "a room has moved"
    held = held_by_tests()
    for name, source in outside().items():
        assert list(false_claims(source, {})) == [], name
        held.setdefault(name, []).extend(claim.anchor for claim in claims(source))
    astray = [
        (name, words)
        for name, anchors in held.items()
        for words in anchors
        if not any(occurs(words, text) for text in texts[name])
    ]
    assert not astray

"""Questions as text: what a file of one's own gives, and what is said of each slip in it."""

import math

import pytest

from lightspeed_course import diagnose
from lightspeed_course.practice import question_files as files
from lightspeed_course.practice import questions
from lightspeed_course.practice.question_files import compiled, texts
from lightspeed_course.practice.question_proof import faults
from lightspeed_course.practice.question_text import QuestionError, read
from lightspeed_course.practice.questions import load, question, topics

COPY = """# Mine

- chapter: 01_numbers_to_know

## mine.copy_time

- level: apply
- unit: ms
- tolerance: 5 %
- rests: numbers.transfer_time
- `size = given(2, 1, 2, 8, unit="GB")`
- `link = given(50, 25, 50, unit="GB/s")`
- `slow = given(0.5, 0.25, 0.5)`
- valid: `size != link`

A link of {{link}} runs at {{slow}} of its rate. How long
does a copy of {{size}} take?

1. What is left of the rate.
   `left = rate * slow`
   `rate = link[byte/s]`
2. The bytes over it.
   `size / left == roofline.transfer_time(size, link * slow)`

A link of {{si(link, "byte/s")}} is given.

- **the full rate** `size / link`
  At what rate does the link run?
- **upside down** `left / size`
  Is that a time?
- **bits** `8 * size / left`
  Is the size in bits?

```python
assert link * slow < link, "is given"
```

> Right: `"80 ms"`, `"0.08 s"`
>
> - `40` missing term: the full
>   rate → `rate`
"""


@pytest.fixture
def mine(tmp_path, monkeypatch):
    monkeypatch.setattr(questions, "_registry", dict(questions._registry))
    monkeypatch.setattr(questions, "_own", {})

    def write(text=COPY, python=None):
        (tmp_path / "mine.md").write_text(text)
        if python:
            (tmp_path / "mine.py").write_text(python)
        return tmp_path / "mine.md"

    return write


def test_a_file_of_ones_own_is_asked_and_checked_like_the_course(mine):
    (q,) = load(mine())
    assert question("mine.copy_time") is q
    assert (q.unit, q.tolerance, q.rests) == ("ms", 0.05, ("numbers.transfer_time",))
    variant = q.variant()
    assert list(variant.right) == [80.0]
    assert variant.fill(q.prompt).startswith("A link of 50 GB/s runs at 0.5 of its rate. How long")
    assert "left = rate" not in variant.solution and "**80 ms** (bytes cancel)" in variant.solution
    assert "A link of 50 GB/s is given." in variant.solution
    assert diagnose(variant, "0.08 s").correct
    assert diagnose(variant, 40).name == "the full rate"
    for seed in range(20):
        v = q.variant(seed)
        given = v.inputs()
        assert math.isclose(v.right[0], 1e3 * given["size"] / (given["link"] * given["slow"]))


def test_it_is_loaded_again_as_it_was_changed(mine):
    load(mine())
    load(mine(COPY.replace("5 %", "1 %")))
    assert question("mine.copy_time").tolerance == 0.01


def test_a_step_may_not_hide_the_python_beside_it(mine):
    text = COPY.replace("left = rate", "half = rate")
    with pytest.raises(QuestionError, match=r"'half' already means the Python beside .*, mine\.py"):
        load(mine(text, "def half(x):\n    return x / 2\n"))


def test_its_formulas_call_the_python_beside_it(mine):
    text = COPY.replace("roofline.transfer_time(size, link * slow)", "half_rate(size, link, slow)")
    python = "def half_rate(size, link, slow):\n    return size / (link * slow)\n"
    (q,) = load(mine(text, python))
    assert list(q.variant().right) == [80.0]


def test_a_line_of_a_step_names_something_in_that_step_alone(mine):
    """Here `slow` is another number in the second step, and the result of the first stays."""
    text = COPY.replace(
        "size / left == roofline.transfer_time(size, link * slow)", "size / left * slow"
    )
    text = text.replace("left * slow`\n", "left * slow`\n   `slow = 3`\n")
    (q,) = load(mine(text))
    assert list(q.variant().right) == [240.0]


def test_the_python_beside_it_may_take_the_name_of_a_verb(mine):
    (q,) = load(mine(COPY.replace("size / left ==", "size / left * number =="), "number = 1\n"))
    assert list(q.variant().right) == [80.0] and "1" in q.variant().solution


SLIPS = [
    ("- level: apply", "- levle: apply", 7, "Did you mean 'level'?"),
    ("- level: apply", "- level: hard", 5, "level is one of recall"),
    ("- unit: ms", "- unti: ms", 8, "Did you mean 'unit'?"),
    ("- unit: ms", "- unit: fortnite", 8, "no unit 'fortnite'"),
    ("- tolerance: 5 %", "- tolerance: tight", 9, "expected a share, such as 2 %"),
    ('unit="GB/s"', 'unit="GB/parsek"', 12, "no unit 'parsek'"),
    ("- valid: `size != link`", "- edges: `3`", 14, "edges: 3: expected are values by name"),
    ("{{slow}}", "{{nope}}", 5, "{{nope}}: name 'nope' is not defined"),
    ("{{slow}}", "{{slow +}}", 5, "'{{slow +}}' is not Python"),
    ('link, "is given"', "link, is given", 34, "is not Python"),
    ("given(0.5, 0.25, 0.5)", "0.5", 13, "expected a parameter, as given("),
    ("given(0.5, 0.25, 0.5)", "gven(0.5)", 13, "name 'gven' is not defined"),
    ("{{si(link", "{{so(link", 5, "name 'so'"),
    ("`8 * size / left`", "`8 * sise / left`", 31, "name 'sise'"),
    ("size / left ==", "size / lift ==", 22, "there is no 'lift'"),
    ("size / left ==", "size / left = ", 22, "not Python: cannot assign"),
    ("size / left ==", "size * left ==", 22, "comes out in byte*byte/s"),
    ("size / left ==", "2 * size / left ==", 22, "the library says"),
    ("rate = link[byte/s]", "rate = link[byte]", 22, "comes out in no unit"),
    (
        "left = rate",
        "size = rate",
        19,
        "the name 'size' already means a parameter of this question",
    ),
    ("left = rate", "given = rate", 19, "the name 'given' already means a function"),
    ("`size / link`", "`size / `", 27, "is not Python"),
    ("`size / link`", "`*size`", 27, "'*size': expected a formula"),
    ("`size / link`", "`size / (link * slow)`", 27, "is the right answer; expected a wrong one"),
    ("`size / link`", "`roofline.ridge_point(size, link)`", 27, "float(...)"),
    (
        "size / left ==",
        'size / accelerator("h100_sxm").bf16 ==',
        22,
        "accelerator('h100_sxm').bf16: expected arithmetic on names, constants and ceil,",
    ),
    ("size / left ==", "size / -left ==", 22, "-left: expected arithmetic on names"),
    ("size / left ==", "size / (left - left) ==", 22, "division by zero"),
    ("`size / link`", "`16 * size / (2 * left)`", 31, "bits: comes to the same as the full rate,"),
    ("link * slow < link", "link < 0", 35, "does not hold: is given"),
    ('assert link * slow < link, "is given"', "x = 1", 34, "expected assert CONDITION"),
    ("> - `40` missing term:", "> - 40 missing term:", 40, "expected Right: `answer`"),
    ("## mine.copy_time", "## Copy time", 5, "topic.name"),
    ("## mine.copy_time", "## roofline.copy_time", 5, "is a topic of the course"),
    ("## mine.copy_time", "### mine.copy_time", 5, "begins with two signs"),
    (COPY, "Nothing yet.", 1, "no question: one begins with"),
]


@pytest.mark.parametrize(("right", "slip", "line", "said"), SLIPS, ids=lambda x: str(x)[:24])
def test_a_slip_is_told_with_its_line(mine, right, slip, line, said):
    assert right in COPY
    with pytest.raises(QuestionError) as error:
        load(mine(COPY.replace(right, slip, 1)))
    assert str(error.value).startswith(f"mine.md:{line}: ") and said in str(error.value)


def test_all_faults_of_a_file_are_told_at_once_in_order_and_once(mine):
    """In three questions, of what is read, what is built, and what the variants show."""
    second = (
        COPY.partition("## ")[2].replace("mine.copy_time", "mine.other").replace("5 %", "tight")
    )
    third = (
        COPY.partition("## ")[2]
        .replace("mine.copy_time", "mine.third")
        .replace("- unit: ms", "- unti: ms")
    )
    first = COPY.replace("size / left ==", "size * left ==").replace(
        "link * slow < link", "link < 0"
    )
    first = first.replace("`8 * size / left`", "`8 * sise / left`")
    second = second.replace("{{slow}}", "{{nope}}").replace("given(50,", "gven(50,")
    with pytest.raises(QuestionError) as error:
        load(mine(f"{first}\n## {second}\n## {third}"))
    told = [(line, reason[:22]) for line, reason in error.value.faults]
    assert told == [
        (22, "size * left: comes out"), (31, "NameError: name 'sise'"),
        (35, "does not hold: is give"), (43, "{{nope}}: name 'nope' "),
        (47, "tolerance: tight: expe"), (50, 'gven(50, 25, 50, unit='),
        (84, "'unti: ms': expected -"),
    ]  # fmt: skip
    lines = str(error.value).splitlines()
    assert [line.split(": ")[0] for line in lines] == [f"mine.md:{line}" for line, _ in told]
    with pytest.raises(LookupError):
        question("mine.copy_time")


@pytest.mark.parametrize(
    "right, slip, line",
    [
        ("`link = given(50, 25,", "`link = given(50 25,", 12),
        ("`left = rate * slow`", "`left = rate *`", 19),
        (
            "`left = rate",
            "`print x; left = rate",
            19,
        ),
    ],
)
def test_what_cannot_be_read_hides_nothing_and_brings_nothing(mine, right, slip, line):
    """A parameter or a step: of the question's other faults each is told, and no fault of it."""
    assert right in COPY
    text = COPY.replace(right, slip).replace("5 %", "tight").replace("{{slow}}", "{{nope}}")
    with pytest.raises(QuestionError) as error:
        load(mine(text))
    assert sorted(n for n, _ in error.value.faults) == sorted([5, 9, line]), error.value


def test_misconceptions_that_no_answer_tells_apart_are_so_by_a_word(mine):
    slip = COPY.replace("`8 * size / left`", "`size / left * slow`").replace("**bits**", "**b**")
    with pytest.raises(QuestionError, match=r"mine\.md:31: b: comes to the same as the full rate"):
        load(mine(slip))
    (q,) = load(mine(slip.replace("**b**", "**b** (also)")))
    assert diagnose(q.variant(), 40).name == "the full rate or b"


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(QuestionError, match="no such file; expected one such as"):
        load(tmp_path / "none.md")


def test_a_module_of_the_library_is_there_by_its_name_inside_a_comprehension_too(mine):
    slip = "max(roofline.transfer_time(s, link) for s in [size])"
    (q,) = load(mine(COPY.replace("`size / link`", f"`{slip}`")))
    assert list(q.variant().wrong(q.misconceptions[0])) == [40.0]


def test_lines_break_anywhere():
    (text,) = read(COPY, "mine.md")
    assert text.prompt.endswith("How long does a copy of {{size}} take?")
    assert text.wrong == [(40, "missing term", "the full rate", "rate")]
    assert text.right == ["80 ms", "0.08 s"]


@pytest.mark.parametrize("topic", topics())
def test_units_and_values_of_each_question_are_right(topic):
    found = [(text.id, *f) for text in texts(topic) for f in faults(text, question(text.id))]
    assert found == []


def test_what_the_site_gets_read_answers_as_the_text_does():
    module = {}
    exec(compiled("nccl"), module)
    for each in module["TEXTS"]:
        q = files.built(files.Text(*each), files.names_of("nccl"), "nccl.md")
        ours, theirs = question(q.id).variant(3), q.variant(3)
        assert ours.right == theirs.right and ours.prompt == theirs.prompt
        for m, n in zip(ours.question.misconceptions, q.misconceptions, strict=True):
            assert repr(ours.wrong(m)) == repr(theirs.wrong(n))

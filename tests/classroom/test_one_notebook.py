"""One notebook for all, as Canvas hands out: each id draws what an own notebook would have shown,
and whose a submission is, the sender says.
"""

import _thread
import base64
import json
import re
import time

import pytest
from scored import ROOFLINE, right

from lightspeed_class.class_folder import ClassError, ClassFolder
from lightspeed_class.grading.grade import grade
from lightspeed_class.handout.incident_notebook import write as write_incident
from lightspeed_class.handout.prose_notebook import write as write_prose
from lightspeed_class.handout.release import release
from lightspeed_class.intake.collect import collect
from lightspeed_class.intake.origins import Origins, remarks, told_student
from lightspeed_course.practice import own_numbers as sealing
from lightspeed_course.practice.own_numbers import COST, NoStudent, own_numbers, seal
from lightspeed_course.practice.questions import question

NAME = "02_roofline"
OF_A_TRY = 128 * COST["n"] * COST["r"]  # bytes that scrypt fills and reads


@pytest.fixture(autouse=True)
def cheap_tries(monkeypatch):
    monkeypatch.setitem(COST, "n", 2)


@pytest.fixture
def book(course):
    with course.book() as book:
        book.add_student("ada", "Ada Lovelace", seed="0a0a0a0a0a0a", email="al@example.org")
        book.add_student(
            "s011", "Bob", seed="0b0b0b0b0b0b", sis_login_id="bob7", canvas_id="990022"
        )
        yield book


def cells(content):
    return {cell["id"]: cell for cell in json.loads(content)["cells"]}


def one(course, version=1, name=NAME):
    return (course.released(name) / f"v{version}" / f"{name}.ipynb").read_bytes()


def filled(content, student, extra=()):
    """The notebook with an id written in, and cells after its own."""
    notebook = json.loads(content)
    for cell in notebook["cells"]:
        cell["source"] = cell["source"].replace('STUDENT = ""', f"STUDENT = {student!r}")
    notebook["cells"] += [
        {"cell_type": "code", "id": f"x{i}", "metadata": {}, "outputs": [], "source": source}
        for i, source in enumerate(extra)
    ]
    return json.dumps(notebook).encode()


def shown(content, monkeypatch):
    """What its questions show once it was run: the prompts."""
    import lightspeed_course

    for name in ("LIGHTSPEED_SEED", "LIGHTSPEED_CLASS", "LIGHTSPEED_VERSION", "LIGHTSPEED_ASKED"):
        monkeypatch.setenv(name, "")
    prompts, namespace = [], {}
    for cell in cells(content).values():
        asked = re.search(r'^ask\(("[\w.]+")(, NUMBERS)?\)', cell["source"], re.MULTILINE)
        if cell["cell_type"] == "code" and cell["id"] == "class-setup":
            exec(cell["source"], namespace)
        elif cell["cell_type"] == "code" and asked:
            page = eval(asked[0], {"ask": lightspeed_course.ask, **namespace})
            prompts.append(getattr(page, "static", None) or page._repr_markdown_())
    return prompts


@pytest.mark.holds("docs/teach.md", "draws that student's numbers")
def test_an_id_draws_what_an_own_notebook_shows(course, book, monkeypatch):
    release(course, book, NAME, one=True)
    release(course, book, NAME)
    content = one(course)
    for id in ("ada", "s011"):
        own = json.loads((course.released(NAME) / f"v2/{id}/{NAME}.ipynb").read_bytes())
        theirs = [
            o["data"]["text/plain"]
            for c in own["cells"]
            if "ask(" in c["source"]
            for o in c.get("outputs", ())
        ]
        mine = shown(filled(content, id), monkeypatch)
        assert len(mine) == len(theirs) > 10
        other = [(a, b) for a, b in zip(theirs, mine, strict=True) if not b.startswith(a)]
        assert not other
    assert shown(filled(content, "ada"), monkeypatch) != shown(filled(content, "s011"), monkeypatch)


def test_every_name_of_a_student_draws_and_slips_are_told(course, book, capsys):
    book.add_student("cy", "Cy", seed="0c0c0c0c0c0c", email="bob7@example.org")
    release(course, book, NAME, one=True)
    sealed = re.search(r'own_numbers\(STUDENT, "([^"]+)"', one(course).decode().replace("\\", ""))
    for name, seed in {
        "ada": "0a", " ADA ": "0a", "al@example.org": "0a", "al": "0a", "S011": "0b",
        "cy": "0c", "bob7@example.org": "0c",
    }.items():  # fmt: skip
        assert own_numbers(name, sealed[1]) == seed * 6, name
    assert "the numbers of ada." in capsys.readouterr().out
    for given, words in {
        "": "is empty", "...": "is empty", ...: "is empty", 11: 'mean STUDENT = "11"',
        "11": "no student of this class", "'ada'": 'mean "ada"', "s 011": 'mean "s011"',
        "so11": 'mean "s011"', "ada@school.edu": 'mean "ada"', "aad": 'mean "ada"',
        "bob7": "no student of this class",  # two go by it
        "eve": "If you joined later",
    }.items():  # fmt: skip
        with pytest.raises(NoStudent, match=words):
            own_numbers(given, sealed[1])


@pytest.mark.holds("docs/teach.md", "It holds no names and no seed")
def test_it_lists_nobody_and_holds_no_seed(course, book):
    release(course, book, NAME, one=True)
    content = one(course).decode()
    about = {s for one in book.students() for s in (one.seed, one.name, *one.details.values())}
    assert not [text for text in {*about, "s011", book.secret} - {""} if text in content]
    # nor can what one id opens be opened by another
    sealed = seal({"ada": "f" * 12, "bob": "0" * 12}, b"12345678")
    assert b"f" * 12 not in base64.b64decode(sealed.removeprefix("2:"))
    assert own_numbers("ada", sealed) != own_numbers("bob", sealed)


def test_a_try_costs_memory_and_what_was_given_out_before_opens():
    """A million tries take half a day of a core; earlier notebooks have no cost on them."""
    assert OF_A_TRY == 16 << 20
    given_out = "MTIzNDU2NzgMFU33XPTOAyUOjr51f9pQDBD0"
    assert own_numbers("Ada ", given_out) == "0a0a0a0a0a0a"
    assert own_numbers("ada", seal({"ada": "0a" * 6}, b"12345678")) == "0a0a0a0a0a0a"
    with pytest.raises(NoStudent):
        own_numbers("bob", given_out)


def test_versions(course, book):
    first = release(course, book, NAME, one=True)
    assert (first.version, first.given) == (1, ("ada", "s011"))
    content = one(course)
    assert release(course, book, NAME, one=True).given == ()
    book.set_left("s011", True)
    book.add_student("ada", "Ada Lovelace", email="new@example.org")
    assert release(course, book, NAME, one=True).version == 1 and one(course) == content
    book.add_student("zoe", "Zoe", seed="0d" * 6)
    assert release(course, book, NAME, one=True).version == 2
    assert one(course) == content  # what was given out stays
    for version in (1, 2):  # and draws the same
        text = re.search(r'own_numbers\(STUDENT, \\"([^"\\]+)', one(course, version).decode())[1]
        assert own_numbers("ada", text) == "0a" * 6
    assert own_numbers("zoe", text) == "0d" * 6
    readme = (course.released(NAME) / "README.txt").read_text()
    assert "Upload it once" in readme and "{" not in readme
    assert f"v2/{NAME}.ipynb" in (course.released(NAME) / "handout.csv").read_text("utf-8-sig")


def test_a_release_seals_each_name_once_says_how_long_and_ctrl_c_ends_it(course, book, monkeypatch):
    """A name of scrypt takes a twentieth of a second, and a class has some hundreds."""
    for n in range(60):
        book.add_student(f"t{n}", seed=f"{n:012x}", email=f"mail{n}@example.org")
    key, names, lines = sealing._key, [], []

    def interrupt(name, salt, size):
        names.append(name)
        if len(names) == 3:
            _thread.interrupt_main()
        time.sleep(0.02)
        return key(name, salt, size)

    monkeypatch.setattr(sealing, "_key", interrupt)
    with pytest.raises(KeyboardInterrupt):
        seal({f"s{n}": "0a" * 6 for n in range(2000)}, b"12345678")
    assert 3 <= len(names) < 1000
    monkeypatch.setattr(sealing, "_key", lambda *about: names.append(about[0]) or key(*about))
    names.clear()
    release(course, book, NAME, one=True, progress=lines.append)
    ids = {s.id for s in book.students()}
    assert sorted(names) == sorted([*ids, *{*names}])  # ids for the version, then all names
    assert len({*names}) == 62 + 60 * 2 + 2 + 1
    assert [line.partition(", about")[0] for line in lines] == [
        "Sealing 62 names", "Sealing 185 names",
    ]  # fmt: skip
    names.clear()
    release(course, book, NAME, one=True)
    assert sorted(names) == sorted(ids)


def test_the_senders_numbers_count(course, book, tmp_path):
    """Canvas says who handed in; the id that is written says whose numbers were shown."""
    release(course, book, NAME, one=True)
    ridge = "roofline.ridge"
    answers = {id: f'check("{ridge}", {right(ridge, book.student(id).seed)!r})' for id in ("ada",)}
    sent = {
        "lovelaceada_11_501_02_roofline.ipynb": filled(one(course), "s011", [answers["ada"]]),
        "bob_990022_502_02_roofline.ipynb": filled(one(course), "adda"),
    }
    for name, content in sent.items():
        (tmp_path / name).write_bytes(content)
    done = collect(course, book, NAME, [tmp_path / name for name in sent])
    assert {row.student: row.verdict for row in done.rows} == {"ada": "new", "s011": "new"}
    told = {id: " ".join(lines) for id, lines in remarks(book, NAME).items()}
    assert "is s011, but ada handed it in" in told["ada"] and "by the numbers of ada" in told["ada"]
    assert 'is "adda", which is nobody' in told["s011"]
    origins, assignment = Origins(book, NAME), book.assignment(NAME)
    for id, submission in book.counting(NAME).items():
        assert origins.seed(id, book.content(submission.id)) == book.student(id).seed
        assert "is not you" in told_student(book, submission, origins)
    mine = book.counting(NAME)["ada"]
    graded = grade(
        book.content(mine.id), assignment, book.student("ada").seed, book.secret, isolated=False
    )
    assert next(s for s in graded.scores if s.question == ridge).points == 1
    # with the own id, under any of its names, there is nothing to tell
    for name in ("s011", "BOB7"):
        assert Origins(book, NAME).oddity("s011", filled(one(course), name)) == ("", "")


def test_without_a_platform_the_written_id_says_whose_it_is(course, book, tmp_path):
    release(course, book, NAME, one=True)
    (tmp_path / "x.ipynb").write_bytes(filled(one(course), "al@example.org"))
    (row,) = collect(course, book, NAME, [tmp_path / "x.ipynb"]).rows
    assert row.student == "ada" and "anybody could have written there" in row.note


def test_who_hands_in_together_is_graded_by_the_id_of_any_of_them(course, book):
    book.add_student("ada", "Ada Lovelace", group="A")
    book.add_student("s011", "Bob", group="a")
    release(course, book, NAME, one=True)
    origins = Origins(book, NAME)
    for id in ("ada", "s011"):
        content = filled(one(course), id)
        assert origins.seed("ada", content) == book.student(id).seed
        assert origins.oddity("ada", content) == ("", "")


def test_what_cannot_be_one_notebook_says_so(course, book):
    path = write_incident(course, "training")
    with pytest.raises(ClassError, match="without --one-notebook"):
        release(course, book, str(path), one=True)
    settings = course.root / "class.toml"
    settings.write_text(settings.read_text().replace("variants = true", "variants = false"))
    with pytest.raises(ClassError, match="anyway"):
        release(ClassFolder.find(course.root), book, NAME, one=True)


def test_prose_and_functions_are_asked_as_ever(course, book):
    path = write_prose(course, "why_slower", "Why?", ROOFLINE.stem)
    release(course, book, str(path), one=True)
    ours, theirs = cells(path.read_bytes()), cells(one(course, name=path.stem))
    functions = [
        id
        for id, cell in theirs.items()
        for asked in re.findall(r'check\("([\w.]+)"', cell["source"])
        if question(asked).kind == "function"
    ]
    assert functions
    assert all(
        "".join(ours[id]["source"]) == cell["source"]
        for id, cell in theirs.items()
        if id in ours and "ask(" not in cell["source"]
    )
    assert "prose.why_slower" in book.assignment(path.stem).prose

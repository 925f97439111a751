"""The gradebook loses nothing: not when killed, not in a regrade, not what people added by hand."""

import dataclasses
import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest
from cases import ASSIGNMENT, QUESTIONS, right
from processes import finished

from lightspeed_class.gradebook import file as book_file
from lightspeed_class.gradebook.book import Gradebook
from lightspeed_class.gradebook.schema import MIGRATIONS, Newer
from lightspeed_class.grading import batch
from lightspeed_class.grading.batch import grade_all, replay
from lightspeed_class.score import Graded, Score

GRADE = """
import sys
from lightspeed_class.grading.batch import grade_all
from lightspeed_class.gradebook import file as book_file
from lightspeed_class.gradebook.book import Gradebook
if __name__ == "__main__":
    with Gradebook(sys.argv[1]) as book:
        print(grade_all(book, "hostile", progress=lambda *_: print("one", flush=True)).failed, flush=True)
"""


@pytest.fixture
def book(tmp_path):
    with Gradebook(tmp_path / "gradebook.sqlite3") as book:
        book.add_assignment(ASSIGNMENT, seeded=False)
        book.add_student("ada", "Ada", seed="1", email="ada@example.org")
        book.add_student("bob", "Bob")
        yield book


def graded(points):
    scores = tuple(Score(q, points, 1.0, "right") for q in QUESTIONS.values())
    return Graded("ok", scores, ("a note",), {"seed": None})


class AtOnce:
    """A pool that works in this thread."""

    def __init__(self, work):
        self.work = work

    def submit(self, function, *arguments):
        future = Future()
        try:
            future.set_result(self.work(*arguments))
        except Exception as error:
            future.set_exception(error)
        return future


def test_the_roster(book):
    book.add_student("ada", "Ada L.", seed="2", section="B")
    ada = book.student("ada")
    assert (ada.name, ada.seed, ada.details) == ("Ada L.", "1", {"section": "B"})
    assert [s.id for s in book.students()] == ["ada", "bob"]
    assert book.seed("hostile", "ada") is None  # not seeded


def test_every_submission_is_kept_and_the_latest_counts(book):
    first = book.add_submission("ada", "hostile", b"1", at=1, source="mail")
    late = book.add_submission("ada", "hostile", b"2", at=9)
    assert book.add_submission("ada", "hostile", b"1", at=5) == first
    assert [s.id for s in book.submissions("hostile", "ada")] == [first, late]
    assert (book.content(first), book.content(late)) == (b"1", b"2")
    assert book.counting("hostile")["ada"].id == late
    book.choose(first)
    assert book.counting("hostile")["ada"].id == first
    with pytest.raises(sqlite3.IntegrityError):
        book.add_submission("nobody", "hostile", b"1", at=1)


@pytest.mark.holds("docs/teach.md", "which no grading touches")
def test_manual_points_stay_over_regrades_and_have_a_history(book):
    id = book.add_submission("ada", "hostile", b"1", at=1)
    word = QUESTIONS["word"]
    book.add_grading(id, "first", graded(1.0))
    before = book.latest("hostile")
    book.set_manual("ada", "hostile", word, 0.25, "half said", "me")
    book.set_manual("ada", "hostile", word, 0.5, "rather more", "me")
    book.set_manual("ada", "hostile", "", 1.0, "for the plot", "me")
    book.set_manual("bob", "hostile", "", None, "come and see me", "me")
    book.add_grading(id, "second", graded(0.0))
    ada, bob = book.results("hostile")
    assert (ada.points, ada.out_of, ada.scores[word].points, ada.manual[word].comment) == (
        1.5,
        4.0,
        0.0,
        "rather more",
    )
    assert (bob.points, bob.submission, bob.manual[""].comment) == (None, None, "come and see me")
    assert [m.points for m in book.manual("hostile", "ada")] == [0.25, 0.5, 1.0]
    assert [
        (c.student.id, c.before.points, c.after.points) for c in book.changes("hostile", before)
    ] == [("ada", 1.0, 0.0)] * 4
    assert book.changes("hostile", book.latest("hostile")) == book.changes("hostile", {}) == []
    assert [g.key for g in book.gradings(id)] == ["first", "second"]


def test_marks_by_hand_keep_their_share_of_points_that_change(book):
    """Also those of a rubric, which count from a base; each is an entry that can be undone."""
    ridge, word, roof = (QUESTIONS[q] for q in ("ridge", "word", "roof"))
    item = book.set_item("hostile", word, "Half of it.", -0.5)
    book.set_manual("ada", "hostile", ridge, 0.5, "Nearly.", "eve")
    book.set_manual("ada", "hostile", word, None, "", "eve", [item], base=1.0)
    book.set_manual("ada", "hostile", roof, None, "Only words.", "eve")
    points = ASSIGNMENT.points | {ridge: 5.0, word: 3.0, roof: 2.0}
    for _ in range(2):  # once, however often it is released
        book.add_assignment(dataclasses.replace(ASSIGNMENT, points=points), seeded=False)
    manual = book.results("hostile", "ada")[0].manual
    assert {q: (m.points, m.comment) for q, m in manual.items()} == {
        ridge: (2.5, "Nearly."), word: (2.5, ""), roof: (None, "Only words."),
    }  # fmt: skip
    assert manual[ridge].by == "release" and len(book.manual("hostile", "ada", roof)) == 1
    book.undo_manual("ada", "hostile", ridge, "eve")
    assert book.results("hostile", "ada")[0].manual[ridge].points == 0.5


def test_an_entry_with_neither_points_nor_words_takes_the_one_before_back(book):
    book.set_manual("ada", "hostile", "", 2.0, "gut", "me")
    book.set_manual("ada", "hostile", "", None, "", "me")
    ada, _ = book.results("hostile")
    assert (ada.manual, ada.points) == ({}, None) and len(book.manual("hostile", "ada")) == 2


def test_what_is_kept_cannot_be_changed(book):
    id = book.add_submission("ada", "hostile", b"1", at=1)
    book.add_grading(id, "key", graded(1.0))
    book.add_grading(id, "key", graded(0.0))  # nothing is graded twice
    book.set_manual("ada", "hostile", "", 1.0)
    assert [g.graded for g in book.gradings(id)] == [graded(1.0)]
    with sqlite3.connect(book.path) as file:
        for table in ("submissions", "gradings", "manual"):
            for change in (f"DELETE FROM {table}", f"UPDATE {table} SET at = 0"):
                with pytest.raises(sqlite3.IntegrityError, match="only added"):
                    file.execute(change)


def test_a_new_version_of_an_assignment(book):
    book.add_assignment(ASSIGNMENT, seeded=False)
    assert book.assignment("hostile") == dataclasses.replace(ASSIGNMENT)
    book.add_assignment(dataclasses.replace(ASSIGNMENT, points={QUESTIONS["word"]: 3}), seeded=True)
    assert book.assignment("hostile").points[QUESTIONS["word"]] == 3
    assert (book.assignments(), book.seed("hostile", "ada")) == (["hostile"], "1")
    with pytest.raises(KeyError):
        book.assignment("other")


def test_the_secret_is_made_once_and_a_newer_file_is_refused(book, tmp_path):
    with Gradebook(book.path) as again, Gradebook(tmp_path / "other") as other:
        assert again.secret == book.secret != other.secret
        assert again.setting("course", "ML") == book.setting("course") == "ML"
    with sqlite3.connect(book.path) as file:
        assert file.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        file.execute(f"PRAGMA user_version = {len(MIGRATIONS) + 1}")
    with pytest.raises(Newer):
        Gradebook(book.path)


@pytest.mark.holds("docs/teach.md", "the gradebook goes without a write-ahead log")
def test_on_a_network_the_gradebook_goes_without_memory_that_processes_share(book, monkeypatch):
    """Also one that has a write-ahead log from before; what is below a mount is on its kind."""
    mounts = book.path.parent / "mountinfo"
    line = "36 25 0:33 / {} rw,relatime shared:1 - {} source rw\n".format
    folder = str(book.path.parent).replace(" ", "\\040")
    mounts.write_text(line("/", "ext4") + line(folder, "nfs4") + line("/elsewhere", "ext4"))

    def mode():
        with Gradebook(book.path) as again:
            assert again.student("ada").name == "Ada"
            return again._file.execute("PRAGMA journal_mode").fetchone()[0]

    assert not book_file.on_network(book.path) and mode() == "wal"
    book.close()
    monkeypatch.setattr(book_file, "MOUNTS", mounts)
    assert book_file.on_network(book.path) and mode() == "delete"
    assert not book_file.on_network("/elsewhere/book") and not book_file.on_network("/book")
    with Gradebook(book.path.parent / "another") as new:
        assert new._file.execute("PRAGMA journal_mode").fetchone()[0] == "delete"


def test_a_migration_that_fails_changes_nothing(book, monkeypatch):
    monkeypatch.setattr(
        "lightspeed_class.gradebook.file.MIGRATIONS",
        (*MIGRATIONS, "CREATE TABLE more (x);\nCREATE TABLE more (x);"),
    )
    with pytest.raises(sqlite3.OperationalError):
        Gradebook(book.path)
    monkeypatch.undo()
    with Gradebook(book.path) as again:
        assert [s.id for s in again.students()] == ["ada", "bob"]


def test_one_that_cannot_be_graded_does_not_stop_the_rest(book):
    bad = book.add_submission("ada", "hostile", b"bad", at=1)
    good = book.add_submission("bob", "hostile", b"good", at=2)
    refused = book.add_submission("bob", "hostile", None, at=1, reason="It is a link.")

    def work(content, *_):
        if content == b"bad":
            raise RuntimeError("a fault of the grader")
        return graded(1.0)

    seen = []
    tally = grade_all(book, "hostile", submit=AtOnce(work), progress=lambda *a: seen.append(a))
    assert tally.failed == {bad: "RuntimeError: a fault of the grader"}
    assert (tally.graded, tally.unreadable) == (2, 1)
    assert [len(book.gradings(id)) for id in (bad, good, refused)] == [0, 1, 1]
    assert book.gradings(refused)[0].graded.notes == ("It is a link.",)
    assert seen[-1][:2] == (2, 3)
    assert grade_all(book, "hostile", submit=AtOnce(lambda *_: graded(1.0))).graded == 1


def test_a_regrade_goes_by_what_decides_the_scores(book, monkeypatch):
    id = book.add_submission("ada", "hostile", b"1", at=1)
    for options, count in (
        ({}, 1),
        ({}, 1),
        ({"regrade": True}, 1),
        ({"regrade": True, "label": "x"}, 2),
        ({"regrade": True, "label": "x"}, 2),
    ):
        grade_all(book, "hostile", submit=AtOnce(lambda *_: graded(1.0)), **options)
        assert len(book.gradings(id)) == count
    before = book.latest("hostile")
    monkeypatch.setattr(batch, "grader", lambda: "other code")
    assert grade_all(book, "hostile", submit=AtOnce(lambda *_: graded(1.0))).graded == 0
    assert (
        grade_all(book, "hostile", submit=AtOnce(lambda *_: graded(0.0)), regrade=True).graded == 1
    )
    assert len(book.changes("hostile", before)) == 4


def test_replay_gives_the_same(book):
    book.add_submission("ada", "hostile", right(), at=1)
    with ThreadPoolExecutor(1) as pool:
        assert grade_all(book, "hostile", submit=pool).graded == 1
    same, before, after, differ = replay(book, 1)
    assert same and not differ and before.scores == after.scores and before.points == 4


@pytest.mark.usefixtures("sandboxed")
@pytest.mark.slow
def test_killed_at_any_moment_it_goes_on(tmp_path):
    count, rng = 16, random.Random(5)
    results = {}
    for name, kills in (("disturbed", 4), ("undisturbed", 0)):
        path = tmp_path / f"{name}.sqlite3"
        with Gradebook(path) as book:
            book.setting("secret", "the same in both")
            book.add_assignment(ASSIGNMENT, seeded=False)
            for i in range(count):
                book.add_student(f"s{i:02}")
                book.add_submission(
                    f"s{i:02}",
                    "hostile",
                    right(
                        word=f'check("roofline.what_shortens_it", "{["bandwidth", "peak"][i % 2]}")'
                    ),
                    at=i,
                )
            book.set_manual("s03", "hostile", "", 2.0, "by hand")
        for _ in range(kills):
            run = subprocess.Popen(
                [sys.executable, "-c", GRADE, str(path)], stdout=subprocess.PIPE, text=True
            )
            for _ in range(rng.randrange(4)):
                run.stdout.readline()
            time.sleep(0.2 * rng.random())
            workers = children(run.pid)
            run.send_signal(signal.SIGKILL)
            run.wait()
            run.stdout.close()
            wait_until_gone(workers)
        last = finished([sys.executable, "-c", GRADE, str(path)], check=True)
        assert last.stdout.endswith("{}\n")
        with Gradebook(path) as book:
            assert [len(book.gradings(s.id)) for s in book.submissions()] == [1] * count
            results[name] = [
                (
                    r.student.id,
                    r.points,
                    r.grading.graded.digest,
                    r.grading.graded.record,
                    r.manual.get("") and 2.0,
                )
                for r in book.results("hostile")
            ]
    assert results["disturbed"] == results["undisturbed"]
    assert [points for _, points, *_ in results["undisturbed"]][:4] == [4.0, 3.0, 4.0, 5.0]


def children(pid):
    """All that come from a process, or those of them that /proc still shows."""
    found = []
    for file in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in file.read_text().split():
            found += [int(child), *children(child)]
    return found


def command(pid):
    """What a process was started with; nothing if it is gone."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
    except OSError:
        return ""


def wait_until_gone(pids, seconds=10):
    until = time.monotonic() + seconds
    while left := [pid for pid in pids if os.path.exists(f"/proc/{pid}")]:
        assert time.monotonic() < until, [
            json.dumps(Path(f"/proc/{p}/cmdline").read_text()) for p in left
        ]
        time.sleep(0.02)


@pytest.mark.slow
def test_a_killed_worker_costs_nothing(book):
    for i in range(6):
        book.add_student(f"s{i}")
        book.add_submission(f"s{i}", "hostile", right("time.sleep(0.3)") + b" " * i, at=i)
    killed = []

    def kill_one(*_):
        if not killed:
            workers = [p for p in children(os.getpid()) if "spawn_main" in command(p)]
            killed.append(workers[0])
            os.kill(workers[0], signal.SIGKILL)

    tally = grade_all(book, "hostile", progress=kill_one)
    assert killed and not tally.failed and tally.graded == 6
    assert [len(book.gradings(s.id)) for s in book.submissions()] == [1] * 6


def test_who_has_left_is_no_longer_listed_but_keeps_what_is_there(tmp_path):
    with Gradebook(tmp_path / "book.sqlite") as book:
        book.add_assignment(ASSIGNMENT)
        for student in ("ada", "bob"):
            book.add_student(student, left="yes")
        book.set_manual("bob", "hostile", "", 1.0)
        assert [r.student.id for r in book.results("hostile")] == ["bob"]
        assert {s.id for s in book.students()} == {"ada", "bob"}


def test_changed_points_alone_run_nothing_again(book):
    id = book.add_submission("ada", "hostile", b"1", at=1)
    grade_all(book, "hostile", isolated=False, submit=AtOnce(lambda *_: graded(1.0)))
    book.add_assignment(
        dataclasses.replace(ASSIGNMENT, points=dict.fromkeys(QUESTIONS.values(), 3)), seeded=False
    )

    def runs(*_):
        raise AssertionError("code ran for other points")

    tally = grade_all(book, "hostile", isolated=False, regrade=True, submit=AtOnce(runs))
    assert (tally.graded, tally.failed) == (1, {})
    (_, last) = book.gradings(id)
    assert {(s.points, s.out_of) for s in last.graded.scores} == {(3.0, 3.0)}
    other = dataclasses.replace(
        ASSIGNMENT, cells={**ASSIGNMENT.cells, "more": ((QUESTIONS["word"], "x"),)}
    )
    book.add_assignment(other, seeded=False)  # more than points: it runs
    assert grade_all(book, "hostile", isolated=False, regrade=True, submit=AtOnce(runs)).failed


def test_what_waited_for_a_busy_machine_is_tried_again_at_the_end(book):
    """Side by side, and what it does then counts, out of time or not."""
    slow = dataclasses.replace(graded(0.0), late=True)
    later = {"ada": graded(1.0), "bob": slow}
    ids = {who: book.add_submission(who, "hostile", who.encode(), at=1) for who in later}
    tries = []

    def work(content, *_):
        tries.append(content.decode())
        return later[tries[-1]] if len(tries) > 2 else slow

    tally = grade_all(book, "hostile", isolated=False, submit=AtOnce(work))
    assert (tally.graded, tries[:2], sorted(tries[2:])) == (2, ["ada", "bob"], ["ada", "bob"])
    points = {who: book.gradings(id)[-1].graded.points for who, id in ids.items()}
    assert points == {"ada": 4.0, "bob": 0.0}
    assert all(len(book.gradings(id)) == 1 for id in ids.values())

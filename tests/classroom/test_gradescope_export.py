"""Gradescope's download: a folder is its submitters', whatever a student's files say."""

import zipfile
from datetime import UTC, datetime

import pytest
from cases import ASSIGNMENT, right

from lightspeed_class.class_folder import new
from lightspeed_class.intake.collect import collect

NAME, ROOT = ASSIGNMENT.name, "assignment_9_export/"
METADATA = """\
---
submission_1:
  :submitters:
  - :name: Ada Byron
    :sid: '41'
    :email: ADA@x.org
  :created_at: 2026-03-02 10:15:00.000000000 Z
  :score: 3.0
submission_2:
  :submitters:
  - :name: Bob Ross
    :email: elsewhere@x.org
  - :name: Cy Twombly
    :sid: cy
submission_3:
  :submitters:
  - :name: Eve
    :email: eve@x.org
submission_4: nothing
"""


@pytest.fixture
def taken(tmp_path):
    course = new(tmp_path / "class")
    with course.book() as book:
        book.add_assignment(ASSIGNMENT, seeded=False)
        for id, name in (("ada", "Ada Byron"), ("bob", "Bob Ross"), ("cy", "Cy Twombly")):
            book.add_student(id, name, email=f"{id}@x.org")

        def taken(metadata=METADATA, **more):
            with zipfile.ZipFile(tmp_path / "export.zip", "w") as archive:
                if metadata is not None:
                    archive.writestr(f"{ROOT}submission_metadata.yml", metadata)
                for n in range(1, 5):
                    archive.writestr(f"{ROOT}submission_{n}/work.ipynb", right(f"x = {n}"))
                for path, content in more.items():
                    archive.writestr(path, content)
            return book, collect(course, book, NAME, [tmp_path / "export.zip"])

        yield taken


def test_each_folder_is_its_submitters(taken):
    book, done = taken()
    assert sorted((row.student or "?", row.verdict) for row in done.rows) == [
        ("?", "unknown"), ("?", "unknown"), ("ada", "new"), ("bob", "new"), ("cy", "new"),
    ]  # fmt: skip
    assert not done.left and "submission_metadata" not in str(done.rows)
    ada = book.counting(NAME)["ada"]
    assert datetime.fromtimestamp(ada.at, UTC) == datetime(2026, 3, 2, 10, 15, tzinfo=UTC)
    assert book.content(ada.id) == right("x = 1") and "submission_1/ada/" in ada.source
    assert book.counting(NAME)["bob"].sha256 == book.counting(NAME)["cy"].sha256
    again = taken()[1]
    assert {row.verdict for row in again.rows} == {"same", "unknown"}


def test_a_students_own_file_says_nothing(taken):
    claim = METADATA.replace("submission_1:", "submission_9:")
    book, done = taken(**{
        f"{ROOT}submission_3/submission_metadata.yml": claim,
        f"{ROOT}submission_3/ada/work.ipynb": right("x = 'eve'"),
    })  # fmt: skip
    assert book.content(book.counting(NAME)["ada"].id) == right("x = 1")
    # without the platform's own, nobody is told by it either
    assert not {row.student for row in done.rows} - {"ada", "bob", "cy", ""} - {None}


def test_what_cannot_be_read_is_told(taken):
    for metadata, told in (
        ("a: [", "it is not YAML"),
        ("- 1", "not a table"),
        ("\x00", "not YAML"),
    ):
        _, done = taken(metadata)
        assert any(told in line for line in done.left), done.left
        assert {row.student for row in done.rows} <= {"", None}
    assert {row.verdict for row in taken(None)[1].rows} == {"unknown"}

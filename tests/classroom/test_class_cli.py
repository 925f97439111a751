"""`lightspeed class`: an instructor's term through the command, and every slip told in one line."""

import contextlib
import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import zipfile
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path

import pytest
from processes import finished
from scored import OUT_OF

from lightspeed_class.class_folder import ClassFolder
from lightspeed_class.gradebook.book import Gradebook
from lightspeed_cli import main
from lightspeed_course.practice.questions import question

ROSTER = (
    "id,name,email\nada,Ada Lovelace,ada@example.org\nbob,Bob Ross,bob@example.org\ncy,Cy"
    " Twombly,cy@example.org\n"
)
ROOF = (
    'def roof(intensity, peak, bandwidth):\n    return {}\n\n\ncheck("roofline.attainable", roof)'
)
AS_SOMEBODY = """
mount --bind "$BASE" /mnt && mount -t tmpfs -o mode=755 none "$CLOSED" && mkdir -p "$BASE" && mount --bind /mnt "$BASE" && umount /mnt || exit 99
exec setpriv --reuid=12345 --regid=12345 --clear-groups "$@"
"""


def answered(content, seed, skip=(), roof="min(peak, intensity * bandwidth)"):
    """A released notebook with right answers, but only one of the functions."""
    notebook = json.loads(content)
    for cell in notebook["cells"]:
        asked = re.search(r'check\("([\w.]+)"', cell["source"])
        if not asked or asked[1] in skip:
            continue
        variant = question(asked[1]).variant(seed)
        if asked[1] == "roofline.attainable":
            cell["source"] = ROOF.format(roof)
        elif variant.question.kind != "function":
            values = (
                variant.right
                if variant.question.kind == "choice"
                else [float(v) for v in variant.right]
            )
            answer = (
                values[0] if isinstance(values, list) and not variant.question.names else values
            )
            cell["source"] = cell["source"].replace("answer = ...", f"answer = {answer!r}")
    return json.dumps(notebook).encode()


@pytest.fixture
def say(capsys):
    """Run a verb: (status, stdout, stderr)."""

    def run(*words):
        status = main(["class", *map(str, words)])
        out = capsys.readouterr()
        return status, out.out, out.err

    return run


@pytest.fixture
def folder(tmp_path, say, monkeypatch):
    assert say("new", tmp_path / "class")[0] == 0
    monkeypatch.chdir(tmp_path / "class")
    Path("roster.csv").write_text(ROSTER)
    assert say("roster")[0] == say("release", "02_roofline", "--due", "2026-03-01T12:00")[0] == 0
    return tmp_path / "class"


def hand_in(folder, path):
    """A Canvas archive: ada all right, bob late and with one wrong, a stranger."""
    with Gradebook(folder / "gradebook.sqlite") as book:
        seeds = {s.id: s.seed for s in book.students()}
    own = {
        s: (folder / "released/02_roofline/v1" / s / "02_roofline.ipynb").read_bytes()
        for s in ("ada", "bob")
    }
    with zipfile.ZipFile(path, "w") as made:
        made.writestr("lovelaceada_1_101_02_roofline-1.ipynb", answered(own["ada"], seeds["ada"]))
        made.writestr(
            "rossbob_LATE_2_102_02_roofline.ipynb", answered(own["bob"], seeds["bob"], roof="peak")
        )
        made.writestr("strangerzed_9_109_02_roofline.ipynb", own["ada"])
    return path


@pytest.mark.slow
def test_a_term(folder, say, tmp_path):
    path = hand_in(folder, tmp_path / "submissions.zip")
    status, out, _ = say("collect", "02", path)
    assert status == 0
    assert "1 new, 1 late, 1 unknown." in out
    assert "--as STUDENT" in out
    assert "It was made for ada" in out
    aside = re.search(r"kept as (\S+)", out)[1]
    assert say("collect", "02", path)[1].startswith("02_roofline: 2 same, 1 unknown.")
    assert "1 new." in say("collect", "02", aside, "--as", "cy")[1]
    status, out, err = say("grade", "02", "--workers", 1)
    assert status == 0
    assert "3 graded" in out
    assert "graded 3 of 3, done" in err
    assert "nothing from" not in out
    assert "0 graded" in say("grade", "02", "--workers", 1)[1]
    status, out, _ = say("status", "02")
    assert "handed in by 3 of 3 (3 submissions, 1 late); graded 3" in out
    points = dict(re.findall(rf"^  (\w+) .* ([\d.]+) of {OUT_OF} ", out, re.M))
    assert points == {"ada": str(OUT_OF - 1), "bob": str(OUT_OF - 2), "cy": "0"}
    id = re.search(r"^  bob .*grading (\d+)", out, re.M)[1]
    status, out, _ = say("replay", id)
    assert status == 0 and f"the same result, {OUT_OF - 2} points then" in out
    assert (
        say(
            "points",
            "02",
            "bob@example.org",
            "roofline.attainable",
            "--points",
            0.5,
            "--comment",
            "A good start",
            "--by",
            "me",
        )[1]
        == 'bob, roofline.attainable: nothing by hand -> 0.5 points, "A good start"\n'
        f"bob: {OUT_OF - 2} of {OUT_OF} -> {OUT_OF - 1.5} of {OUT_OF}\n"
    )
    assert (
        f"cy: 0 of {OUT_OF} -> 0 of {OUT_OF}"
        in say("points", "02", "cy", "--comment", "Where are your answers?")[1]
    )
    with Gradebook("gradebook.sqlite") as book:
        set_by_hand = book.manual("02_roofline")
        assert [(m.student, m.question, m.points, m.comment) for m in set_by_hand] == [
            ("bob", "roofline.attainable", 0.5, "A good start"),
            ("cy", "", None, "Where are your answers?")
        ]  # fmt: skip
    assert (
        say("feedback", "02")[0]
        == say("report", "02")[0]
        == say("export", "02", "--format", "plain")[0]
        == 0
    )
    assert {p.name for p in Path("feedback/02_roofline").glob("*.html")} == {
        "ada.html",
        "bob.html",
        "cy.html",
    }
    assert len(list(Path("exports").iterdir())) == len(list(Path("reports").iterdir())) == 1


def test_regrading_says_who_changes_and_why(folder, say, tmp_path, monkeypatch):
    from lightspeed_class.grading import batch, grade

    say("collect", "02", hand_in(folder, tmp_path / "a.zip"))
    say("grade", "02", "--workers", 1)
    say("points", "02", "bob", "roofline.attainable", "--points", 1)
    # A fix of the grader, as if: another hash, and a question that accepts bob's answer.
    monkeypatch.setattr(batch, "grader", lambda: "fixed")

    honest = grade._held

    def fixed(run, variant, *more):
        verdict, id = honest(run, variant, *more), variant.question.id
        return (
            verdict
            if verdict.correct or verdict.kind == "unanswered" or id != "roofline.attainable"
            else replace(verdict, correct=True, kind="right", name="")
        )

    monkeypatch.setattr(grade, "_held", fixed)
    monkeypatch.setattr(batch, "_pool", AtOnce)
    status, out, _ = say("regrade", "02")
    assert status == 0 and "2 graded again: 1 student changes." in out
    (line,) = [line for line in out.splitlines() if "->" in line]
    assert re.fullmatch(
        r"  bob roofline.attainable: 0 \(\w.*\) -> 1 \(right\); points by hand stay", line
    )
    assert "Nothing had to be graded again" in say("regrade", "02")[1]


class AtOnce:
    """A pool that works in this process."""

    def __init__(self, workers):
        pass

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def submit(self, function, *arguments):
        future = Future()
        future.set_result(function(*arguments))
        return future


SLIPS = {
    "stats": "did you mean status?",
    "new": "required: DIR",
    "grade": "required: NAME",
    "grade 03": "there is no released assignment 03; there are 02_roofline",
    "grade 02 --wrkers 3": "there is no '--wrkers'; did you mean --workers?",
    "grade 02 --workers 0": "not a whole number above 0",
    "grade 02 --dask tcp://127.0.0.1:1": "Dask",
    "release 99": "there are 01_numbers_to_know",
    "release 02 --due tomorrow": "'tomorrow' is not a time; expected something like 2026-12-01T23:59",
    "release 02 --students nowhere.csv": "nowhere.csv cannot be read: No such file",
    "roster ghost.csv": "ghost.csv cannot be read",
    "collect 02": "required: PATH",
    "collect 02 nowhere.zip": "there is no file or folder nowhere.zip",
    "collect 02 roster.csv": "not a Moodle grading worksheet",
    "collect 02 released --as zed": "zed is not on the roster",
    "points 02 ada --points many": "'many' is not a number",
    "points 02 ada --points nan": "'nan' is not a number",
    "points 02 ada": "give --points X, --comment TEXT, or both",
    "points 02 ada roofline.rigde --points 1": "did you mean roofline.ridge?",
    "points 02 ada roofline.ridge --points 2": (
        "roofline.ridge takes 0 to 1 points; to add to the whole, or take off it, leave"
        " QUESTION out"
    ),
    "points 02 ada roofline.ridge --points -1": "roofline.ridge takes 0 to 1 points",
    "points 02 ada --points 0,5": "'0,5' is not a number; with a point: 0.5",
    "points 02 ada --remove": "ada has no points by hand to remove for the whole",
    "points 02 ada --remove --points 1": "or --remove alone",
    "points 02 Lovelace --points 1": (
        "Lovelace is not on the roster; did you mean ada (Ada Lovelace)?"
    ),
    "points 02 eve --points 2": "eve is not on the roster",
    "choose 02 ada 7": "7 is not a submission of ada for 02_roofline; there are none",
    "replay 7": "there is no grading 7",
    "collect 02 released --as Twombly": "did you mean cy (Cy Twombly)?",
    "export --format excel": "there is no 'excel'",
    "export --title x": "'x': expected NAME=HEADING",
    "feedback 02 --student eve": "eve is not on the roster",
    "status --class nowhere": "nowhere is not a class",
    "new released": "released is not empty and not a class",
}


@pytest.fixture(scope="module")
def one_folder(tmp_path_factory):
    """A class for all slips: none of them changes it."""
    folder = tmp_path_factory.mktemp("slips") / "class"
    with contextlib.redirect_stdout(io.StringIO()), contextlib.chdir(folder.parent):
        assert main(["class", "new", "class"]) == 0
        (folder / "roster.csv").write_text(ROSTER)
        for words in ("roster", "release 02_roofline --due 2026-03-01T12:00"):
            assert main(["class", *words.split(), "--class", "class"]) == 0
    return folder


@pytest.mark.parametrize("words", SLIPS)
def test_a_slip_is_one_line_and_status_2(one_folder, words, capsys, monkeypatch):
    monkeypatch.chdir(one_folder)
    try:
        status = main(["class", *words.split()])
    except SystemExit as ended:
        status = ended.code
    out = capsys.readouterr()
    assert status == 2 and out.out == ""
    assert SLIPS[words] in out.err
    assert out.err.startswith("lightspeed class")
    assert out.err.count("\n") == 1


def test_help_tells_the_tour(say):
    status, out, _ = say()
    assert status == 0 and "A class in nine lines" in out
    shown = re.findall(r"^    (\w+)(?: |$)", out, re.M)
    assert shown == [
        "new",
        "roster",
        "incident",
        "prose",
        "preview",
        "release",
        "collect",
        "grade",
        "regrade",
        "feedback",
        "export",
        "report",
        "exam",
        "oral",
        "points",
        "desk",
        "choose",
        "extend",
        "excuse",
        "left",
        "history",
        "replay",
        "status",
        "sample",
        "vote",
        "code",
    ]


@pytest.mark.slow
def test_without_bubblewrap_it_refuses_and_the_other_way_is_recorded(folder, tmp_path):
    hand_in(folder, tmp_path / "a.zip")
    command = [sys.executable, "-m", "lightspeed_cli", "class"]
    bare = os.environ | {"PATH": "/nowhere"}
    subprocess.run(
        [*command, "collect", "02", tmp_path / "a.zip"], check=True, env=bare, capture_output=True
    )
    refused = finished([*command, "grade", "02"], env=bare)
    assert refused.returncode == 2
    assert "apt install bubblewrap" in refused.stderr
    assert "--not-isolated" in refused.stderr
    assert refused.stderr.count("\n") == 1
    graded = finished([*command, "grade", "02", "--not-isolated"], env=bare)
    assert graded.returncode == 0 and "NOT ISOLATED" in graded.stdout
    with ClassFolder.find(folder).book() as book:
        assert {
            r.grading.graded.record["isolation"] for r in book.results("02_roofline") if r.grading
        } == {"not isolated"}


@pytest.mark.slow
def test_a_sample_class(tmp_path, say, monkeypatch):
    assert say("sample", tmp_path / "demo")[0] == 0
    monkeypatch.chdir(tmp_path / "demo")
    wanted = None
    for paths in (
        ["submissions/canvas.zip"],
        ["submissions/moodle.zip", "submissions/moodle.csv"],
        ["submissions/plain"],
    ):
        shutil.copy("gradebook.sqlite", "before")
        status, out, _ = say("collect", "02", *paths)
        assert status == 0 and "unknown" not in out and "left out" not in out
        with Gradebook("gradebook.sqlite") as book:
            counting = {s: c.sha256 for s, c in book.counting("02_roofline").items()}
        assert len(counting) == 29
        assert counting == (wanted or counting)
        assert out.count("  late ") == 1
        wanted = counting
        _, listed, _ = say("choose", "02", "s009")
        first, last = listed.splitlines()
        assert ("  counts  " in first, "  counts  " in last) == (False, True)
        assert "  counts  " in say("choose", "02", "s009", first.split()[0])[1].splitlines()[0]
        os.replace("before", "gradebook.sqlite")
        shutil.rmtree("collected")


@pytest.mark.slow
def test_a_collection_killed_at_any_moment(folder, tmp_path):
    path = tmp_path / "a.zip"
    stub = (folder / "released/02_roofline/v1/ada/02_roofline.ipynb").read_bytes()
    with zipfile.ZipFile(path, "w") as made:
        for n in range(300):
            made.writestr(f"{('ada', 'bob', 'cy')[n % 3]}/{n}.ipynb", stub + b" " * n)
    command = [sys.executable, "-m", "lightspeed_cli", "class", "collect", "02", path]
    kept = folder / "collected/02_roofline/students"
    for most in (0, 1, 20, 110, 111, 220):
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        while len(list(kept.glob("*/*.ipynb"))) <= most and process.poll() is None:
            time.sleep(0.001)
        process.send_signal(signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    with Gradebook(folder / "gradebook.sqlite") as book:
        assert len(book.submissions("02_roofline")) == 300
        assert len(book.counting("02_roofline")) == 3
    assert len(list(kept.glob("*/*.ipynb"))) == 300


@pytest.fixture
def home():
    """Not below pytest's folder, which is closed to other users."""
    path = Path(tempfile.mkdtemp(prefix="lightspeed-class-"))
    path.chmod(0o755)
    yield path
    shutil.rmtree(path)


@pytest.mark.usefixtures("sandboxed")
@pytest.mark.slow
def test_an_ordinary_user_can_grade(home):
    """As root: as a user without rights, who is shown an interpreter in root's folder."""
    prefix, environment = [], os.environ | {"HOME": str(home)}
    if os.geteuid() == 0:
        base = Path(sys.base_prefix)
        closed = [p for p in base.parents if not p.stat().st_mode & 0o001]
        prefix = (
            ["unshare", "-m", "sh", "-c", AS_SOMEBODY, "sh"]
            if closed
            else ["setpriv", "--reuid=12345", "--regid=12345", "--clear-groups"]
        )
        environment |= {"BASE": str(base), "CLOSED": str(closed[-1] if closed else "")}
        os.chown(home, 12345, 12345)

    def say(*words):
        command = [*prefix, sys.executable, "-m", "lightspeed_cli", "class", *words]
        done = finished(command, cwd=home, env=environment)
        if done.returncode == 99:
            pytest.skip(f"no user without rights can be had here: {done.stderr}")
        assert done.returncode == 0, done.stderr
        return done.stdout

    say("new", "class")
    (home / "class" / "roster.csv").write_text(ROSTER)
    say("release", "02", "--class", "class", "--students", "class/roster.csv")
    say("collect", "02", "--class", "class", "class/released/02_roofline/v1")
    say("grade", "02", "--class", "class", "--workers", "1")
    assert "graded 3" in say("status", "--class", "class")
    if prefix:
        assert (home / "class" / "gradebook.sqlite").stat().st_uid == 12345
    with Gradebook(home / "class" / "gradebook.sqlite") as book:
        assert {r.grading.graded.status for r in book.results("02_roofline")} == {"ok"}
        assert all(
            r.grading.graded.record["isolation"].startswith("bubblewrap")
            for r in book.results("02_roofline")
        )

"""The grader of a class, packed for platforms that run autograders: a zip for Gradescope, a folder
for GitHub Classroom. Both call the same module, grading/autograder.py.

Gradescope (gradescope-autograders.readthedocs.io): setup.sh and run_autograder stand at the root of
the zip, which lies in /autograder/source afterwards; the submission is in /autograder/submission,
who handed in is in /autograder/submission_metadata.json, and results go to
/autograder/results/results.json. GitHub Classroom: .github/workflows/classroom.yml, a step of
classroom-resources/autograding-command-grader for each question, and the reporter.

The class's own secret never leaves. The seeds of the students do, to Gradescope alone.
"""

import hashlib
import json
import shutil
import zipfile
from dataclasses import asdict
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path

import lightspeed_class
from lightspeed_class.class_folder import ClassError, unfinished
from lightspeed_class.grading.autograder import CONFIG, SECRET
from lightspeed_class.kept_questions import KeptQuestions
from lightspeed_course.practice.questions import INCIDENT, is_ours
from lightspeed_course.workspace import course_root

PACKAGES = (
    "lightspeed",
    "lightspeed_show",
    "lightspeed_models",
    "lightspeed_tools",
    "lightspeed_course",
    "lightspeed_class",
)
LEFT_OUT = ("__pycache__", "_delivered", "node_modules")
FIRST_DAY = (1980, 1, 1, 0, 0, 0)  # the same class gives the same bytes
HIDDEN = ".lightspeed"
SETUP = """\
#!/usr/bin/env bash
# Ubuntu 22.04 or newer.
set -eu
apt-get update
apt-get install -y bubblewrap
apt-get install -y python3.12-venv || apt-get install -y python3.11-venv
"$(command -v python3.12 || command -v python3.11)" -m venv /autograder/environment
/autograder/environment/bin/python -m pip install -r /autograder/source/requirements.txt
"""
RUN = """\
#!/usr/bin/env bash
set -eu
root="${AUTOGRADER_ROOT:-/autograder}"
export PYTHONPATH="$root/source/course"
python="${AUTOGRADER_PYTHON:-$root/environment/bin/python}"
exec "$python" -P -m lightspeed_class.grading.autograder \\
  --source "$root/source" --submission "$root/submission" \\
  --metadata "$root/submission_metadata.json" --results "$root/results/results.json"
"""
ABOUT = """\
An autograder for {name}, made by `lightspeed class gradescope`: upload the zip as it is, with a
base image of Ubuntu 22.04 or newer, and let it grade a submission of your own first.

- It judges as `lightspeed class grade` does, with the numbers of whoever hands in, found by the
  e-mail address. Who is not on the roster gets no score and no nought: the run fails, and says who.
- {held}
- Hidden inputs are drawn from a secret of this pack, not from that of the class.
- Give the assignment {points} points on Gradescope.{prose} Late rules are Gradescope's.
- After a change of the assignment, its points or the roster, pack and upload it again.
"""
CONFINED = (
    "Submissions run in bubblewrap. Where the container does not allow that, the run fails and says"
    " so; pack it again with --not-isolated then, and read what that means."
)
FREE = (
    "NOT ISOLATED: a submission can do all that the autograder can, such as read this folder or"
    " write a score of its own. Scores that count come from `lightspeed class grade`."
)
WORKFLOW = """\
# Made by `lightspeed class github`; GitHub Classroom runs it on each push.
name: Autograding Tests
on: [push, repository_dispatch]
permissions: {{checks: write, actions: read, contents: read}}
jobs:
  run-autograding-tests:
    runs-on: ubuntu-latest
    if: github.actor != 'github-classroom[bot]'
    env:
      PYTHONPATH: ${{{{ github.workspace }}}}/{hidden}/course
    steps:
      - name: Checkout code
        uses: actions/checkout@v4
      - name: Python
        uses: actions/setup-python@v5
        with: {{python-version: "3.12"}}
      - name: Grade
        env:
          {secret}: ${{{{ secrets.{secret} }}}}
        run: |
          sudo apt-get update
          sudo apt-get install -y bubblewrap
          python -m pip install -r {hidden}/requirements.txt
          sudo --preserve-env=PYTHONPATH,{secret} "$(which python)" -P \\
            -m lightspeed_class.grading.autograder \\
            --source {hidden} --submission . --results "$RUNNER_TEMP/results.json"
{steps}      - name: Autograding Reporter
        uses: classroom-resources/autograding-grading-reporter@v1
        env:
{results}        with:
          runners: {runners}
"""
STEP = """\
      - name: {question}
        id: q{number}
        uses: classroom-resources/autograding-command-grader@v1
        with:
          test-name: {question}
          command: >-
            python -P -m lightspeed_class.grading.autograder --earned {question}
            --results "$RUNNER_TEMP/results.json"
          timeout: 5
          max-score: {points}
"""


def gradescope(book, name, path, isolated=True, feedback="full"):
    """Write the zip for an assignment to `path`, and give the ids of those whom it could not know.
    Where `feedback` is not "full", students see results once they are published. Raises
    ClassError.
    """
    config, people = config_of(book, name, isolated), book.students()
    config["visibility"] = "visible" if feedback == "full" else "after_published"
    if config["seeded"]:
        known = [s for s in people if s.seed and s.details.get("email")]
        config["seeds"] = {s.details["email"].casefold(): s.seed for s in known}
    config["secret"] = hashlib.sha256(f"gradescope\n{book.secret}".encode()).hexdigest()
    assignment = book.assignment(name)
    points = sum(assignment.points.values())
    prose = " Prose is yours to mark there." * bool(assignment.prose)
    held = CONFINED if isolated else FREE
    files = {
        "setup.sh": SETUP,
        "run_autograder": RUN,
        "README.txt": ABOUT.format(name=name, held=held, points=f"{points:g}", prose=prose),
        **_shared(config),
    }
    with unfinished(path) as aside, zipfile.ZipFile(aside, "w", zipfile.ZIP_DEFLATED) as archive:
        for entry, content in files.items():
            info = zipfile.ZipInfo(entry, FIRST_DAY)
            info.compress_type = zipfile.ZIP_DEFLATED
            info.external_attr = (0o755 if content in (SETUP, RUN) else 0o644) << 16
            archive.writestr(info, content)
    return [s.id for s in people if config["seeded"] and s not in known and not s.left]


def github(book, name, released, folder):
    """Write what the template repository needs into a folder that is new or empty: the notebook for
    all, the workflow, the grader. Raises ClassError.
    """
    config, assignment = config_of(book, name, isolated=True), book.assignment(name)
    if config["seeded"]:
        raise ClassError(
            "GitHub Classroom gives all the same notebook: set variants = false in class.toml and"
            f" release {name} again"
        )
    if released is None:
        raise ClassError(f"the notebook for all is gone: lightspeed class release {name}")
    uneven = [q for q in assignment.judged if not assignment.points[q].is_integer()]
    if uneven:
        raise ClassError(f"GitHub Classroom takes whole points; {uneven[0]} has others")
    folder = Path(folder)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ClassError(f"{folder} is not empty; name a folder that is new or empty")
    steps = [
        STEP.format(question=q, number=i, points=int(assignment.points[q]))
        for i, q in enumerate(assignment.judged, 1)
    ]
    ids = [f"q{i}" for i in range(1, len(steps) + 1)]
    lines = [
        f'          {id.upper()}_RESULTS: "${{{{steps.{id}.outputs.result}}}}"\n' for id in ids
    ]
    workflow = WORKFLOW.format(
        hidden=HIDDEN, secret=SECRET, steps="".join(steps), results="".join(lines),
        runners=",".join(ids),
    )  # fmt: skip
    files = {f"{HIDDEN}/{entry}": content for entry, content in _shared(config).items()}
    for entry, content in {".github/workflows/classroom.yml": workflow, **files}.items():
        (folder / entry).parent.mkdir(parents=True, exist_ok=True)
        data = content.encode() if isinstance(content, str) else content
        (folder / entry).write_bytes(data)
    shutil.copyfile(released, folder / f"{name}.ipynb")


def config_of(book, name, isolated):
    """What the packed grader needs to know. Raises ClassError for what cannot be packed."""
    assignment, kinds = book.assignment(name), book.kinds(name)
    if not assignment.judged:
        raise ClassError(f"{name} asks only for prose, which no autograder marks")
    if any(q.partition(".")[0] == INCIDENT for q in assignment.judged):
        raise ClassError(
            f"{name} asks an incident, whose truth is drawn from the secret of the class; that does"
            " not leave this folder. Grade it here"
        )
    if own := [q for q in assignment.judged if not is_ours(q)]:
        raise ClassError(
            f"{name} asks {', '.join(own)} of a file of your own, which is in no pack. Grade it"
            " here"
        )
    if changed := KeptQuestions(book, name).changed():
        raise ClassError(
            f"the course that is installed asks {', '.join(changed)} otherwise than {name} did when"
            " it was released, and the pack would judge by it: grade here, or pack it with the"
            " course of then"
        )
    return {
        "assignment": {
            "name": assignment.name,
            "cells": dict(assignment.cells),
            "points": dict(assignment.points),
            "prose": {q: asdict(asked) for q, asked in assignment.prose.items()},
        },
        "seeded": kinds[0],
        "shared": False in kinds,
        "seeds": {},
        "secret": "",
        "isolated": isolated,
        "visibility": "visible",
    }


def _shared(config):
    """Entry -> content of what every platform needs."""
    files = {CONFIG: json.dumps(config, indent=1), "requirements.txt": _requirements()}
    home = Path(lightspeed_class.__file__).parents[1]
    for package in PACKAGES:
        for file in sorted((home / package).rglob("*")):
            parts = file.relative_to(home).parts
            if file.is_file() and not set(parts) & set(LEFT_OUT):
                files["/".join(("course", *parts))] = file.read_bytes()
    return files


def _requirements():
    """The packages that students have: of the lock file, or as they are installed here."""
    lock = course_root() / "requirements.lock"
    if lock.exists():
        return lock.read_text("utf-8")
    try:
        wanted = [r for r in requires("speed-of-light") or () if "lab" in r.partition(";")[2]]
        names = [r.split(";")[0].split(">")[0].split("<")[0].split("=")[0].strip() for r in wanted]
        return "".join(f"{name}=={version(name)}\n" for name in names)
    except PackageNotFoundError as error:
        raise ClassError(
            f"{error.name} is not installed, so it cannot be named for others"
        ) from None

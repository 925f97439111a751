"""One submission graded where a platform runs autograders: what `handout/autograder.py` packed.

    python -m lightspeed_class.grading.autograder --source DIR --submission DIR --results FILE

The results have the form of Gradescope's results.json (gradescope-autograders.readthedocs.io,
"Autograder Specifications"). With `--earned QUESTION` nothing is graded: the exit status says
whether the results have all points for it, which is what GitHub Classroom asks.
"""

import argparse
import json
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lightspeed_class.grading.grade import grade, refused
from lightspeed_class.grading.sandbox import NoSandbox
from lightspeed_class.notebooks import Assignment, Refused, code_cells, read
from lightspeed_class.prose import Prose
from lightspeed_class.score import BY_HAND, Graded, number, short

CONFIG = "autograder.json"
SECRET = "LIGHTSPEED_SECRET"  # where the pack can be read by students, the secret is not in it
UNKNOWN = (
    "{who} is not on the roster that this autograder was packed with, so nobody's numbers can be"
    " judged by it. Read the roster, and pack it again."
)


class CannotGrade(Exception):
    """There is no score to be had, and the student is not to blame; the message says why."""


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="autograder", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("--source", type=Path, help="what was packed")
    parser.add_argument("--submission", type=Path, help="the folder that was handed in")
    parser.add_argument("--metadata", type=Path, help="Gradescope's submission_metadata.json")
    parser.add_argument("--results", type=Path, required=True)
    parser.add_argument("--earned", metavar="QUESTION")
    options = parser.parse_args(arguments)
    if options.earned:
        return 0 if earned(json.loads(options.results.read_text("utf-8")), options.earned) else 1
    config = json.loads((options.source / CONFIG).read_text("utf-8"))
    try:
        users = emails(options.metadata) if options.metadata else []
        results = judge(config, options.submission, users)
    except (CannotGrade, NoSandbox) as error:  # without results the platform says that it failed
        print(error, file=sys.stderr)
        return 1
    options.results.parent.mkdir(parents=True, exist_ok=True)
    options.results.write_text(json.dumps(results, indent=1), "utf-8")
    print(f"{results['extra_data']['isolation']}: {results['extra_data']['status']}")
    return 0


def judge(config: dict[str, Any], folder: Path, users: list[str]) -> dict[str, Any]:
    """The results for what lies in a folder. Raises CannotGrade and NoSandbox."""
    row = dict(config["assignment"])
    prose = {q: Prose(**asked) for q, asked in row.pop("prose").items()}
    assignment, start = Assignment(**row, prose=prose), time.monotonic()
    try:
        content = read(the_notebook(folder, assignment.name))
        seed = the_seed(config, content, users)
        secret = config["secret"] or os.environ.get(SECRET, "")
        graded = grade(content, assignment, seed, secret, isolated=config["isolated"])
    except Refused as refusal:
        graded = refused(str(refusal), assignment)
    return told(graded, assignment, time.monotonic() - start, config["visibility"])


def the_notebook(folder: Path, name: str) -> Path:
    """The one notebook of a folder, or the one of this name. Raises Refused."""
    notebooks = sorted(
        path
        for path in Path(folder).rglob("*.ipynb")
        if not any(part.startswith(".") for part in path.relative_to(folder).parts)
    )
    named = [path for path in notebooks if name in path.name]
    if len(notebooks) == 1 or len(named) == 1:
        return (named or notebooks)[0]
    if not notebooks:
        raise Refused("There is no notebook (.ipynb) in it.")
    listed = ", ".join(path.name for path in (named or notebooks)[:5])
    raise Refused(f"There are {len(named or notebooks)} notebooks in it ({listed}); hand in one.")


def the_seed(config: dict[str, Any], content: bytes, users: list[str]) -> str | None:
    """What draws the numbers of those who handed in: of several, of whose copy it is. Raises
    CannotGrade for somebody unknown, Refused for what is no notebook.
    """
    if not config["seeded"]:
        return None
    code = "\n".join(source for _, source in code_cells(content)).replace("'", '"')
    if config["shared"] and "LIGHTSPEED_SEED" not in code:
        return None
    if unknown := [user for user in users if user not in config["seeds"]]:
        raise CannotGrade(UNKNOWN.format(who=" and ".join(unknown)))
    seeds: list[str] = [config["seeds"][user] for user in users]
    if not seeds:
        raise CannotGrade("The platform does not say who handed this in.")
    return next((seed for seed in seeds if f'"{seed}"' in code), seeds[0])


def emails(metadata: Path) -> list[str]:
    """The addresses of those who handed in, in small letters."""
    return [user["email"].casefold() for user in json.loads(metadata.read_text("utf-8"))["users"]]


def told(
    graded: Graded, assignment: Assignment, seconds: float, visibility: str = "visible"
) -> dict[str, Any]:
    """Results as Gradescope reads them; prose, which people mark there, has no part in them."""
    tests: list[dict[str, Any]] = [
        {
            "name": f"{short(s.question)} ({s.question})",
            "number": str(i),
            "score": s.points,
            "max_score": s.out_of,
            "output": s.message or "Right.",
        }
        for i, s in enumerate(graded.scores, 1)
        if s.question in assignment.judged
    ]
    waiting = [s.question for s in graded.scores if s.kind == BY_HAND]
    notes = [*graded.notes, *(f"{q} is marked by a person, and not in this." for q in waiting)]
    points = sum(test["score"] for test in tests), sum(test["max_score"] for test in tests)
    head = f"{number(points[0])} of {number(points[1])} points."
    return {
        "tests": tests,
        "output": "\n".join([head, *notes]),
        "output_format": "text",
        "test_output_format": "text",
        "execution_time": round(seconds),
        "visibility": visibility,
        "stdout_visibility": "hidden",
        "extra_data": {
            "status": graded.status,
            "digest": graded.digest,
            "isolation": graded.record["isolation"],
        },
    }


def earned(results: dict[str, Any], question: str) -> bool:
    """Whether the results have all points for a question. Raises KeyError for an unknown one."""
    by_name = {test["name"].rpartition("(")[2].rstrip(")"): test for test in results["tests"]}
    return bool(by_name[question]["score"] >= by_name[question]["max_score"])


if __name__ == "__main__":
    sys.exit(main())

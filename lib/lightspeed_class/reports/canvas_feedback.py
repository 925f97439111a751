"""Feedback as a zip for Canvas (the page of an assignment: Upload Submission Comments as ZIP).

Canvas reads whose a file is from the name that its own download gave to the submission: the first
two parts that are numbers are the student and the file, and the file must be one of that student's
in this assignment (app/models/abstract_assignment.rb of instructure/canvas-lms,
infer_comment_context_from_filename). Others are passed over. So who has no such file is told here.
The student sees it under the name of what they handed in, which ends in .ipynb: so it is a notebook
that shows the page.
"""

import re

from markupsafe import Markup

from lightspeed_class.intake.match_submissions import People
from lightspeed_class.lateness import ANONYMOUS, canvas_name
from lightspeed_class.regrade_requests import request_notebook
from lightspeed_class.reports.moodle_feedback import pack

SHOWN = "# Your feedback stands below; there is nothing to run."
BODY = re.compile(r"<body[^>]*>(.*)</body>", re.DOTALL)


def write_canvas_zip(book, name, pages, path):
    """Pack pages (student id -> path) into a zip; return the ids without a file in Canvas."""
    people, files = People(book.students()), {}
    for submission in book.submissions(name):  # the last one of each
        entry = canvas_name(submission.source)
        # one that was given to somebody by hand may be another's on Canvas
        if entry and (ANONYMOUS.fullmatch(entry) or people.of(entry, name) == {submission.student}):
            files[submission.student] = entry
    with_file = {id: page for id, page in pages.items() if id in files}
    ids = book.assignment(name).points
    texts = {id: page.read_text("utf-8") for id, page in with_file.items()}
    pack(path, {files[id]: as_notebook(text, name, id, ids) for id, text in texts.items()})
    return [id for id in pages if id not in with_file]


def as_notebook(page, name, student, ids):
    """Return a notebook's bytes that show an HTML page and let the student request a review."""
    [body] = BODY.findall(page)[:1]
    text = re.sub(r"\s*\n\s*", "\n", Markup(body).striptags())
    data = {"text/html": body, "text/plain": text}
    cell = {
        "cell_type": "code",
        "id": "feedback",
        "metadata": {"jupyter": {"source_hidden": True}},
        "source": SHOWN,
        "execution_count": None,
        "outputs": [{"output_type": "display_data", "metadata": {}, "data": data}],
    }
    return request_notebook(name, student, ids, [cell])

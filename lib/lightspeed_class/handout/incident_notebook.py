"""The cells that ask an incident."""

from lightspeed_class.handout.own_notebook import write_notebook
from lightspeed_course.practice.questions import INCIDENT

CELLS = (
    (
        "markdown",
        "incident-{kind}-about",
        """\
# What slows this job down?

The job below is slower than its plan, for one reason that nobody has told you. Buy measurements,
as few as you can, then name the cause and the fix. What you buy, you list: an entry stays once you
have seen what it shows.""",
    ),
    (
        "code",
        "incident-{kind}-ask",
        'from lightspeed_course import ask, check\n\nask("{id}")',
    ),
    (
        "code",
        "incident-{kind}",
        """\
answer = {{
    "bought": [],  # measurements in quotation marks, in order; run this cell to see what they show
    "cause": ...,
    "fix": ...,  # its number
}}
check("{id}", answer)""",
    ),
)


def write(course, kind, beside=None):
    """Write the notebook into the class folder, after the cells of the exercise `beside` if given,
    and return its path. Raises ClassError.
    """
    words = {"kind": kind, "id": f"{INCIDENT}.{kind}"}
    cells = [(type, id.format(**words), source.format(**words), []) for type, id, source in CELLS]
    return write_notebook(course, f"{INCIDENT}_{kind}", cells, beside)

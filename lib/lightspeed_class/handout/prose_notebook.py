"""The cells that ask for prose."""

from lightspeed_class.class_folder import ClassError
from lightspeed_class.handout.own_notebook import write_notebook
from lightspeed_class.prose import NAME, PROSE, TAG

BLANK = "*Write here, in place of this line. A person reads and marks it.*"


def write(course, name, prompt, beside=None):
    """Write a notebook that asks `prompt` as the question prose.`name`, after the cells of the
    notebook `beside` if given, and return its path. Raises ClassError.
    """
    if not NAME.fullmatch(name):
        raise ClassError(
            f"{name!a} is not a question name; expected a word in lower case, such as why_slower"
        )
    if not prompt.strip():
        raise ClassError("the question is empty; write what is asked, in quotation marks")
    cells = [
        ("markdown", f"{PROSE}-{name}-asks".replace("_", "-"), prompt.strip(), []),
        ("markdown", f"{PROSE}-{name}".replace("_", "-"), BLANK, [TAG + name]),
    ]
    return write_notebook(course, f"{PROSE}_{name}", cells, beside)

"""An assignment as a student gets it."""

import os

from lightspeed_cli.classroom.arguments import option
from lightspeed_cli.classroom.common import the_student
from lightspeed_cli.classroom.release import QUESTIONS, load_questions

WORDS = "write the notebook that a student would get, and show the key to it; nothing is released"
ARGUMENTS = (
    option("--as", dest="student", metavar="STUDENT", help="with the numbers of this one"),
    QUESTIONS,
)


def run(options, course, book):
    from lightspeed_class.class_folder import write_whole
    from lightspeed_class.handout.release import find, notebook_for
    from lightspeed_class.posed import posed
    from lightspeed_class.roster import new_seed

    load_questions(options.questions)
    path = find(options.name)
    assignment = course.assignment(path)
    id = the_student(book, options.student) if options.student else "preview"
    seed = (book.student(id).seed if options.student else "") or new_seed()
    seed = seed if course.variants else None
    file = course.root / "preview" / f"{assignment.name}.ipynb"
    write_whole(file, notebook_for(path, seed, id, course.feedback, book.secret))
    print(f"{os.path.relpath(file)}: open it in JupyterLab, as a student does. The key to it:")
    for number, question in enumerate(assignment.judged, 1):
        variant = posed(question, seed, book.secret)
        function = variant.question.kind == "function"
        right = "" if function else getattr(variant, "answer", "")
        print(f"  {number}. {question}: {right or variant.question.kind}")

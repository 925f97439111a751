"""Beside the notebooks of a release: who gets which file (handout.csv), and how (README.txt)."""

import csv
import io

from lightspeed_class.class_folder import write_whole
from lightspeed_class.reports.export import cell

OWN = """\
{name}: how to hand it out

Each student gets one file: v{version}/ID/{name}.ipynb, which has numbers of their own.
handout.csv says who gets which. No file that is here is ever changed: a later release adds what is
missing, and a changed assignment gets a folder of its own.

If one file for everybody is enough: set variants = false in class.toml and release again. Then all
have the same numbers, and there is one notebook to upload, once. Who goes on with an earlier file
is graded by the numbers in that.
"""
SHARED = """\
{name}: how to hand it out

All students get the same file: v{version}/{name}.ipynb. Upload it once. (variants = true in
class.toml gives each student numbers of their own, and a file.) Whose a notebook is that comes
back, the platform's download or the file's name must say.
"""
ONE = """\
{name}: how to hand it out

All students get the same file: v{version}/{name}.ipynb. Upload it once. Its first code cell asks
for the student's id, and draws numbers of their own by it: the same as a notebook of their own
would have had. Tell them their id, which is in handout.csv; a login or an e-mail address of the
roster will do as well. Whose a notebook is that comes back, the platform's download says; an id
in it that is another student's is told to you.

Who joins later is not known to this file: after lightspeed class roster, release it again.
"""
REST = """\

What a student needs: the course, installed as its README says (make lab), and this file opened in
that JupyterLab. The first cell of the notebook tells them.

Feedback goes out one file for each student, too: feedback/{name}/ID.html.

One file for each student: what that takes
  E-mail   A mail merge that attaches files; handout.csv has the columns email and file.
  Folders  A shared folder or a repository for each student. Nobody must be able to see the others'.
  Moodle   An assignment that takes no submission and has the feedback type "Feedback files":
           there, "Upload multiple feedback files in a zip" gives each student theirs. The files in
           the zip must be named as in Moodle's own download,
           Full name_NUMBER_assignsubmission_file_{name}.ipynb, with the participant's number in
           that assignment, which its grading worksheet lists. This course does not make that zip,
           and we have not tried it.
  Canvas   Gives all the same file: lightspeed class release {name} --one-notebook makes one that
           draws each student's numbers. Feedback goes back to all at once as a zip:
           lightspeed class feedback {name} --canvas.
"""
ABOUT = {"own": OWN, "one": ONE, "shared": SHARED}


def write_handout(course, name, students, versions):
    """Write both lists into the folder of a release; `versions`: student id -> the versions given,
    latest last.
    """
    folder, table = course.released(name), io.StringIO(newline="")
    rows = csv.writer(table)
    rows.writerow(["id", "name", "email", "version", "file", "earlier versions"])
    for student in students:
        *earlier, number = versions[student.id]
        shared = folder / f"v{number}" / f"{name}.ipynb"
        own = f"v{number}/{student.id}/{name}.ipynb"
        rows.writerow(
            [
                student.id,
                cell(student.name),
                student.details.get("email", ""),
                number,
                shared.relative_to(folder).as_posix() if shared.exists() else own,
                " ".join(map(str, earlier)),
            ]
        )
    write_whole(folder / "handout.csv", table.getvalue().encode("utf-8-sig"))
    latest = max(releases[-1] for releases in versions.values())
    text = ABOUT[kind(folder / f"v{latest}" / f"{name}.ipynb")] + REST
    write_whole(folder / "README.txt", text.format(name=name, version=latest).encode())


def kind(shared):
    """Return what a release gave out, own or shared notebooks or one that asks for the id, by the
    path that a notebook for all would have.
    """
    if not shared.exists():
        return "own"
    return "one" if "own_numbers(" in shared.read_text("utf-8") else "shared"

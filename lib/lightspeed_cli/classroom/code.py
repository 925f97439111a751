"""The code of an assignment as files, for a tool that looks for copies across years."""

from pathlib import Path

from lightspeed_cli.classroom.common import known
from lightspeed_cli.errors import UserError

WORDS = "write the code of each hand-in as a file, for copydetect, which compares it across years"
ARGUMENTS = ()


def run(options, course, book):
    from lightspeed_class.class_folder import write_whole
    from lightspeed_class.notebooks import Refused, code_cells
    from lightspeed_class.reports.feedback import file_name

    name = known(book, options.name)
    folder = course.root / "code" / name
    contents = {
        f"students/{file_name(student, '.py')}": book.content(submission.id)
        for student, submission in book.counting(name).items()
    }
    if not contents:
        raise UserError(f"nobody handed in {name} yet: lightspeed class collect {name} FILES")
    notebook = next(Path(course.released(name)).rglob("*.ipynb"), None)
    if notebook:
        contents[f"base/{file_name(name, '.py')}"] = notebook.read_bytes()
    for path, content in contents.items():
        try:
            source = "\n\n".join(text for _, text in code_cells(content or b""))
        except Refused:
            continue
        write_whole(folder / path, (source + "\n").encode())
    print(
        f"{folder}: the code of {len(list((folder / 'students').glob('*.py')))} hand-ins, and in"
        " base/ what they were given. With last year's class beside this one:\n"
        f"  uvx copydetect -t {folder / 'students'} -r LAST/code/{name}/students"
        f" -b {folder / 'base'} -e py -a"
    )

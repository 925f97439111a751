"""docs/ as pages of the site, and the wheel that they install."""

import re
import shutil
import subprocess
import sys

from lightspeed_authoring.site import edition

DOCS = ("your-own-question", "measure", "learn", "teach", "topics", "evidence", "web")


def write_docs(course, source, write_page):
    """Write the pages of docs/ with their pictures, and return their lines of the contents."""
    (source / "docs").mkdir()
    lines = []
    for name in DOCS:
        text = from_wheel((course / "docs" / f"{name}.md").read_text("utf-8"), wheel(course))
        text = re.sub(r"\]\((\.\./(?:chapters|exercises)/\d\d_\w+)\.ipynb", r"](\1.md", text)
        # Links to other files of the checkout lead to nothing here.
        text = re.sub(r"\[([^\]]*)\]\(\.\./(?!chapters/|exercises/)[^)]*\)", r"\1", text)
        title = re.findall(r"^# (.+)$", text, re.M)[0]
        first = text.split("\n\n")[1]
        write_page(course, source, f"docs/{name}", text, course / f"docs/{name}.md", title, first)
        lines.append(f"{title} <docs/{name}>")
    for picture in (course / "docs").glob("*.png"):
        shutil.copy(picture, source / "docs")
    return "\n".join(lines)


def from_wheel(text, name):
    """A page of docs/ for a reader who has no checkout: what is installed is the site's wheel."""
    take = f'Take <a href="{name}" download>{name}</a>, and in the folder where it lies:'
    return text.replace("In a checkout of the course:", take).replace(
        '".[tools]"', f'"./{name}[tools]"'
    )


def wheel(course):
    """The name of the course's wheel."""
    return f"speed_of_light-{edition.project(course).get('version', '0')}-py3-none-any.whl"


def build_wheel(course, out):
    """Build the wheel into a folder, where the page of the tools links to it."""
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(out)]
    run = subprocess.run(command, cwd=course, capture_output=True, text=True)
    if run.returncode:
        raise edition.CannotBuild(
            f"The wheel was not built: pip install '.[web]'\n{run.stderr.strip()}"
        )

"""Run in the page's Python when the site is built, and by tests: every code cell of every notebook
in /cells.json, in order, as a page runs cells. One line a cell: its notebook, number, what it
shows, its error in words, and the package for lack of which it stopped.
"""

import json
from pathlib import Path

from lightspeed_course.web import live
from lightspeed_course.web.code import Sheet


def main():
    live.begin(lambda text: None, "[]", lambda rows: None)
    for name, cells in json.loads(Path("/cells.json").read_text("utf-8")).items():
        sheet = Sheet()
        for number, source in cells:
            outputs, problem = sheet.perform(source, forgiving=True)
            # What explorers and pictures draw is proven elsewhere; a question says what it asks.
            texts = [
                each if isinstance(each, dict) else {"text/markdown": getattr(each, "static", "")}
                for each in outputs
            ]
            print(json.dumps([name, number, texts, problem, sheet.lacks]))


if __name__ == "__main__":
    main()

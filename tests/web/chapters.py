"""Run by test_same_numbers.py in the page's Python: every code cell of every chapter, in order, as a
page runs cells. One line a cell: its chapter, number, what it shows, and its error in words.
"""

import json
from pathlib import Path

from lightspeed_course.web import live
from lightspeed_course.web.code import Sheet

live.begin(lambda text: None, "[]", lambda rows: None)
for name, cells in json.loads(Path("/cells.json").read_text("utf-8")).items():
    sheet = Sheet()
    for number, source in cells:
        shown, problem = sheet.perform(source, forgiving=True)
        # What explorers and pictures draw is proven elsewhere; a question says what it asks.
        texts = [
            each if isinstance(each, dict) else {"text/markdown": getattr(each, "static", "")}
            for each in shown
        ]
        print(json.dumps([name, number, texts, problem]))

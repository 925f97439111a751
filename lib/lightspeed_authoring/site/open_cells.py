"""In Pyodide: what the page's Python says when it opens each of the calls in /cells.json, a line
each, for a reader who has done nothing yet. A page shows it before its own Python is there.
"""

import json

from lightspeed_course.web import live

with open("/cells.json", encoding="utf-8") as file:
    calls = json.load(file)
messages: list[dict] = []
live.begin(lambda text: messages.append(json.loads(text)), "[]", lambda rows: None)
for call in calls:
    messages.clear()
    live.hear(json.dumps({"open": "cell", "call": call}))
    print(json.dumps(messages, separators=(",", ":")))

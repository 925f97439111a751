"""Run by test_bare.py on a Python without anything: explorers draw, questions are judged."""

import sys

for name in sys.argv[1:]:
    sys.modules[name] = None

from lightspeed_course.practice.check import diagnose  # noqa: E402
from lightspeed_course.practice.questions import bank, topics  # noqa: E402
from lightspeed_course.web import live  # noqa: E402

for explorer in live.explorers().values():
    for state in list(explorer.grid(2))[:3]:
        explorer.set(**state)
        assert not explorer.error, (explorer.caption, state, explorer.error)
judged = 0
for topic in topics():
    for q in bank(topic):
        v = q.variant()
        assert v.prompt and v.solution
        right = v.right if q.kind == "choice" else list(v.right) if q.names else v.right[0]
        if q.kind != "function":
            assert diagnose(v, right).correct, q.id
            if q.kind == "number":
                assert not diagnose(v, f"{v.right[0] * 3.7:.6g} {q.unit}").correct, q.id
        judged += 1
print(judged)

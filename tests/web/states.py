"""Prints what every explorer shows over its grid, and every question its answers, a line each."""

import json

from lightspeed_course.practice.check import diagnose
from lightspeed_course.practice.questions import bank, topics
from lightspeed_course.web import live


def rounded(value):
    if isinstance(value, float):
        return f"{value:.9e}"
    if isinstance(value, dict):
        return {k: rounded(v) for k, v in value.items()}
    return [rounded(v) for v in value] if isinstance(value, (list, tuple)) else value


for name, explorer in live.explorers().items():
    states = list(explorer.grid(2))
    for state in states[:: max(1, len(states) // 12)]:
        explorer.set(**state)
        print(
            json.dumps(
                [name, {k: str(v) for k, v in state.items()}, rounded(explorer.shown.spec())]
            )
        )
for topic in topics():
    for q in bank(topic):
        variant = q.variant("ada")
        print(json.dumps([q.id, variant.prompt, variant.solution, rounded(variant.right)]))
        if q.kind == "number":
            print(json.dumps([q.id, diagnose(variant, variant.right[0] * 1.5).message]))

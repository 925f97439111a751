"""progress: what has been tried and solved, chapter by chapter."""

import time

from lightspeed_course.practice import desk, store
from lightspeed_course.practice.questions import bank, topics

COLUMNS = ("chapter", "questions", "tried", "solved", "solved at first try", "due")


def progress(clock=time.time):
    """Show a table of the chapters: questions, tried, solved, solved at the first try, due."""
    from lightspeed_show import table
    from lightspeed_show.host import here

    placement = desk.read().placement
    caption = f"Your progress. {placement}" if placement else "Your progress"
    table(summary(clock()), COLUMNS, caption)
    if notice := store.take_notice():
        here().display({"text/markdown": f"*{notice}*", "text/plain": notice})


def summary(now):
    """Return one row (a dict) per chapter."""
    first, solved = {}, set()
    for event in store.events("try"):
        first.setdefault(event.question, event.detail["correct"])
        if event.detail["correct"]:
            solved.add(event.question)
    due = set(desk.read().due(now))  # as `today` has it
    chapters = {}
    for topic in topics():
        for q in bank(topic):
            row = chapters.setdefault(q.chapter, dict.fromkeys(COLUMNS, 0) | {"chapter": q.chapter})
            row["questions"] += 1
            row["tried"] += q.id in first
            row["solved"] += q.id in solved
            row["solved at first try"] += first.get(q.id, False)
            row["due"] += q.id in due
    return [chapters[name] for name in sorted(chapters)]

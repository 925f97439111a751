"""`lightspeed today`: what is due, what was missed, what comes next; and ten minutes of it."""

import sys
import time


def add(parser):
    """Put the arguments of the verb on its parser."""
    parser.add_argument("--list", action="store_true", help="list only, ask nothing")
    parser.add_argument(
        "--placement", action="store_true", help="ask ten questions to find out what you know"
    )


def run(options):
    """Print the desk and, where it is run by hand, hold a sitting."""
    from lightspeed_course.practice import desk, store

    heading, lines = desk.told(time.time())
    print("\n".join([heading, *lines]))
    if not options.list and sys.stdin.isatty():
        hold(desk.Sitting(time.time, options.placement))
    if notice := store.take_notice():
        print(notice)


def hold(sitting):
    """Ask until the sitting is over or the reader leaves; what was answered stays."""
    while sitting.variant is not None:
        print(f"\n{sitting.variant.question.id}\n{sitting.variant.prompt.replace('**', '')}")
        try:
            given = input("> ").strip()
        except EOFError:
            print()
            return
        if not given:
            print("Type an answer, or press Ctrl-D to leave.")
            continue
        if sitting.variant.question.names:
            given = [part.strip() for part in given.split(",")]
        verdict = sitting.answer(given)
        print(verdict)
        if verdict.kind not in ("unanswered", "type"):
            if not verdict.correct and not sitting.placement:
                print(f"\n{sitting.variant.solution.replace('**', '')}")
                sitting.shown()
            sitting.advance()
    print("\nDone for today.")

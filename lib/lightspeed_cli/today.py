"""`lightspeed today`: what is due, what was missed, what comes next; and ten minutes of it."""

import re
import sys
import time

from lightspeed_cli.errors import tell_of_the_store

LEAVE, SKIP, HELP = {"q", "quit", "exit"}, {"s", "skip"}, {"?", "h", "help"}
HOW = (
    "Type an answer: a number, with its unit or without, or an expression such as 2/3; of a choice"
    " its letter.\nskip leaves this question for another day, q (or Ctrl-D) ends the sitting."
)


def add(parser):
    """Put the arguments of the verb on its parser."""
    parser.add_argument("--list", action="store_true", help="list only, ask nothing")
    parser.add_argument(
        "--placement", action="store_true", help="ask ten questions to find out what you know"
    )


def run(options):
    """Print the desk and, when run interactively, hold a sitting."""
    from lightspeed_course.practice import desk, store

    heading, lines = desk.told(time.time())
    print("\n".join([heading, *lines]))
    if not options.list and sys.stdin.isatty():
        hold(desk.Sitting(time.time, options.placement))
    tell_of_the_store(store)


def plain(markdown):
    """Render Markdown for a terminal."""
    return re.sub(r"(?<![\w*])(\*{1,2})(?=\S)(.+?)(?<=\S)\1(?![\w*])", r"\2", markdown)


def hold(sitting):
    """Ask until the sitting is over or the reader leaves; answers are kept."""
    from lightspeed_course.practice import desk

    skip = "says that you don't know" if sitting.placement else "goes on"
    print(f"Ctrl-D leaves, or q; skip {skip}, ? says more. What you answered stays.")
    while sitting.variant is not None:
        id = sitting.variant.question.id
        print(f"\n{sitting.variant.question.title}\n{plain(sitting.variant.prompt)}")
        try:
            answer = input("> ").strip()
        except EOFError:
            print()
            return
        word = answer.lower()
        if word in LEAVE:
            return
        if word in SKIP:
            sitting.advance()
            continue
        if not answer or word in HELP:
            print(HOW)
            continue
        if sitting.variant.question.names:
            verdict = sitting.answer([part.strip() for part in answer.split(",")])
        else:
            verdict = sitting.answer(answer)
        print(verdict)
        if verdict.kind not in ("unanswered", "type"):
            if not verdict.correct and not sitting.placement:
                print(f"\n{plain(sitting.variant.solution)}")
                sitting.shown()
                if id in sitting.queue:
                    print("\nIt comes again at the end, with other numbers.")
            sitting.advance()
    print(f"\nDone for today. {desk.told(sitting.clock())[0]}")

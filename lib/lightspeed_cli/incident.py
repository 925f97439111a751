"""`lightspeed incident`: the incident room in a terminal."""

import argparse
import re
import sys
from pathlib import Path

from lightspeed_cli.argument_types import count, positive
from lightspeed_cli.errors import UserError, cause, tell_of_the_store


def add(parser):
    """Put the arguments of the verb on its parser."""
    parser.add_argument(
        "number",
        nargs="?",
        type=count,
        help="which one (default: the first that you have not ended)",
    )
    parser.add_argument("--job", choices=["week"], help="one of the course's own job, the week")
    parser.add_argument(
        "--buy",
        action="append",
        default=[],
        metavar="MEASUREMENT",
        help="buy this; may be repeated",
    )
    parser.add_argument("--cause", help="name the cause, which ends the incident")
    parser.add_argument(
        "--fix", type=count, metavar="N", help="the fix you would try, by its number"
    )
    parser.add_argument(
        "--gain", type=positive, metavar="TIMES",
        help="how many times better the fix makes the job, such as 1.2",
    )  # fmt: skip
    parser.add_argument(
        "--files", metavar="FOLDER", help="write the trace files that you bought into this folder"
    )
    parser.epilog = "Without --buy and --cause it asks, step by step, where it is run by hand."


def run(options):
    """Show an incident, sell measurements, take the answer."""
    from lightspeed_course.incidents import policy
    from lightspeed_course.incidents.incident import UnknownChoice
    from lightspeed_course.practice import incident_session as session
    from lightspeed_course.practice import store

    o = options
    if bool(o.fix) != bool(o.cause):
        raise UserError("--cause and --fix go together; expected both")
    if o.gain and not o.cause:
        raise UserError("--gain is said with --cause and --fix; expected all three")
    case = session.opened(o.number, o.job)
    try:
        # Both are looked up first: a slip in the last word must not cost a purchase.
        for what, ids in (("measurements", o.buy), ("causes", [o.cause])):
            for id in filter(None, ids):
                case.named(what, id)
        fix = _fix(case, o.fix) if o.fix else None
    except UnknownChoice as error:
        raise UserError(str(error)) from error
    whose = " of the week" if o.job else ""
    print(f"Incident {case.seed}{whose}\n\n{plain(policy.brief(case))}\n")
    for id in o.buy:
        _sell(session, case, id)
    if o.files:
        _write(session, case, o.files)
    if o.cause:
        print(plain(session.name(case, o.cause, fix, o.gain)))
    elif o.buy or o.files or not sys.stdin.isatty():
        _standing(session, case)
    else:
        _ask(session, case)
    tell_of_the_store(store)


def plain(markdown):
    """Render Markdown for a terminal."""
    markdown = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", markdown)
    return markdown.replace("**", "").replace("```\n", "").replace("\n```", "")


def _fix(case, number):
    """The cause whose fix has this number. Raises UnknownChoice."""
    from lightspeed_course.incidents.incident import UnknownChoice

    fixes = case.setting.fixes
    if not 1 <= number <= len(fixes):
        raise UnknownChoice(f"there is no fix {number}; expected one of 1 to {len(fixes)}")
    return fixes[number - 1].id


def _write(session, case, folder):
    """Write what was bought and comes as files."""
    try:
        Path(folder).mkdir(parents=True, exist_ok=True)
        paths = case.write(session.state(case).bought, folder)
    except OSError as error:
        raise UserError(cause(error)) from error
    if not paths:
        ids = [m.id for m in case.setting.measurements if m.write]
        hint = f"expected one of {', '.join(ids)}, with --buy" if ids else "this one sells none"
        raise UserError(f"--files: nothing that you bought comes as files; {hint}")
    print(f"{len(paths)} files in {folder}: lightspeed trace {paths[0]}\n")


def _sell(session, case, id):
    text = session.buy(case, id)  # first: it is what knows the right names
    item = case.setting.measurement(id)
    print(f"{item.name}\n\n{plain(text)}\n")
    if item.write:
        print("--files FOLDER writes what lightspeed trace reads.\n")


def _standing(session, case, by_hand=False):
    """What was paid, can be bought and named; or how it ended. Typed `by_hand` it has no dashes."""
    from lightspeed_course.incidents import policy

    buy, cause = ("buy", "name") if by_hand else ("--buy", "--cause and --fix")
    now = session.state(case)
    if now.named:
        print(plain(session.name(case, *now.named)))
        return
    print(f"Paid so far: {case.minutes(now.bought)} min. To buy, with {buy}:")
    for m in case.setting.ordered("measurements"):
        mark = ", bought" * (m.id in now.bought) or ", there already" * (
            m.id in policy.opening_findings(case)
        )
        stands = ", while the job stands still" * m.stops
        print(f"  {m.id:22} {m.price:4} min  {m.name}{stands}{mark}")
    print(f"To name, with {cause}:")
    for cause in case.setting.ordered("causes"):
        print(f"  {cause.id:22} {cause.name}")
    for number, cause in enumerate(case.setting.fixes, 1):
        print(f"  {number:<22} {cause.fix}")


def _ask(session, case):
    """Until the cause is named, or the reader leaves: what was bought stays."""
    from lightspeed_course.incidents.incident import UnknownChoice

    _standing(session, case, by_hand=True)
    if not session.state(case).named:
        print("Ctrl-D leaves; what you bought stays.")
    while not session.state(case).named:
        try:
            words = input("\nbuy MEASUREMENT, or name CAUSE FIX [GAIN]: ").split()
        except EOFError:
            print("\nWhat you bought stays: the same command goes on.")
            return
        try:
            if len(words) == 2 and words[0] == "buy":
                _sell(session, case, words[1])
                print(f"Paid so far: {case.minutes(session.state(case).bought)} min.")
            elif len(words) in (3, 4) and words[0] == "name" and words[2].isdecimal():
                fix = _fix(case, int(words[2]))
                gain = positive(words[3]) if len(words) == 4 else None
                print(plain(session.name(case, words[1], fix, gain)))
            else:
                print(
                    "Expected buy and a measurement, or name, a cause, the number of a fix and, if"
                    " you like, its gain."
                )
        except (UnknownChoice, argparse.ArgumentTypeError) as error:
            print(error)

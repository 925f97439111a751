"""`lightspeed incident`: the incident room in a terminal."""

import sys

from lightspeed_cli.argument_types import count
from lightspeed_cli.errors import UserError, tell_of_the_store


def add(parser):
    """Put the arguments of the verb on its parser."""
    parser.add_argument(
        "number",
        nargs="?",
        type=count,
        help="which one (default: the first that you have not ended)",
    )
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
    parser.epilog = "Without --buy and --cause it asks, step by step, where it is run by hand."


def run(options):
    """Show an incident, sell measurements, take the answer."""
    from lightspeed_course.incidents.incident import UnknownChoice
    from lightspeed_course.practice import incident_session as session
    from lightspeed_course.practice import store

    o = options
    if bool(o.fix) != bool(o.cause):
        raise UserError("--cause and --fix go together; expected both")
    case = session.opened(o.number)
    try:
        # Both are looked up first: a slip in the last word must not cost a purchase.
        for what, ids in (("measurements", o.buy), ("causes", [o.cause])):
            for id in filter(None, ids):
                case.named(what, id)
        fix = _fix(case, o.fix) if o.fix else None
    except UnknownChoice as error:
        raise UserError(str(error)) from error
    print(f"Incident {case.seed}\n\n{plain(case.brief)}\n")
    for id in o.buy:
        _sell(session, case, id)
    if o.cause:
        print(plain(session.name(case, o.cause, fix)))
    elif o.buy or not sys.stdin.isatty():
        _standing(session, case)
    else:
        _ask(session, case)
    tell_of_the_store(store)


def plain(markdown):
    """Markdown as a terminal shows it."""
    return markdown.replace("**", "").replace("```\n", "").replace("\n```", "")


def _fix(case, number):
    """The cause whose fix has this number. Raises UnknownChoice."""
    from lightspeed_course.incidents.incident import UnknownChoice

    fixes = case.setting.fixes
    if not 1 <= number <= len(fixes):
        raise UnknownChoice(f"there is no fix {number}; expected one of 1 to {len(fixes)}")
    return fixes[number - 1].id


def _sell(session, case, id):
    shown = session.buy(case, id)  # first: it is what knows the right names
    print(f"{case.setting.measurement(id).name}\n\n{plain(shown)}\n")


def _standing(session, case, by_hand=False):
    """What was paid, what can be bought, what can be named; or how it ended. What is typed
    `by_hand` has no dashes.
    """
    buy, cause = ("buy", "name") if by_hand else ("--buy", "--cause and --fix")
    now = session.state(case)
    if now.named:
        print(plain(session.name(case, *now.named)))
        return
    print(f"Paid so far: {case.minutes(now.bought)} min. To buy, with {buy}:")
    for m in case.setting.ordered("measurements"):
        bought = ", bought" * (m.id in now.bought)
        print(f"  {m.id:22} {m.minutes:3} min  {m.name}{bought}")
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
            words = input("\nbuy MEASUREMENT, or name CAUSE FIX: ").split()
        except EOFError:
            print("\nWhat you bought stays: the same command goes on.")
            return
        try:
            if len(words) == 2 and words[0] == "buy":
                _sell(session, case, words[1])
                print(f"Paid so far: {case.minutes(session.state(case).bought)} min.")
            elif len(words) == 3 and words[0] == "name" and words[2].isdecimal():
                fix = _fix(case, int(words[2]))
                print(plain(session.name(case, words[1], fix)))
            else:
                print("Expected buy and a measurement, or name, a cause and the number of a fix.")
        except UnknownChoice as error:
            print(error)

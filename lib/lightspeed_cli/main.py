"""The command line: verbs, their parsers, and what becomes of errors."""

import argparse
import importlib
import os
import re
import sys
import textwrap

from lightspeed.errors import meant
from lightspeed_cli.errors import UserError

DESCRIPTION = "Speed of Light: an executable course on the performance of ML systems."
# Verb -> what it does, for each group of people. Its module has the same name, and is imported when
# it is asked for: help and errors come at once.
LEARNING = {
    "lab": "open the course in JupyterLab, in a folder of your own",
    "today": "ask what is due and what comes next, in ten minutes",
    "progress": "show what you have answered and predicted so far",
    "incident": "find what slows a job down: buy measurements, name cause and fix",
    "number": "show a constant: value, source, date, and who uses it",
    "law": "show a law: equation, arguments with units, chapter",
    "model": "count a model from its config.json: parameters, FLOPs, what a request holds",
    "serve": "plan how to serve a model within a promise, or judge published rows of serving",
    "measure": (
        "measure this machine: latency, bandwidth, peaks, scaling, queues, collectives; compare two"
        " machines"
    ),
    "plan": "find the best way to train a model on a cluster, with reasons",
    "nccl": "judge what nccl-tests printed: whether it is normal, and what bounds it",
    "trace": "read a profile: where the step went, what to fix first, what it gains at most",
    "evidence": "hold the laws against public measurements: error by regime, bounds beaten",
    "fit-stack": "fit the constants of a training stack to measured steps of your own",
    "reset": "restore a notebook as delivered; your version is kept as a backup",
    "where": "show folders and versions, for a report of a bug",
}
TEACHING = {"class": "release assignments, collect, grade and return them, for a class"}
WRITING = {
    "new": "make the skeleton of a chip, a question, a law or a chapter",
    "build": "execute chapters and derive exercises",
    "statements": "list the sentences that nothing holds to be true",
    "check": "fail if a derived file is not what its source makes",
    "site": "build the web edition, or serve it",
}
GROUPS = {
    "for learners": LEARNING,
    "for instructors": TEACHING,
    "for authors, in a checkout of the course": WRITING,
}
VERBS = LEARNING | TEACHING | WRITING
EXTRAS = dict.fromkeys(WRITING, "dev") | {"class": "class", "site": "web"}
TOOLS = ("numpy", "markupsafe")  # what the extra `tools` brings: enough without --page
INSTALL = (
    "The laws need Python alone; this needs more, in a checkout of the course: pip install '.[{}]'"
)
CHECKOUT = "this is for authors, and needs a checkout of the course, with `make dev` run in it"
# "class" is a word of Python's own, and a module has no hyphen.
MODULES = {"class": "classroom", "fit-stack": "fit_stack"}


class Parser(argparse.ArgumentParser):
    """An argument parser with one-line errors that suggest the likely word."""

    def error(self, message):
        wrong = re.search(r"invalid choice: '([^']*)' \(choose from (.*)\)", message)
        if wrong:
            choices = re.findall(r"[\w-]+", wrong[2])
            message = f"there is no '{wrong[1]}'; {meant(wrong[1], choices)}"
        print(f"{self.prog}: {message}", file=sys.stderr)
        sys.exit(2)


def main(argv=None):
    """Run one command; return 0, 1 for a failed check, 2 for a mistake."""
    argv = list(sys.argv[1:] if argv is None else argv)
    # What follows "--" is for Jupyter; argparse would take its options for ours.
    ours, theirs = (
        (argv[: argv.index("--")], argv[argv.index("--") + 1 :]) if "--" in argv else (argv, [])
    )
    verb = ours[0] if ours else ""
    try:
        options, unknown = _parser(verb).parse_known_args(ours)
        if options.verb is None:
            _parser("").print_help()
            return 0
        options.jupyter = _jupyter_options(options, unknown) + theirs
        # A site that is built is served anywhere.
        if options.verb in WRITING and not getattr(options, "serve", False):
            _ask_for_a_checkout()
        return options.run(options) or 0
    except UserError as error:
        print(f"lightspeed {verb}: {error}", file=sys.stderr)
        return 2
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("lightspeed"):
            raise
        extra = EXTRAS.get(verb, "tools" if error.name in TOOLS else "lab")
        print(
            f"lightspeed {verb}: {error.name} is not installed. {INSTALL.format(extra)}",
            file=sys.stderr,
        )
        return 2
    except BrokenPipeError:  # the reader closed the pager
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        return 130


def _parser(verb_name):
    name, plainly = "lightspeed", argparse.RawDescriptionHelpFormatter
    parser = Parser(
        prog=name,
        usage=f"{name} [-h] COMMAND ...",
        description=DESCRIPTION,
        epilog=_groups(),
        formatter_class=plainly,
    )
    # The groups list the verbs, in place of argparse.
    verbs = parser.add_subparsers(
        dest="verb", metavar="COMMAND", parser_class=Parser, prog=name, help=argparse.SUPPRESS
    )
    for name, words in VERBS.items():
        command = verbs.add_parser(name, description=words[0].upper() + words[1:] + ".")
        if name == verb_name:
            verb = importlib.import_module(f"lightspeed_cli.{MODULES.get(name, name)}")
            command.set_defaults(run=verb.run, parser=command)
            verb.add(command)
    return parser


def _groups():
    """The verbs as `--help` lists them, a group after the other."""
    lines = []
    for heading, verbs in GROUPS.items():
        lines += ["", f"{heading}:"]
        for name, words in verbs.items():
            first, *more = textwrap.wrap(words, 74)
            lines += [f"  {name:<12}{first}", *(f"{'':14}{line}" for line in more)]
    return "\n".join(lines).strip()


def _ask_for_a_checkout():
    from lightspeed_course.workspace import WorkspaceError, course_root

    try:
        there = (course_root() / "solutions").is_dir()  # a wheel carries none
    except WorkspaceError:
        there = False
    if not there:
        raise UserError(CHECKOUT)


def _jupyter_options(options, unknown):
    """Options with a dot in their name are Jupyter's; any other that is unknown is a slip."""
    for word in unknown:
        if options.verb != "lab" or not re.match(r"--\w+\.", word):
            flags = [
                flag
                for action in options.parser._actions
                for flag in action.option_strings
                if flag != "-h"
            ]
            after = "; Jupyter's own options go after --" if options.verb == "lab" else ""
            raise UserError(f"there is no '{word}'; {meant(word, flags)}{after}")
    return unknown

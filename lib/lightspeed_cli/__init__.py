"""The `lightspeed` command: one file a verb, for each thing a reader, an instructor or an author
does.

Every verb imports what it needs when it runs, so that help and errors come at once. A mistake in
the command line, or a state of things that the reader can mend, is one line on standard error and
exit status 2.
"""

from lightspeed_cli.main import main

__all__ = ["main"]

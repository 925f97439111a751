"""Programs that tests run."""

import subprocess


def finished(command, **options):
    """The process of this command after its end, with what it printed as text."""
    return subprocess.run(command, capture_output=True, text=True, **options)

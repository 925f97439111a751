"""What some tests need of the system beside Python. Where it is missing they are skipped, and the
last line of the run says so; where LIGHTSPEED_SKIP_NOTHING is set, as in .ci/run, they fail.
"""

import os

import pytest

REMEDIES = {
    "bubblewrap": "apt-get install bubblewrap",
    "Chromium": "apt-get install chromium",
    "Node.js": "apt-get install nodejs npm",
    "OpenBLAS": "pip install numpy from the index",
    "strace": "apt-get install strace",
}


def lacks(tool):
    """End this test for want of a tool of `REMEDIES`."""
    reason = f"needs {_named(tool)}"
    pytest.fail(reason) if os.environ.get("LIGHTSPEED_SKIP_NOTHING") else pytest.skip(reason)


def not_proved(reports):
    """What skipped tests lacked, by pytest's reports of them, as one line; "" if nothing."""
    told = [str(report.longrepr) for report in reports]
    counts = {tool: sum(f"needs {_named(tool)}" in words for words in told) for tool in REMEDIES}
    each = [
        f"{count} test{'s that need' if count > 1 else ' that needs'} {_named(tool)}"
        for tool, count in counts.items()
        if count
    ]
    return f"not proved here: {', '.join(each)}" if each else ""


def _named(tool):
    return f"{tool} ({REMEDIES[tool]})"

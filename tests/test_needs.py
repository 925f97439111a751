"""What a machine lacks is told in one line, and where nothing may be skipped it is a failure."""

from types import SimpleNamespace

import pytest
from needs import REMEDIES, lacks, not_proved


@pytest.mark.parametrize("tool", REMEDIES)
def test_a_tool_that_is_missing_skips_or_fails(tool, monkeypatch):
    monkeypatch.delenv("LIGHTSPEED_SKIP_NOTHING", raising=False)
    with pytest.raises(pytest.skip.Exception, match=f"needs {tool}"):
        lacks(tool)
    monkeypatch.setenv("LIGHTSPEED_SKIP_NOTHING", "1")
    with pytest.raises(pytest.fail.Exception, match=REMEDIES[tool]):
        lacks(tool)


def test_all_that_was_not_proved_is_one_line(monkeypatch):
    monkeypatch.delenv("LIGHTSPEED_SKIP_NOTHING", raising=False)
    reports = []
    for tool in ("bubblewrap", "Node.js", "bubblewrap"):
        with pytest.raises(pytest.skip.Exception) as skipped:
            lacks(tool)
        reports.append(SimpleNamespace(longrepr=("a file", 1, f"Skipped: {skipped.value}")))
    other = SimpleNamespace(longrepr=("a file", 1, "Skipped: PyTorch is not installed"))
    assert not_proved([other]) == not_proved([]) == ""
    assert not_proved([*reports, other]) == (
        "not proved here: 2 tests that need bubblewrap (apt-get install bubblewrap),"
        " 1 test that needs Node.js (apt-get install nodejs npm)"
    )

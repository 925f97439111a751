"""A page with two tracks to look at: what each device did, and when it was idle."""

from __future__ import annotations

from markupsafe import Markup

from lightspeed_show.html import page
from lightspeed_show.page import draw
from lightspeed_tools.trace.diagnosis import Diagnosis
from lightspeed_tools.trace.report import lines
from lightspeed_tools.trace.tracks import tracks
from lightspeed_tools.trace.verdict import headline


def to_html(diagnosis: Diagnosis) -> str:
    """Render a diagnosis as a page: the same input gives the same bytes."""
    pictures = []
    for trace, accounts in zip(diagnosis.traces, diagnosis.accounts, strict=True):
        for account in accounts:
            which = f"rank {trace.rank}" if trace.rank is not None else trace.path
            caption = f"{which}, {account.name or 'device'} {account.device}: what ran, and when."
            pictures.append((Markup(draw(tracks(trace, account), caption, caption)), caption))
    text = "\n".join(lines(diagnosis)[1:])
    return page(
        "trace", title="A profile, read", headline=headline(diagnosis), drawn=pictures, told=text
    )

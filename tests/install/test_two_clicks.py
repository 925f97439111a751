"""From the start page of the site to an installed tool in two clicks, by the page's own words."""

import html
import re
import shlex
import shutil
import subprocess
from urllib.parse import urljoin

import pytest
from processes import finished

pytestmark = pytest.mark.install


def link(page, words):
    """Where the link with these words leads, as a file."""
    [target] = re.findall(
        rf'href="([^"#]+)"[^>]*>(?:<span[^>]*>)?{words}', page.read_text("utf-8")
    )[:1]
    return page.parent / urljoin("", html.unescape(target))


def blocks(page, start):
    """The commands of the block that begins so."""
    found = re.findall(r"<pre[^>]*>(.*?)</pre>", page.read_text("utf-8"), re.S)
    texts = [html.unescape(re.sub(r"<[^>]+>", "", block)).strip() for block in found]
    return next(text for text in texts if text.startswith(start))


def test_two_clicks_from_the_start_page_a_plan_is_printed(site, tmp_path):
    tools = link(site / "index.html", "Ask your own question")  # the first click
    wheel = link(tools, r"speed_of_light\S+whl")  # the second: a download
    shutil.copy(wheel, tmp_path)
    done = finished(["bash", "-euc", blocks(tools, "python3 -m venv")], cwd=tmp_path, timeout=600)
    assert done.returncode == 0, done.stderr[-2000:]
    assert "dp" in done.stdout and "GPUs" in done.stdout
    once = shlex.split(blocks(tools, "uvx"))
    if shutil.which("uvx"):
        run = subprocess.run(once, cwd=tmp_path, capture_output=True, text=True, timeout=600)
        assert run.returncode == 0 and "FLOPs a token" in run.stdout, run.stderr[-2000:]

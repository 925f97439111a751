"""The web edition in a real Chromium, over a server that compresses: how soon text and explorers
are there, how long a slider takes to the screen, what is downloaded. On a quiet machine.

    python benchmarks/web.py

The page's own clock says when its first explorer lives and was painted. A first visit is that of a
browser without a cache. Later ones are a reader's who comes back: a profile on the disk, in which
the browser keeps files and compiled code, seen from its second visit on.
"""

import shutil
import statistics
import sys
import tempfile
import threading
from pathlib import Path

from _beside import show
from playwright.sync_api import sync_playwright

from lightspeed_authoring.site.build import build
from lightspeed_authoring.site.serve import server

PAGE, VISITS, MOVES = "chapters/02_roofline.html", 5, 60
LIVE = ".sol-explore.sol-is-live"
# The chapter's own explorer: pictures before it play, and a frame of a picture on its way is no
# answer.
MOVED = "[data-call*='roofline.explore'].sol-is-live"
OPTIONS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
# From the event to the frame in which the chart is new.
MOVE = """async (cell) => {
    const slider = cell.querySelector('input[type=range]');
    const chart = cell.querySelector('.sol-charts');
    slider.value = slider.value === slider.max ? slider.min : Number(slider.value) + 1;
    const since = performance.now();
    const drawn = new Promise((done) => new MutationObserver(
        (_, seen) => (seen.disconnect(), requestAnimationFrame(done))
    ).observe(chart, {childList: true}));
    slider.dispatchEvent(new Event('input'));
    await drawn;
    return performance.now() - since;
}"""
# When the first explorer lived, and the frame with it was drawn.
SEEN = f"""new MutationObserver((_, observer) => {{
    if (!document.querySelector("{LIVE}")) return;
    observer.disconnect();
    requestAnimationFrame(() => setTimeout(() => (window.solSeen = performance.now())));
}}).observe(document, {{subtree: true, attributes: true, attributeFilter: ["class"]}});"""
PAINT = "performance.getEntriesByName('first-contentful-paint')[0].startTime"
# The longest stretch in which the main thread did nothing else; 0 if none was over 50 ms.
LONG = """() => new Promise((done) => {
    const longest = (entries) => Math.max(0, ...entries.map((entry) => entry.duration));
    new PerformanceObserver((list) => done(longest(list.getEntries())))
        .observe({type: 'longtask', buffered: true});
    setTimeout(() => done(0), 500);
})"""
# s, ms, ms, MB, kB: what the site promises on a quiet machine
LIMITS = {"cold": 3.0, "warm": 1.5, "p95": 50.0, "weight": 8.0, "before": 300.0}


def visit(context, address):
    """Seconds until the explorer lives, and the page once it has settled."""
    page = context.new_page()
    page.add_init_script(SEEN)
    page.goto(address + PAGE, wait_until="commit")
    page.wait_for_function("window.solSeen", timeout=120_000)
    page.wait_for_timeout(2000)
    return page.evaluate("window.solSeen") / 1e3, page


def weights(browser, address):
    """Bytes over the wire of one visit: until the text stands, and in all."""
    context = browser.new_context(service_workers="block")
    page, sizes = context.new_page(), {}
    page.on("requestfinished", lambda r: sizes.__setitem__(r.url, r.sizes()["responseBodySize"]))
    page.goto(address + PAGE)
    page.wait_for_selector(LIVE, timeout=120_000)
    page.wait_for_timeout(500)
    worker = ("/pyodide/", "/course/", "image.bin", "soon.bin", "worker.js")
    late = sum(size for url, size in sizes.items() if any(part in url for part in worker))
    context.close()
    return sum(sizes.values()) - late, sum(sizes.values())


def main():
    """Measure, print, and fail where a limit is passed."""
    folder = Path(tempfile.mkdtemp()) / "site"
    build(Path(__file__).parents[1], folder, report=lambda words: None)
    running = server(folder)
    threading.Thread(target=running.serve_forever, daemon=True).start()
    address = f"http://127.0.0.1:{running.server_port}/"
    chromium = next(filter(None, map(shutil.which, ("chromium", "google-chrome"))))
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=OPTIONS)
        before, weight = weights(browser, address)
        cold, warm, paints, moves, longest = [], [], [], [], []
        for _ in range(VISITS):
            context = browser.new_context()
            seconds, page = visit(context, address)
            cold.append(seconds)
            paints.append(page.evaluate(PAINT))
            context.close()
        browser.close()
        profile = folder.parent / "profile"
        context = playwright.chromium.launch_persistent_context(
            profile, executable_path=chromium, args=OPTIONS
        )
        visit(context, address)[1].close()
        for _ in range(VISITS):
            seconds, page = visit(context, address)
            warm.append(seconds)
            cell = page.wait_for_selector(MOVED, timeout=120_000)
            cell.scroll_into_view_if_needed()
            cell.query_selector(".sol-asks button").click()  # a guess would hold the first move
            page.wait_for_timeout(500)
            moves += [cell.evaluate(MOVE) for _ in range(MOVES // VISITS)]
            longest.append(page.evaluate(LONG))
            page.close()
        context.close()
    p95 = statistics.quantiles(moves, n=20)[-1]
    found = {
        "cold": statistics.median(cold), "warm": statistics.median(warm), "p95": p95,
        "weight": weight / 1e6, "before": before / 1e3,
    }  # fmt: skip
    show(
        f"Web edition, {PAGE}, {VISITS} visits",
        [
            ("text painted, median", f"{statistics.median(paints):.0f} ms"),
            ("first visit to live explorer, median", f"{found['cold']:.2f} s"),
            ("later visit, median", f"{found['warm']:.2f} s"),
            ("slider to paint, median", f"{statistics.median(moves):.0f} ms"),
            ("slider to paint, p95", f"{p95:.0f} ms"),
            ("longest task of the main thread", f"{max(longest):.0f} ms"),
            ("downloaded before the worker starts", f"{found['before']:.0f} kB"),
            ("downloaded for a live chapter", f"{found['weight']:.2f} MB"),
        ],
    )
    running.shutdown()
    shutil.rmtree(folder.parent)
    missed = [name for name, limit in LIMITS.items() if found[name] > limit]
    sys.exit(f"outside the limits: {', '.join(missed)}" if missed else 0)


if __name__ == "__main__":
    main()

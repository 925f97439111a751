"""Packages that the site does not have, and the host that does: what a reader's own code may load
once the reader agrees. The list is Pyodide's own, with its hashes; it is read when it is needed.
"""

import json
import os
import sys

LIST = "_static/live/packages.json"
PLACES = ("/_static/live/", "/lite/extensions/")  # of the scripts that run Python, in the site


def site():
    """The address of this site, with its slash; empty where Python is not in a browser."""
    if sys.platform != "emscripten":
        return ""
    import js

    address = str(getattr(js, "location", None) and js.location.href)
    return next((address.rpartition(p)[0] + "/" for p in PLACES if p in address), "")


async def offer(module):
    """What it would take to import this module, as a dict that JSON can hold: the packages, the
    host, the words to ask with. None where Pyodide's list does not have it.
    """
    from pyodide.http import pyfetch

    return offered(module, await (await pyfetch(site() + LIST)).json()) if site() else None


def offered(module, index):
    """`offer`, by the list `index`."""
    entries = index["packages"]
    by_import = {name: key for key, entry in entries.items() for name in entry["imports"]}
    if module not in by_import:
        return None
    queue, entries_taken = [by_import[module]], {}
    while queue:
        if (key := queue.pop()) not in entries_taken:
            entries_taken[key] = entries[key]
            queue += entries[key]["depends"]
    sizes = [entry.get("bytes") for entry in entries_taken.values()]
    size = "its list tells no size" if None in sizes else f"{sum(sizes) / 1e6:.1f} MB"
    host, more = index["place"].split("/")[2], len(entries_taken) - 1
    along = f" with {more} package{'s' * (more > 1)} that it needs" if more else ""
    return {
        "module": module,
        "host": host,
        "words": f"{module} is not part of this site. It can be loaded{along} from {host}, the host"
        f" of Pyodide's packages ({size}). That host then sees that you ask.",
        "entries": {
            key: entry | {"file_name": index["place"] + entry["file_name"]}
            for key, entry in entries_taken.items()
        },
    }


async def bring(offer):
    """Load what was offered, each file checked by its hash. Raises OSError."""
    import js
    import pyodide_js
    from pyodide.ffi import to_js

    for key, entry in offer["entries"].items():
        setattr(pyodide_js._api.lockfile_packages, key, js.JSON.parse(json.dumps(entry)))
    faults = []
    quiet = {
        "checkIntegrity": True,
        "messageCallback": hush,
        "errorCallback": faults.append,
    }
    names = to_js(list(offer["entries"]))
    await pyodide_js.loadPackage(names, to_js(quiet, dict_converter=js.Object.fromEntries))
    if faults:
        raise OSError(faults[-1])
    os.environ["MPLBACKEND"] = "svg"  # a worker has no window to draw in


def hush(*_):
    """Pyodide's talk while it loads; the page says what happens."""


def later(work):
    """Run `work` while the page continues; do nothing if there is no page."""
    if not site():
        work.close()
        return
    import asyncio

    tasks.add(task := asyncio.ensure_future(work))
    task.add_done_callback(tasks.discard)


tasks = set()  # asyncio itself forgets them

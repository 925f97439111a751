"""The order in which pages are read: a chapter is all pages with its two digits, the lesson first,
then its parts, and the proof beside them. And where a heading went that once stood elsewhere:

    python -m lightspeed_authoring.site.reading    # after headings moved: writes moved.json anew

`moved.json` has every anchor that was ever published, and where it is now; page.js follows it.
A heading or a cell that no longer exists by its name keeps the place that was written there by
hand.
"""

import json
import re
from pathlib import Path

from lightspeed_authoring.site import cells

PROOF = "_proof"
MOVED = Path(__file__).parent / "moved.json"
COURSE = Path(__file__).parents[3]


def families(stems):
    """Lesson -> its other pages, in order: {"06_x": ["06_x_2_y", "06_x_proof"], ...}. Pages whose
    names do not begin with one another's stand alone.
    """
    pages: dict[str, list[str]] = {}
    for stem in sorted(stems):
        lesson = next(
            (lesson_stem for lesson_stem in pages if stem.startswith(f"{lesson_stem}_")), None
        )
        if lesson is None:
            pages[stem] = []
        else:
            pages[lesson].append(stem)
    return pages


def anchors(notebook):
    """The anchors of a page of the site: those of its explorers and boxes, and of its headings."""
    from docutils.nodes import make_id

    text = "\n\n".join("".join(c["source"]) for c in notebook["cells"] if c["cell_type"] != "code")
    text = re.sub(r"^```.*?^```", "", text, flags=re.S | re.M)
    titles = re.findall(r"^#{1,4} +(.+)$", text, re.M)
    names = cells.anchors(notebook).values()
    live = [name for name in names if not name.startswith("cell")]
    own = ["explore"] if any(name.startswith("explore") for name in live) else []
    return [*own, *live, *(make_id(re.sub(r"[`*$]", "", title)) for title in titles)]


def pages(course=COURSE):
    """Page -> its anchors: "02_roofline" of the chapters, "exercises/02_roofline"."""
    return {
        path.relative_to(course).with_suffix("").as_posix().removeprefix("chapters/"): anchors(
            json.loads(path.read_text("utf-8"))
        )
        for folder in ("chapters", "exercises")
        for path in sorted((Path(course) / folder).glob("[0-9][0-9]_*.ipynb"))
    }


def moved():
    """Page -> anchor that it once had -> "page#anchor" where that is now."""
    return json.loads(MOVED.read_text("utf-8"))


def followed(now, before):
    """`before` (as `moved()`) with each anchor where it is `now` (as `pages()`): on its own page,
    else on one of the same chapter, else as it was; if that is gone, on the only one that has it.
    """
    result = {}
    for page, anchors in before.items():
        near = sorted(now, key=lambda other: (other != page, other[:2] != page[:2], other))
        result[page] = {}
        for anchor, place in anchors.items():
            having = [other for other in near if anchor in now[other]]
            stands = place.partition("#")[2] in now.get(place.partition("#")[0], ())
            sure = [other for other in having if other[:2] == page[:2]]
            if not sure and not stands and len(having) == 1:
                sure = having
            result[page][anchor] = f"{sure[0]}#{anchor}" if sure else place
    return result


def lost(now, places):
    """Anchors that lead nowhere, each as "page#anchor"."""
    return [
        f"{page}#{anchor}"
        for page, anchors in places.items()
        for anchor, place in anchors.items()
        if place.partition("#")[2] not in now.get(place.partition("#")[0], ())
    ]


def setup(app):
    """For Sphinx: who turns pages goes from lesson to lesson, past the proofs."""

    def turned(app, pagename, _, context, __):
        if app.builder.name != "html":
            return
        related = app.builder.relations
        for name, place in (("prev", 1), ("next", 2)):
            there = related.get(pagename, (None, None, None))[place]
            while there and there.endswith(PROOF):
                there = related[there][place]
            context[name] = there and {
                "link": app.builder.get_relative_uri(pagename, there),
                "title": app.builder.render_partial(app.env.titles[there])["title"],
            }

    app.connect("html-page-context", turned)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def main():
    now, before = pages(), moved()
    here = {page: {name: f"{page}#{name}" for name in names} for page, names in now.items()}
    places = followed(now, {page: before.get(page, {}) for page in here | before})
    places = {page: here.get(page, {}) | old for page, old in places.items()}
    MOVED.write_text(json.dumps(places, indent=1) + "\n", "utf-8")
    print(*(f"leads nowhere: {one}" for one in lost(now, places)), sep="\n")


if __name__ == "__main__":
    main()

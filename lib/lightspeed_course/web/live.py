"""The host that a page in a browser is: this module runs in its worker, on Pyodide's bare core.

The page opens a cell by name; what the cell shows are models, each with a state that is posted to
the page as it changes, and messages that come back. The page draws them with the very files that
Jupyter runs, view.js and form.js, which ask for no more than get, on, off and send.
"""

import html
import importlib
import json
import pkgutil
import random
import traceback

from lightspeed_course import explorers as rooms
from lightspeed_course.practice import store
from lightspeed_course.web import code, packages
from lightspeed_show import host
from lightspeed_show.layout import still

PRACTICE = ("ask", "predict", "reveal", "cards", "today", "incident", "bench", "progress")
_post = []  # how a message reaches the page
_models = {}


def post(**message):
    """Send a message to the page, as JSON."""
    _post[0](json.dumps(message))


class Model:
    """A part of the page. What is set on it goes to the page; `receive` hears the reader."""

    _name: str
    _classes: list

    def __init__(self, kind, receive=None, **state):
        name = f"m{len(_models) + 1}"
        vars(self).update(state, _name=name, _receive=receive, _classes=[])
        _models[name] = self
        post(made=name, kind=kind, state=state)

    def __setattr__(self, name, value):
        vars(self)[name] = value
        post(set=self._name, name=name, value=value)

    def add_class(self, name):
        self._dress({*self._classes, name})

    def remove_class(self, name):
        self._dress({*self._classes} - {name})

    def _dress(self, classes):
        vars(self)["_classes"] = sorted(classes)
        post(set=self._name, name="classes", value=self._classes)


class Page:
    """The host's four things (show/host.py)."""

    @staticmethod
    def chart(frame, content, receive):
        return Model("chart", receive, frame=frame, content=content)

    @staticmethod
    def form(receive, **state):
        def heard(message):
            receive(message)
            model.heard = message.get("turn", 0)

        usual = {"action": "Check", "extra": "", "extra_enabled": False, "offers": [], "status": ""}
        model = Model("form", heard, **(usual | {"heard": 0} | state))
        return model

    @staticmethod
    def text(html=""):
        return Model("text", value=html)

    @staticmethod
    def stack(parts):
        return Model("stack", parts=[part._name for part in parts])

    @staticmethod
    def below(stack, part):
        stack.parts = [*stack.parts, part._name]

    @staticmethod
    def display(bundle):
        code.show(bundle | {"own": True})

    @staticmethod
    def picture(charts, alt, svg):
        if charts:
            code.show(Picture(charts, alt))
        else:  # a figure of matplotlib, which the reader has let in
            code.show({"text/html": svg()})


class Picture:
    """A figure of a cell that ran here, drawn as explorers are."""

    def __init__(self, charts, alt):
        self.charts, self.alt = charts, alt

    def live(self):
        frame, content = still(self.charts, self.alt)
        return Model("chart", frame=frame, content=content)


class Keeper:
    """Progress in the browser: all rows in memory, and each new one handed to its data base."""

    def __init__(self, rows, keep):
        self._rows, self._keep = [tuple(row) for row in rows], keep
        self.notice = ""

    def add(self, rows):
        self._rows += rows
        self._keep(json.dumps(rows))

    def also(self, rows):
        """Take rows that another tab has kept."""
        self._rows += map(tuple, rows)

    def rows(self):
        return list(self._rows)

    def take_notice(self):
        notice, self.notice = self.notice, ""
        return notice


def begin(send, rows, keep):
    """Be this process' host: `send` takes messages, `keep` rows to a data base with these."""
    random.seed()  # an image of the memory has the state of the day on which it was made
    _post[:] = [send]
    host.use(Page)
    _tab["keeper"] = Keeper(json.loads(rows), keep)
    store.use(_tab["keeper"])


def explorers():
    """Every explorer of the course by its name, "roofline.explore"."""
    models = {}
    for module in sorted(m.name for m in pkgutil.iter_modules(rooms.__path__)):
        room = importlib.import_module(f"{rooms.__name__}.{module}")
        for name in sorted(n for n in vars(room) if n.startswith("explore")):
            make = getattr(room, name)
            if getattr(make, "__module__", "") == room.__name__:
                models[f"{module}.{name}"] = make()
    return models


_open = {}  # cell -> explorer
_tab = {}  # what keeps progress here


def hear(text):
    """Answer a message of the page."""
    message = json.loads(text)
    try:
        _answer(message)
    except Exception as error:
        words = f"A fault in the course: {error}"
        cell = message.get("open") or message.get("link") or ""
        post(failed=cell, words=words, trace=traceback.format_exc())


def _answer(message):
    match message:
        case {"to": name, "content": content}:
            if (receive := vars(_models[name])["_receive"]) is not None:
                receive(content)
        case {"open": cell, "call": call}:
            post(opened=cell, model=_opened(cell, call, message.get("state", ""))._name)
        case {"link": cell}:
            post(link=cell, state=_open[cell].link())
        case {"elsewhere": rows}:
            _tab["keeper"].also(json.loads(rows))
            post(elsewhere=True)
        case {"progress": True}:
            post(progress=store.dumps())
        case {"take": progress}:
            try:
                count = store.loads(progress)
                post(taken=f"{count} new event{'s' * (count != 1)} taken in.")
            except ValueError as error:
                post(taken=str(error))


def _opened(cell, call, state):
    """The model that a cell shows."""
    name, *arguments = call
    if name == "code":
        return _editor(*arguments)
    if name == "progress":
        view, _ = code.run("from lightspeed_course import progress\nprogress()")
        return Model("text", value="".join(_part(each)["html"] for each in view))
    if name in PRACTICE:
        view = practice(name, *arguments)
        if hasattr(view, "box"):
            return view.box
        from lightspeed_course.practice.forms import as_html

        return Model("text", value=as_html(view.markdown))
    module, _, function = name.partition(".")
    explorer = getattr(importlib.import_module(f"{rooms.__name__}.{module}"), function)()
    _open[cell] = explorer
    if state:
        try:
            explorer.follow(state)
        except ValueError as error:
            post(failed=cell, words=f"The link says what this explorer does not have: {error}.")
    return explorer.live()


def practice(name, *arguments):
    """What a cell of `PRACTICE` shows; `arguments`: a question's id and the page's seed, or an
    incident's number and its job.
    """
    word = "job" if name == "incident" else "seed"
    keywords = {word: arguments[1]} if arguments[1:] else {}
    return getattr(importlib.import_module("lightspeed_course"), name)(*arguments[:1], **keywords)


def _editor(source):
    """A cell to be edited and run; the page sends the cells above it along, as they stand. What it
    lacks and the host of Pyodide's packages has is offered; the page asks the reader.
    """
    offered, asked_for = {}, set()

    def receive(content):
        if content.get("bring"):
            packages.later(bring(content))
            return
        sheet = code.begun(content["source"], content["above"])
        views, problem = sheet.perform(content["source"])
        cell.parts, cell.problem = [_part(each) for each in views], problem
        cell.busy = False
        if sheet.lacks and sheet.lacks not in asked_for:
            packages.later(offer(sheet.lacks))

    async def offer(module):
        offer_data = await packages.offer(module)
        if offer_data is not None:
            offered.update(offer_data)
            cell.offer = {name: offer_data[name] for name in ("module", "host", "words")}

    async def bring(content):
        asked_for.add(offered["module"])  # once: who fails is not asked for again
        try:
            await packages.bring(offered)
        except Exception as error:
            cell.parts = []
            cell.problem = (
                f"{offered['module']} did not come from {offered['host']}: {error}. In the lab the"
                " same cell runs as it is."
            )
            cell.busy = False
        else:
            receive(content | {"bring": False})

    cell = Model("code", receive, source=source, parts=[], problem="", busy=False, offer=None)
    return cell


def _part(view):
    """What a cell shows, as the page takes it: HTML, or the name of a model."""
    from lightspeed_course.practice.forms import as_html

    match view:
        case {"stream": text}:
            return {"html": f"<pre class='sol-out'>{html.escape(text)}</pre>"}
        case {"text/html": text}:
            return {"html": text}
        case {"text/markdown": text}:
            return {"html": as_html(text, own="own" in view)}
        case {"text/plain": text}:
            return {"html": f"<pre class='sol-out'>{html.escape(text)}</pre>"}
    return {"model": (view.box if hasattr(view, "box") else view.live())._name}


def warm():
    """Import what every page needs, for an image of the memory."""
    from lightspeed_course.explorers import menus
    from lightspeed_course.practice import ask, cards, forms, predict

    forms.as_html("")
    return menus.machines("bf16"), ask, cards, predict

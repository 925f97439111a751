"""An explorer: a pure function `view(**params) -> View`, and controls for its parameters.

def view(chip, batch):
    point = ...
    verdict = f"Memory-bound: {si(share, '%')} of peak."
    return View(Chart(...), verdict=verdict, facts={"T_math": si(t_math, "s")})

explorer(view, [Choice("chip", "accelerator", {"H100": "h100_sxm", "A100": "a100_80gb"}),
                LogSlider("batch", "B", 1, 4096, 128, unit="token", whole=True)],
         caption="Drag B and watch the point climb.", alt="A roofline with one point on it ...")
"""

import contextlib
import math
from dataclasses import dataclass, replace
from urllib.parse import parse_qsl, urlencode

from .chart import Chart
from .format import si
from .formula import Formula
from .host import here, widget_view
from .layout import content
from .page import words


@dataclass(frozen=True)
class View:
    """What an explorer shows for one set of parameters: charts, the verdict in words, named facts
    (texts), and the law with its numbers, where there is one. A picture that plays says how many
    `moments` it has with these parameters, and at which of them it `opens`: the telling one, at
    which it stops again. `measured` says whose rows lie in the charts, if any; `advice`, what to
    change first, waits behind a button.
    """

    charts: tuple
    verdict: str
    facts: tuple = ()
    moments: int = 0
    formula: Formula | None = None
    measured: str = ""
    opens: int = 0
    advice: str = ""

    def __post_init__(self):
        charts = (self.charts,) if isinstance(self.charts, Chart) else tuple(self.charts)
        if not charts or not all(isinstance(chart, Chart) for chart in charts):
            raise TypeError(f"View: charts = {self.charts!r}: expected a Chart or several")
        object.__setattr__(self, "charts", charts)
        object.__setattr__(self, "verdict", words("View", "verdict", self.verdict))
        facts = self.facts.items() if isinstance(self.facts, dict) else self.facts
        object.__setattr__(self, "facts", tuple((str(name), str(value)) for name, value in facts))

    def spec(self):
        """The view as JSON, for the live renderer."""
        law = self.formula.lines() if self.formula else ()
        more = {"advice": self.advice} if self.advice else {}
        spec = content(self.charts, self.verdict, self.facts, law, self.moments, self.measured)
        return spec | more


@dataclass(frozen=True)
class Control:
    """A parameter of the view: `name` as the view knows it, `label` for the reader, `options` as
    (text, value) pairs, the value at first.
    """

    name: str
    label: str
    options: tuple
    value: object
    kind: str

    def index(self, value):
        """The place of a value among the options."""
        for i, (_, option) in enumerate(self.options):
            if option == value:
                return i
        raise ValueError(
            f"{self.name} = {value!r}: expected one of"
            f" {', '.join(text for text, _ in self.options)}"
        )

    def meant(self, text):
        """Return the option with this value, else this text; a slider's, else the nearest."""
        # Values first: a link writes them, and "11" may also be the text of another option.
        for options in ({str(v): v for _, v in self.options}, dict(self.options)):
            if text in options:
                return options[text]
        with contextlib.suppress(ValueError):
            if self.kind == "slider" and math.isfinite(number := float(text)):
                return min((v for _, v in self.options), key=lambda v: abs(v - number))
        raise ValueError(f"{self.name} has no option {text!r}")

    def text(self, value):
        """The value as the reader sees it."""
        return self.options[self.index(value)][0]

    def spec(self):
        return {
            "name": self.name,
            "label": self.label,
            "kind": self.kind,
            "texts": [text for text, _ in self.options],
        }

    def sample(self, count):
        """At most `count` values from end to end (all of a menu's)."""
        values = [value for _, value in self.options]
        if self.kind not in ("slider", "play") or len(values) <= count:
            return values
        return [values[round(i * (len(values) - 1) / (count - 1))] for i in range(count)]


def Choice(name, label, options, value=None):
    """A menu. `options`: a dict text -> value, or values; the first is the default."""
    pairs = (
        tuple(options.items())
        if isinstance(options, dict)
        else tuple((str(option), option) for option in options)
    )
    return _control(name, label, pairs, pairs[0][1] if value is None else value, "menu")


def Toggle(name, label, value=False):
    """A check box."""
    return _control(name, label, (("no", False), ("yes", True)), bool(value), "toggle")


def Slider(name, label, low, high, value, step=1, unit="", text=None):
    """A slider over low, low + step, ..., high, shown as `si(value, unit)` or `text(value)`."""
    count = round((high - low) / step)
    values = [
        low + i * step if isinstance(step, int) else float(f"{low + i * step:.10g}")
        for i in range(count + 1)
    ]
    return _slider(name, label, values, value, unit, text)


def LogSlider(
    name,
    label,
    low,
    high,
    value,
    unit="",
    per_decade=20,
    base=None,
    whole=False,
    include=(),
    text=None,
):
    """A slider over equal ratios from `low` to `high`, both included: `per_decade` steps a decade,
    or powers of `base` (2). `whole` rounds to whole numbers; `include` adds exact values that
    matter, such as a model's own batch. The default is always on it."""
    if not 0 < low < high:
        raise ValueError(f"{name}: low = {low}, high = {high}: expected 0 < low < high")
    ratio = base or 10 ** (1 / per_decade)
    count = math.floor(math.log(high / low) / math.log(ratio) + 1e-9)
    values = [low * ratio**i for i in range(count + 1)]
    if whole or not base:
        values = [round(v) if whole else float(f"{v:.3g}") for v in values]
    return _slider(name, label, sorted({low, high, value, *include, *values}), value, unit, text)


def Play(name, label, most, value=0, text=None):
    """A slider over a picture's moments 0, ..., `most`, with buttons to play and step.
    `View.moments` says how many there are; beyond, the view gets the last.
    """
    return replace(Slider(name, label, 0, most, value, text=text), kind="play")


def _slider(name, label, values, value, unit, text):
    text = text or (lambda v: si(v, unit))
    return _control(
        name,
        label,
        tuple((text(v), v) for v in values),
        min(values, key=lambda v: abs(v - value)),
        "slider",
    )


def _control(name, label, options, value, kind):
    if len(options) < 2 or value not in [option for _, option in options]:
        raise ValueError(
            f"{name}: value = {value!r}: expected one of at least two options, which are"
            f" {[option for _, option in options]}"
        )
    return Control(name, label, options, value, kind)


class Explorer:
    """Made by `explorer`. `.set(batch=8)` moves controls as a reader would and returns the new
    View; `.params` and `.shown` tell what is there, `.at(batch=8)` what would be; `.error` is the
    exception of the last redraw, or None; `.grid()` yields parameter sets that cover the controls,
    for tests."""

    def __init__(self, view, controls, caption, alt, presets=None, guess="", later=()):
        self.view, self.controls = view, {control.name: control for control in controls}
        self.caption = words("explorer", "caption", caption)
        self.alt = words("explorer", "alt", alt)
        self.guess, self.later = guess, [self._control(name).name for name in later]
        if len(self.controls) != len(controls):
            raise ValueError(
                f"explorer: two controls of one name in {[control.name for control in controls]}"
            )
        self.presets = [
            [text, {name: self._control(name).index(value) for name, value in state.items()}]
            for text, state in (presets or {}).items()
        ]
        self.params = {name: control.value for name, control in self.controls.items()}
        self.play = next((c.name for c in controls if c.kind == "play"), None)
        self.opens = self.play and self.view(**self.params).opens
        if self.opens:
            self.params[self.play] = self.opens
            self.controls[self.play] = replace(self.controls[self.play], value=self.opens)
        self.first = self.shown = self._seen()
        self.first.spec()  # an error in either stops the cell: what a reader sees first must work
        self.error = None
        self.chart = None

    def at(self, **changes):
        """Return the view of the first state with these changes, without redrawing."""
        return self.view(**{c.name: c.value for c in self.controls.values()} | changes)

    def set(self, **values):
        """Set parameters to values of their controls' options, and redraw."""
        for name, value in values.items():
            self._control(name).text(value)  # refuses what is not an option
        self.params |= values
        self._redraw()
        return self.shown

    def _control(self, name):
        if name not in self.controls:
            raise ValueError(f"explorer: no control {name!r}; there are {', '.join(self.controls)}")
        return self.controls[name]

    def receive(self, message):
        """A message of the browser: {"turn": its number, "at": {name: index of the option}};
        answered by a redraw that carries the number.
        """
        self.params |= {
            name: self.controls[name].options[index][1] for name, index in message["at"].items()
        }
        self._redraw(message["turn"])

    def follow(self, link):
        """Set the controls from a link, "hardware=b200&batch=64": names or labels of controls,
        values or texts of options. Raises ValueError with the fault.
        """
        values = {}
        for name, text in parse_qsl(link, keep_blank_values=True):
            matches = [c for c in self.controls.values() if name in (c.name, c.label)]
            if not matches:
                raise ValueError(f"no control {name!r}; there are {', '.join(self.controls)}")
            value = matches[0].meant(text)
            values[matches[0].name] = value
        self.set(**values)

    def link(self):
        """The state as `follow` takes it: what differs from the first one."""
        changed = {
            name: str(value)
            for name, value in self.params.items()
            if value != self.controls[name].value
        }
        return urlencode(changed)

    def grid(self, each=3, most=None):
        """Every combination of all options of menus and toggles and of `each` values of each
        slider; for a picture that plays, `each` of the moments that it then has. Of more than
        `most` combinations, about that many, in which every control changes.
        """
        values = [
            [0] if control.name == self.play else control.sample(each)
            for control in self.controls.values()
        ]
        count = math.prod(map(len, values))
        step = max(1, count // (most or count))
        while math.gcd(step, count) > 1:  # else the last controls would stay where they are
            step += 1
        for at in range(0, count, step):
            state = {}
            for name, its in reversed([*zip(self.controls, values, strict=True)]):
                at, which = divmod(at, len(its))
                state[name] = its[which]
            last = self.view(**state).moments - 1 if self.play else 0
            for moment in sorted({round(last * i / max(each - 1, 1)) for i in range(each)}):
                yield state | ({self.play: moment} if self.play else {})

    def stills(self, count=3):
        """(title, `View`) of some moments of a picture from early to its last; of one that says
        where it opens, and of what does not play, what was shown first.
        """
        if not self.play or self.opens:
            return [("", self.first)]
        control, last = self.controls[self.play], self.first.moments - 1
        moments = sorted({round(last * (i + 1) / count) for i in range(count)})
        return [(f"{control.label}: {control.text(m)}", self.at(**{self.play: m})) for m in moments]

    def _seen(self):
        """The view of the parameters; past the last moment of a picture it is that moment's."""
        if self.play and self.params[self.play]:
            last = self.view(**self.params | {self.play: 0}).moments - 1
            self.params |= {self.play: min(self.params[self.play], last)}
        return self.view(**self.params)

    def _redraw(self, turn=0):
        try:
            view = self._seen()
            spec = view.spec()
            self.shown, self.error = view, None
        # whatever it is, the reader must see it, and a test finds it in .error
        except Exception as error:
            self.error = error
            kind = "" if isinstance(error, ValueError) else f"{type(error).__name__}: "
            spec = self.shown.spec() | {"error": f"{kind}{error}"}
        if self.chart is not None:
            self.chart.content = self._content(spec, turn)

    def _content(self, spec, turn=0):
        at = {name: control.index(self.params[name]) for name, control in self.controls.items()}
        return spec | {"turn": turn, "at": at}

    def live(self):
        """Return the part of the page, created on first use."""
        if self.chart is None:
            frame = {
                "controls": [control.spec() for control in self.controls.values()],
                "presets": self.presets,
                "caption": self.caption,
                "alt": self.alt,
                **({"opens": self.opens} if self.opens else {}),
                # Who follows a link to a state has made a move already.
                **({"guess": self.guess} if self.guess and not self.link() else {}),
                **({"later": self.later} if self.later else {}),
            }
            self.chart = here().chart(frame, self._content(self.shown.spec()), self.receive)
        return self.chart

    def _repr_mimebundle_(self, **_):
        """The live widget where there is a kernel, else a figure of the first state; and words."""
        from . import static

        stills = self.stills()
        figure = {"text/html": self._figure(stills)} if static.can_draw() else {}
        words = {"text/plain": stills[-1][1].verdict}
        return {**widget_view(self.live().model_id), **figure, **words}

    def _figure(self, stills):
        from . import static

        view = stills[-1][1]
        settings = static.joined(
            (control.label, control.text(control.value))
            for control in self.controls.values()
            if control.name != self.play
        )
        law = str(view.formula or "")
        notes = [
            law,
            static.joined(view.facts),
            self.caption,
            view.measured,
            "Run this cell to get the controls.",
        ]
        notes = [note for note in notes if note]
        charts = [
            replace(chart, title=title or chart.title)
            for title, still in stills
            for chart in still.charts
        ]
        picture = static.svg(charts, self.caption, self.alt, settings, view.verdict, notes)
        return static.image(picture, f"{self.alt} {view.verdict} {law}".strip())


def explorer(view, controls, caption, alt, presets=None, guess="", later=()):
    """Controls above a live chart. As the last value of a cell it shows itself; without a kernel
    its first state is a static figure. `presets`: name -> the controls that it sets, as buttons.

    With a `guess`, which asks where something will be, the first move waits for a click in the
    picture; whoever does not want to guess says so. Controls named in `later` stand under "more".
    """
    return Explorer(view, controls, caption, alt, presets, guess, later)

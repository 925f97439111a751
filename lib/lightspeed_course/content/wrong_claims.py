"""Wrong claims that readers will meet, each with its executable rebuttal: `gallery("01")` shows
those of chapter 1.

The claims are in chapters/gallery.toml. Its expressions may use

    accelerator, link, memory, energy, number, find
                            the catalog: accelerator("h100_sxm").bf16, number("nvlink4.bandwidth")
    decoder                 a model by its name, such as decoder("llama2_7b")
    every law of the modules that `_names` lists
                            ridge_point, attainable, critical_batch, energy_of, ...
    si, plain, human_time   from lightspeed_show.format, to write numbers
    claimed, right          in `because`, `sound` and `holds`: both values, in SI

`holds` is what keeps the statements of an entry true: words of `because` or `sound` -> a condition.
A claim with a condition that is false is not shown; it raises.
"""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache

from lightspeed import (
    catalog,
    collectives,
    energy,
    fabrics,
    networks,
    parallel,
    pipeline,
    queueing,
    reliability,
    roofline,
    scaling,
    serving,
    training,
)
from lightspeed_course.workspace import course_root
from lightspeed_models import nccl_tuner
from lightspeed_models.llm import decoder
from lightspeed_show.bound import expressions, fill, held
from lightspeed_show.format import human_time, plain, plural, si


@dataclass(frozen=True)
class Claim:
    """One entry of gallery.toml."""

    id: str
    chapter: str
    quote: str
    source: str
    right: str
    because: str
    sound: str
    unit: str
    claimed: float | None = None
    holds: Mapping[str, str] = field(default_factory=dict, hash=False)

    @property
    def factor(self) -> float:
        """SI value of one unit used by the source."""
        return float(catalog.UNITS[self.unit][0])

    @property
    def value(self) -> float:
        """The value of `right`, in SI."""
        return float(eval(f"(\n{self.right}\n)", dict(_names())))

    def written(self, text: str) -> str:
        """Return `because` or `sound` with its expressions filled in."""
        names = self._values()
        return fill(
            " ".join(text.split()), [eval(braces.python, names) for braces in expressions(text)]
        )

    def _values(self) -> dict:
        claim = {} if self.claimed is None else {"claimed": self.claimed * self.factor}
        return {**_names(), "right": self.value, **claim}

    def false_statements(self) -> list[str]:
        """Return the false statements of `because` and `sound`, each with its condition."""
        return [
            f"{words}: {text}"
            for words, text in self.holds.items()
            if not held(eval(f"(\n{text}\n)", self._values()))
        ]

    def markdown(self) -> str:
        """Render the claim for the reader; raises ValueError if one of its statements is false."""
        if false := self.false_statements():
            raise ValueError(f"gallery.toml: {self.id}: does not hold: {'; '.join(false)}")
        source = catalog.source(self.source)
        title = f"[{source.title}]({source.address})" if source.address else source.title
        who = ", ".join(filter(None, (source.author, title)))
        quote = self.quote.strip().replace("*", r"\*").replace("_", r"\_")
        answer = f"**{self._in_unit(self.value / self.factor)}**"
        instead = f", not {self._in_unit(self.claimed)}" if self.claimed is not None else ""
        return (
            f"> **“{quote}”**\n>\n> {who}\n\n"
            f"{self.written(self.because)}\n\n"
            f"```python\n{self.right.strip()}\n```\n\n"
            f"gives {answer}{instead}.\n\n"
            f"A sound claim: {self.written(self.sound)}"
        )

    def _in_unit(self, value: float) -> str:
        return f"{plain(value, 4)} {plural(self.unit, value)}".strip()


@cache
def claims() -> tuple[Claim, ...]:
    """Every claim of gallery.toml, in its order."""
    file = course_root() / "chapters" / "gallery.toml"
    return tuple(
        Claim(**entry) for entry in tomllib.loads(file.read_text(encoding="utf-8"))["claim"]
    )


def gallery(chapter: str) -> None:
    """Show the wrong claims of a chapter ("01") with their corrections."""
    from lightspeed_show.host import here

    texts = [claim.markdown() for claim in claims() if claim.chapter == chapter]
    if not texts:
        raise ValueError(
            f"gallery: chapter = {chapter!r}: expected one of"
            f" {sorted({claim.chapter for claim in claims()})}"
        )
    text = "\n\n---\n\n".join(texts)
    here().display({"text/markdown": text, "text/plain": text})


@cache
def _names() -> dict:
    modules = [roofline, energy, scaling, training, queueing, serving, collectives, nccl_tuner]
    modules += [pipeline, parallel, reliability, networks, fabrics]
    names = {
        name: law
        for module in modules
        for name, law in vars(module).items()
        if hasattr(law, "arguments")
    }
    for name in ("accelerator", "link", "memory", "energy", "number", "find"):
        names[name] = getattr(catalog, name)
    return names | {"decoder": decoder, "si": si, "plain": plain, "human_time": human_time}

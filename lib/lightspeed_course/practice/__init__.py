"""Practice: questions with a diagnosis, predictions, drill cards and what became of them.

    ask("roofline.int8_critical_batch")              # prompt, answer box, verdict, worked solution
    check("roofline.int8_critical_batch", answer)    # the verdict alone
    predict("numbers.dram_over_fma", guess); reveal("numbers.dram_over_fma"); calibration()
    cards("numbers"); progress()

Banks of questions are the modules `bank_<topic>.py` here.
"""

import importlib

_HOME = {
    "amounts": ("nice", "powers_of_two"),
    "asking": ("ask",),
    "checking": ("Verdict", "check", "diagnose"),
    "drill": ("cards",),
    "predictions": ("calibration", "predict", "reveal"),
    "questions": ("Misconception", "Parameter", "Question", "bank", "question", "register", "topics"),
    "record": ("progress",),
}
_MODULE = {name: module for module, names in _HOME.items() for name in names}
__all__ = sorted(_MODULE)


def __getattr__(name):
    # The first use of a name imports its module: a bank must not pay for widgets, nor a check for SQLite.
    # No module may have the name of an export: once imported, it would hide it.
    if name not in _MODULE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_MODULE[name]}"), name)


def __dir__():
    return __all__

"""What a kernel of the lab runs first. A page's imports are folded away at its top, so whoever
clicks the first cell in sight is told in one sentence what to run, in place of a traceback.
"""


def _point_to_the_imports(shell):
    import sys

    def missing(shell, kind, error, trace, tb_offset=None):
        if "lightspeed_course" in sys.modules:
            shell.showtraceback((kind, error, trace), tb_offset=tb_offset)
        else:
            print(
                f"`{error.name}` comes with the folded cell at the top of this page: choose Run >"
                " Run All Cells, then come back to this one."
            )

    shell.set_custom_exc((NameError,), missing)


if "get_ipython" in globals():
    _point_to_the_imports(get_ipython())  # type: ignore[name-defined]  # noqa: F821
del _point_to_the_imports

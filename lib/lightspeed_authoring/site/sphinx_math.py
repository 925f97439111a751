"""For Sphinx: a formula of a page marked like those of replies, for formulas.mjs to set."""

import html


def _written(mark):
    def visit(translator, node):
        formula = html.escape(node.astext(), quote=False)
        translator.body.append(f'<span class="sol-math">{mark}{formula}{mark}</span>')
        from docutils.nodes import SkipNode

        raise SkipNode

    return visit


def setup(app):
    app.add_html_math_renderer("speed_of_light", (_written("$"), None), (_written("$$"), None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}

"""Code of two students that is alike: a hint for a person to look, never a mark.

Statements are compared, without comments and layout; names that the student chose and all values
are taken away, as numbers are each student's own. What several have says nothing, as the exercise
or the lecture may ask for it: only statements count that two notebooks have and no other one has.
Short ones are left out, and so is a class in which nobody else could have them.
"""

import ast
import warnings
from collections import Counter, defaultdict

from lightspeed_class.notebooks import Refused, code_cells

SHORTEST = 7  # parts of a statement, below which many come to the same
FEWEST = 4  # statements that two have and nobody else, from which it is told
NOTEBOOKS = 3  # with fewer there is nobody else
LONGEST = 20_000  # characters of a cell that are read


def alike(book, name):
    """Return student id -> a sentence naming students with similar counting code, if any."""
    counts = book.counting(name)
    counting = {s.id: s for s in counts.values() if not s.refused}
    having = defaultdict(set)
    for submission in counting.values():
        for statement in statements(book.content(submission.id)):
            having[statement].add(submission.id)
    shared = Counter(frozenset(ids) for ids in having.values() if len(ids) == 2)
    words = defaultdict(list)
    for pair, count in sorted(shared.items(), key=lambda item: sorted(item[0])):
        if count >= FEWEST and len(counting) >= NOTEBOOKS:
            for one in pair:
                (other,) = pair - {one}
                words[one].append(
                    f"{count} statements are as those of {counting[other].student} but for names"
                    " and numbers, and in no other notebook: a hint, which may have good reasons."
                )
    return {student: " ".join(words[s.id]) for student, s in counts.items() if s.id in words}


def statements(content):
    """Return a notebook's statements, independent of names, values and layout."""
    forms = set()
    try:
        cells = code_cells(content) if content is not None else []
    except Refused:
        return forms
    trees = [tree for _, source in cells if (tree := _tree(source))]
    own = {
        node.id if isinstance(node, ast.Name) else node.arg
        for tree in trees
        for node in ast.walk(tree)
        if isinstance(node, ast.arg)
        or (isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store))
    }
    for tree in trees:
        for node in ast.walk(tree):
            # of what has statements in it, these alone count
            if isinstance(node, ast.stmt) and not hasattr(node, "body"):
                parts = _parts(node, own)
                if len(parts) >= SHORTEST:
                    forms.add(" ".join(parts))
    return forms


def _tree(source):
    """The syntax tree of a cell without its magics; None for what is no Python."""
    lines = [line for line in source[:LONGEST].splitlines() if not line.lstrip().startswith("%")]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of an odd text in somebody's code
            return ast.parse("\n".join(lines))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _parts(statement, own):
    """Its nodes' kinds in order, the library's names, and the student's own as they come."""
    parts, numbers = [], {}
    for node in ast.walk(statement):
        if isinstance(node, ast.expr_context):
            continue
        parts.append(type(node).__name__)
        if isinstance(node, (ast.Name, ast.arg)):
            text = node.id if isinstance(node, ast.Name) else node.arg
            parts[-1] = f"own{numbers.setdefault(text, len(numbers))}" if text in own else text
        elif isinstance(node, ast.Attribute):
            parts[-1] += f".{node.attr}"
    return parts

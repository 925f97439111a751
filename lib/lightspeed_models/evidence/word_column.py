"""A column of words of which few are different: eight million rows name ten chips."""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, eq=False)
class Words:
    """`names[codes[i]]` is the word of row i. `==` and `isin` give masks, `lookup` numbers."""

    names: tuple[str, ...]
    codes: np.ndarray

    @classmethod
    def of(cls, words):
        """The column of these words, in any sequence."""
        names, codes = np.unique(np.asarray(words, dtype=str), return_inverse=True)
        return cls(tuple(names.tolist()), codes.astype(np.int32))

    @classmethod
    def of_all(cls, word, length):
        """The column that says the same word in each row."""
        return cls((word,), np.zeros(length, np.int32))

    @classmethod
    def joined(cls, parts):
        """One column of several, one after the other."""
        names = tuple(sorted({name for part in parts for name in part.names}))
        at = {name: i for i, name in enumerate(names)}
        codes = [part.lookup(at, np.int32) for part in parts]
        return cls(names, np.concatenate(codes) if codes else np.empty(0, np.int32))

    def __len__(self):
        return len(self.codes)

    def __getitem__(self, rows):
        if isinstance(rows, int | np.integer):
            return self.names[self.codes[rows]]
        return Words(self.names, self.codes[rows])

    def __iter__(self):
        return (self.names[code] for code in self.codes)

    def __eq__(self, word):
        return self.codes == (self.names.index(word) if word in self.names else -1)

    __hash__ = None  # type: ignore[assignment]  # equal is a mask, one for each row

    def isin(self, words):
        """Which rows have one of these words."""
        return np.isin(self.codes, [i for i, name in enumerate(self.names) if name in words])

    def lookup(self, table, dtype=float):
        """The number that `table` (a mapping or a function) has for the word of each row."""
        get = table.__getitem__ if hasattr(table, "__getitem__") else table
        # Rows that are gone may have left a word behind that the table does not know.
        values = np.zeros(len(self.names), dtype)
        for code in np.flatnonzero(np.bincount(self.codes, minlength=len(self.names))):
            values[code] = get(self.names[code])
        return values[self.codes]

    def present(self):
        """The words that some row has, in order."""
        return [self.names[i] for i in np.unique(self.codes)]


def evenly(rows, many):
    """At most so many of these row numbers, at even steps, the first and the last always."""
    return rows[np.unique(np.linspace(0, len(rows) - 1, many).round().astype(np.intp))]

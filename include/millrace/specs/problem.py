"""Problems in a spec, as its owner needs them: file, line, key, value and the likely fix."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from millrace.contracts.counted import counted
from millrace.errors import SpecError

KeyPath = tuple[str | int, ...]
"""The keys that lead to a value in a YAML document: `("columns", "origin", "type")`, `("expectations", 0)`."""


@dataclass(frozen=True)
class Defect:
    """One problem in a document, before its line is known.

    Attributes:
        path: the keys that lead to it.
        message: what is wrong.
        value: the wrong value, None for a missing key.
        fix: the most likely fix.
    """

    path: KeyPath
    message: str
    value: Any = None
    fix: str = ""


@dataclass(frozen=True)
class SpecProblem:
    """One problem in a spec file.

    Attributes:
        file: the YAML file.
        line: its line, from 1.
        key: the key path, such as `columns.origin.type`; empty for the whole file.
        value: the wrong value, None for a missing key.
        message: what is wrong.
        fix: the most likely fix.
    """

    file: Path
    line: int
    key: str
    value: Any
    message: str
    fix: str

    def __str__(self) -> str:
        key = f"{self.key}: " if self.key else ""
        value = "" if self.value is None else f" (got {brief(self.value)})"
        fix = f"; {self.fix}" if self.fix else ""
        return f"{self.file}:{self.line}: {key}{self.message}{value}{fix}"


class SpecsRefusedError(SpecError):
    """Raised when specs are wrong.

    Attributes:
        problems: every problem of every file, in the order of file and line.
    """

    def __init__(self, problems: Iterable[SpecProblem]) -> None:
        self.problems = tuple(sorted(problems, key=lambda problem: (problem.file, problem.line, problem.key)))
        super().__init__(str(self))
        self.args = (self.problems,)

    def __str__(self) -> str:
        files = len({problem.file for problem in self.problems})
        count = len(self.problems)
        numbers = f"{counted(count, 'problem')} in {counted(files, 'table spec')}"
        head = f"{numbers}: fix the lines below, then `lakehouse check`"
        return "\n".join((head, *(f"  {problem}" for problem in self.problems)))


def key_text(path: KeyPath) -> str:
    """Return the key path as text.

    >>> key_text(("expectations", 0, "expect_column_to_exist", "column"))
    'expectations[0].expect_column_to_exist.column'
    """
    parts = (f"[{part!r}]" if isinstance(part, int) or not part or "." in part else f".{part}" for part in path)
    return "".join(parts).removeprefix(".")


def closest_word(word: object, vocabulary: Iterable[str]) -> str:
    """Return a question for the closest word of the vocabulary; empty if none is close."""
    words, start = list(vocabulary), str(word)
    longer = [each for each in words if len(start) > 2 and each.startswith(start)]
    close = get_close_matches(start, words, n=1, cutoff=0.6) or longer
    return f"did you mean {close[0]!r}?" if close else ""


def did_you_mean(word: object, vocabulary: Iterable[str]) -> str:
    """Return a question for the closest word of the vocabulary; if none is close, the whole vocabulary.

    >>> did_you_mean("kees", ["keys", "source"])
    "did you mean 'keys'?"
    >>> did_you_mean("x", ["keys", "source"])
    'known are keys, source'
    """
    words = list(vocabulary)
    return closest_word(word, words) or (f"known are {', '.join(words)}" if words else "")


def brief(value: object, width: int = 60) -> str:
    """Return the `repr` of a value, cut to `width` characters."""
    text = repr(value)
    return text if len(text) <= width else f"{text[: width - 3]}..."

"""What can be wrong with a spec, said so that its owner can mend it: file, line, key, value and the likely fix."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from include.errors import SpecError

KeyPath = tuple[str | int, ...]
"""The way to a value in a YAML document: `("columns", "origin", "type")`, `("expectations", 0)`."""


@dataclass(frozen=True)
class Finding:
    """One thing wrong inside one document, before its line is known.

    Attributes:
        path: where in the document.
        message: what is wrong.
        value: the value that is wrong, None where a key is missing.
        fix: what most likely mends it.
    """

    path: KeyPath
    message: str
    value: Any = None
    fix: str = ""


@dataclass(frozen=True)
class SpecProblem:
    """One thing wrong with one spec file.

    Attributes:
        file: the YAML file.
        line: its line, from 1.
        key: the key path, such as `columns.origin.type`; empty for the whole file.
        value: the value that is wrong, None where a key is missing.
        message: what is wrong.
        fix: what most likely mends it.
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
    """Raised when the specs of a folder are wrong: it holds every problem of every file.

    Attributes:
        problems: in the order of file and line.
    """

    def __init__(self, problems: Iterable[SpecProblem]) -> None:
        self.problems = tuple(sorted(problems, key=lambda one: (one.file, one.line, one.key)))
        super().__init__(str(self))
        self.args = (self.problems,)

    def __str__(self) -> str:
        files = len({problem.file for problem in self.problems})
        count = len(self.problems)
        what = f"{count} {_plural('problem', count)} in {files} table {_plural('spec', files)}"
        head = f"{what}: mend the lines below, then `lakehouse check`"
        return "\n".join((head, *(f"  {problem}" for problem in self.problems)))


def key_text(path: KeyPath) -> str:
    """The key path as people write it.

    >>> key_text(("expectations", 0, "expect_column_to_exist", "column"))
    'expectations[0].expect_column_to_exist.column'
    """
    return "".join(_part_text(part) for part in path).removeprefix(".")


def did_you_mean(given: object, known: Iterable[str]) -> str:
    """The closest of the known words as a question, else all of them where they are few.

    >>> did_you_mean("kees", ["keys", "source"])
    "did you mean 'keys'?"
    >>> did_you_mean("x", ["keys", "source"])
    'known are keys, source'
    """
    words = list(known)
    close = get_close_matches(str(given), words, n=1, cutoff=0.6) or _longer(str(given), words)
    if close:
        return f"did you mean {close[0]!r}?"
    return f"known are {', '.join(words)}" if words else ""


def brief(value: object, width: int = 60) -> str:
    """`value` as Python writes it, cut to `width` characters."""
    text = repr(value)
    return text if len(text) <= width else f"{text[: width - 3]}..."


def _part_text(part: str | int) -> str:
    return f"[{part!r}]" if isinstance(part, int) or not part or "." in part else f".{part}"


def _longer(given: str, words: list[str]) -> list[str]:
    return [word for word in words if len(given) > 2 and word.startswith(given)]


def _plural(word: str, count: int) -> str:
    return word if count == 1 else f"{word}s"

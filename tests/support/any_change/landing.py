"""The landing files of a lakehouse to which anything happens."""

from __future__ import annotations

from itertools import count
from random import Random

from tests.support.any_change.model import Event, File, Lines


class Landing:
    """Files of events, of which `chance` chooses the lines.

    Attributes:
        files: each file with the number of its content, and its lines.
    """

    def __init__(self, chance: Random) -> None:
        self.files: dict[File, tuple[int, Lines]] = {}
        self._chance, self._contents, self._sequences = chance, count(1), list(range(1, 10_000))

    def new_file(self, day: int) -> tuple[File, Lines]:
        """Make a file of a day."""
        return self._with((day, f"{len(self.files)}.json"), self._lines(8))

    def changed_file(self) -> tuple[File, Lines]:
        """Give a file half of its lines, and others."""
        file = self._chance.choice(sorted(self.files))
        lines = self.files[file][1]
        return self._with(file, [*self._chance.sample(lines, len(lines) // 2), *self._lines(2)])

    def _with(self, file: File, lines: Lines) -> tuple[File, Lines]:
        self.files[file] = next(self._contents), lines
        return file, lines

    def _lines(self, number: int) -> Lines:
        """Return new events, some that came before, and broken lines."""
        before = [line for _, lines in self.files.values() for line in lines] or [self._event()]
        kinds = self._chance.choices(["new", "before", "broken"], [15, 4, 1], k=number)
        others = {"before": self._chance.choice(before), "broken": f"{{broken {next(self._contents)}"}
        return [others.get(kind) or self._event() for kind in kinds]

    def _event(self) -> Event:
        """Return an event of a sequence that no other has: the next one, or an earlier one."""
        sequence = self._sequences.pop(self._chance.choice([0, 0, self._chance.randrange(20)]))
        note, op = self._chance.choice([None, *"abc"]), self._chance.choices([None, "delete", "void"], [7, 2, 1])[0]
        if self._chance.random() < 0.03:
            return Event(None, 50, note, sequence)
        amount = None if op else self._chance.choice([None, "many", -1, -2, 3, 4, 15, 30, 70, 95])
        return Event(f"o{self._chance.randrange(10, 22)}", amount, note, sequence, op)

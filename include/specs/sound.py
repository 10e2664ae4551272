"""Remove the wrong parts from documents, so that later checks can rely on the rest."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from typing import Any

from include.specs.problem import Defect


def without_defects(document: dict[str, Any], defects: Iterable[Defect]) -> dict[str, Any]:
    """Return the document with null in place of each wrong value; keys and positions stay.

    >>> without_defects({"keys": ["id", 5], "source": "x"}, [Defect(("keys", 1), "text is needed here")])
    {'keys': ['id', None], 'source': 'x'}
    """
    paths = [defect.path for defect in defects if defect.path]
    sound = copy.deepcopy(document) if paths else document
    for path in paths:
        owner: Any = sound
        for part in path[:-1]:
            owner = owner[part] if _has(owner, part) else None
        if _has(owner, path[-1]):
            owner[path[-1]] = None
    return sound


def _has(owner: Any, part: str | int) -> bool:
    return part in owner if isinstance(owner, dict) else isinstance(owner, list) and part in range(len(owner))

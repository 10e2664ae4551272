"""Documents without the parts that are wrong, so that a check that follows need not ask again what it was given."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from typing import Any

from include.specs.problem import Finding


def without_findings(document: dict[str, Any], findings: Iterable[Finding]) -> dict[str, Any]:
    """The document with null in the place of each value that a finding is about; keys and positions stay.

    >>> without_findings({"keys": ["id", 5], "source": "x"}, [Finding(("keys", 1), "text is needed here")])
    {'keys': ['id', None], 'source': 'x'}
    """
    paths = [found.path for found in findings if found.path]
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

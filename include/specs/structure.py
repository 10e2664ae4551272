"""What in a YAML file is no spec, whatever it says: keys that are no text, aliases without end, too deep values."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from pathlib import Path

import yaml

from include.specs.problem import KeyPath, SpecProblem, key_text

_DEEPEST = 20
_MOST_VALUES = 200_000
_TEXT, _MERGE = "tag:yaml.org,2002:str", "tag:yaml.org,2002:merge"


def endless(path: Path, node: yaml.Node) -> SpecProblem | None:
    """Why the node cannot be read as a document of finite size; None for one that can."""
    visits = count(1)

    def wrong(node: yaml.Node, above: tuple[int, ...], at: KeyPath) -> SpecProblem | None:
        line = node.start_mark.line + 1
        if id(node) in above:
            return SpecProblem(path, line, key_text(at), None, "the value holds itself by an alias", "write it out")
        if len(above) > _DEEPEST or next(visits) > _MOST_VALUES:
            return SpecProblem(path, line, key_text(at), None, "deeper or larger than any spec", "leave it out")
        found = (wrong(part, (*above, id(node)), (*at, *key)) for key, part in _parts(node))
        return next((problem for problem in found if problem), None)

    return wrong(node, (), ())


def drop_odd_keys(path: Path, node: yaml.Node, at: KeyPath = ()) -> Iterator[SpecProblem]:
    """Take out of the node every key that is no text, and say so; an alias is looked at once."""
    if isinstance(node, yaml.MappingNode):
        odd = [key for key, _ in node.value if key.tag not in (_TEXT, _MERGE)]
        node.value = [(key, value) for key, value in node.value if key not in odd]
        for key in odd:
            stated = str(key.value) if isinstance(key, yaml.ScalarNode) else None
            fix = f'write it in quotes: "{stated}"' if stated else ""
            where = key_text((*at, stated or "?"))
            yield SpecProblem(path, key.start_mark.line + 1, where, stated, "a key is text, and this is not", fix)
    for key, part in _parts(node):
        yield from drop_odd_keys(path, part, (*at, *key))


def _parts(node: yaml.Node) -> Iterator[tuple[KeyPath, yaml.Node]]:
    """The values that a node holds, each with what leads to it; keys that are no scalar are values, too."""
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            is_name = isinstance(key, yaml.ScalarNode)
            if not is_name:
                yield (), key
            yield ((key.value,) if is_name else ()), value
    elif isinstance(node, yaml.SequenceNode):
        for index, item in enumerate(node.value):
            yield (index,), item

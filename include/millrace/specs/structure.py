"""Refuse YAML that no spec can contain: keys that are not text or stated twice, endless aliases, too deep values."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from itertools import accumulate, count
from pathlib import Path

import yaml

from millrace.specs.problem import KeyPath, SpecProblem, key_text

_MAX_DEPTH = 20
_MAX_VALUES = 200_000
_SAFE_SIZE = 10_000
"""How deep a text may be that libyaml composes; it ended the process at 60,000."""

_MAX_BRACKETS = 100
"""How deep the brackets of SQL or JSON may be nested: those who parse it need several calls for each."""

_TOO_DEEP = "deeper or larger than any spec"
_TEXT, _MERGE = "tag:yaml.org,2002:str", "tag:yaml.org,2002:merge"


def find_depth_problem(path: Path, text: str, loader: type[yaml.CSafeLoader]) -> SpecProblem | None:
    """Return why a text is too deep for a spec; None if it is not. To compose a very deep one ends the process.

    A text without so many characters is no such one, and is not read twice: each DAG file reads all specs.

    Raises:
        yaml.YAMLError: it is not YAML.
    """
    depth = 0
    for event in yaml.parse(text, loader) if len(text) > _SAFE_SIZE else ():
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > _MAX_DEPTH + 1:
            line = event.start_mark.line + 1 if event.start_mark else 1
            return SpecProblem(path, line, "", None, _TOO_DEEP, "leave it out")
    return None


def find_size_problem(path: Path, node: yaml.Node) -> SpecProblem | None:
    """Return why the node is endless or too large for a spec; None if it is neither."""
    visits = count(1)

    def find(node: yaml.Node, above: tuple[int, ...], at: KeyPath) -> SpecProblem | None:
        line = node.start_mark.line + 1
        if id(node) in above:
            message = "the value contains itself through an alias"
            return SpecProblem(path, line, key_text(at), None, message, "write it out")
        is_deep = len(above) > _MAX_DEPTH or (isinstance(node, yaml.ScalarNode) and _depth(node.value) > _MAX_BRACKETS)
        if is_deep or next(visits) > _MAX_VALUES:
            return SpecProblem(path, line, key_text(at), None, _TOO_DEEP, "leave it out")
        problems = (find(part, (*above, id(node)), (*at, *key)) for key, part in _parts(node))
        return next((problem for problem in problems if problem), None)

    return find(node, (), ())


def _depth(text: str) -> int:
    """Return how deep the brackets of a text are nested; of a short text its length, which is no less."""
    if len(text) <= _MAX_BRACKETS:
        return len(text)
    steps = (1 if bracket in "([{" else -1 for bracket in re.findall(r"[(\[{)\]}]", text))
    return max(accumulate(steps), default=0)


def drop_non_text_keys(path: Path, node: yaml.Node, at: KeyPath = ()) -> Iterator[SpecProblem]:
    """Remove every key that is not text from the node, and yield a problem for each; aliased nodes count once."""
    if isinstance(node, yaml.MappingNode):
        odd = [key for key, _ in node.value if key.tag not in (_TEXT, _MERGE)]
        node.value = [(key, value) for key, value in node.value if key not in odd]
        for key in odd:
            name = str(key.value) if isinstance(key, yaml.ScalarNode) else None
            fix = f'write it in quotes: "{name}"' if name else ""
            where = key_text((*at, name or "?"))
            yield SpecProblem(path, key.start_mark.line + 1, where, name, "a key is text, and this is not", fix)
    for key, part in _parts(node):
        yield from drop_non_text_keys(path, part, (*at, *key))


def find_repeated_keys(path: Path, node: yaml.Node, at: KeyPath = ()) -> Iterator[SpecProblem]:
    """Yield a problem for each key that a mapping in the node states several times."""
    if isinstance(node, yaml.MappingNode):
        counts = Counter(key.value for key, _ in node.value if isinstance(key, yaml.ScalarNode))
        for name in (name for name, count in counts.items() if count > 1):
            lines = [key.start_mark.line + 1 for key, _ in node.value if key.value == name]
            message = f"the key is stated {len(lines)} times, first in line {lines[0]}"
            yield SpecProblem(path, lines[-1], key_text((*at, name)), None, message, "keep one of them")
    for key, part in _parts(node):
        yield from find_repeated_keys(path, part, (*at, *key))


def _parts(node: yaml.Node) -> Iterator[tuple[KeyPath, yaml.Node]]:
    """Yield the values in a node, each with its key; a key that is not a scalar is yielded as a value, too."""
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            is_name = isinstance(key, yaml.ScalarNode)
            if not is_name:
                yield (), key
            yield ((key.value,) if is_name else ()), value
    elif isinstance(node, yaml.SequenceNode):
        for index, item in enumerate(node.value):
            yield (index,), item

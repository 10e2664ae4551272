"""Read spec files as strict YAML, and find the line of a key for error messages.

Refused is what no spec can contain: keys that are not text or stated twice, endless aliases, too deep values.
"""

from __future__ import annotations

import errno
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate, count
from pathlib import Path
from typing import Any

import yaml
from yaml.constructor import ConstructorError

from millrace.specs.problem import Defect, KeyPath, SpecProblem, key_text


class SpecLoader(yaml.CSafeLoader):
    """A YAML 1.2 loader, as editors use it: `on` and `no` are words, dates are text, `1_000` is not a number."""

    yaml_implicit_resolvers: dict[str, list[tuple[str, re.Pattern[str]]]] = {}  # noqa: RUF012


def _scalar(kind: str, convert: Callable[[str], Any]) -> Callable[[Any, Any], Any]:
    """Return the constructor of a kind of scalar; it refuses text that an explicit tag declares wrongly."""

    def construct(loader: SpecLoader, node: yaml.ScalarNode) -> Any:
        try:
            return convert(loader.construct_scalar(node))
        except (ValueError, KeyError):
            raise ConstructorError(None, None, f"{node.value[:40]!r} is no {kind}", node.start_mark) from None

    return construct


for _tag, _pattern, _first in (
    ("null", r"~|null|Null|NULL|", ["~", "n", "N", ""]),
    ("bool", r"true|True|TRUE|false|False|FALSE", list("tTfF")),
    ("int", r"[-+]?(?:0|[1-9][0-9]*)", list("-+0123456789")),
    ("float", r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?", list("-+.0123456789")),
    ("merge", r"<<", ["<"]),
):
    SpecLoader.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(rf"^(?:{_pattern})$"), _first)

_CONVERTERS: dict[str, Callable[[str], Any]] = {
    "null": lambda _: None,
    "bool": lambda text: {"true": True, "false": False}[text.lower()],
    "int": int,
    "float": float,
}


def _undefined(loader: SpecLoader, node: yaml.Node) -> Any:
    return loader.construct_undefined(node)


for _kind, _convert in _CONVERTERS.items():
    SpecLoader.add_constructor(f"tag:yaml.org,2002:{_kind}", _scalar(_kind, _convert))
for _other in ("binary", "timestamp", "omap", "pairs", "set"):
    SpecLoader.add_constructor(f"tag:yaml.org,2002:{_other}", _undefined)


_MOST_BYTES = 8 * 1024**2


@dataclass(frozen=True)
class SpecFile:
    """One YAML file and its content.

    Attributes:
        path: the file.
        text: its text.
        document: the mapping that it states; empty if it could not be read.
        problems: why it could not be read, keys that are not text, and keys that it states twice.
        sound: the document without its wrong parts, after it was checked by itself.
    """

    path: Path
    text: str
    document: dict[str, Any]
    problems: tuple[SpecProblem, ...] = ()
    sound: dict[str, Any] = field(default_factory=dict)

    def problem(self, defect: Defect) -> SpecProblem:
        """Return a defect of this file's document with its line."""
        key = key_text(defect.path)
        return SpecProblem(self.path, self.line(defect.path), key, defect.value, defect.message, defect.fix)

    def line(self, path: KeyPath) -> int:
        """Return the line (from 1) of the key at `path`, or of the last part of the path that the file has."""
        node = self._node
        line = node.start_mark.line if node else 0
        for part in path:
            child = _child(node, part)
            if child is None:
                break
            line, node = child
        return line + 1

    @cached_property
    def _node(self) -> yaml.Node | None:
        return yaml.compose(self.text, SpecLoader) if self.text else None


def spec_bytes(path: Path) -> bytes:
    """Return the content of a spec's file.

    Raises:
        OSError: it cannot be read; it is no file, such as a pipe, which may never end; it is a link out of its folder,
            which could lead to a file with secrets; or it is too large.
    """
    real = path.resolve(strict=True)
    if not real.is_relative_to(path.parent.resolve()):
        raise OSError(errno.EXDEV, "it is a link to a file outside of its folder")
    if not (real.is_file() or real.is_dir()) or real.stat().st_size > _MOST_BYTES:
        raise OSError(errno.EINVAL, f"it is no file of at most {_MOST_BYTES:,} bytes")
    return real.read_bytes()


def read_spec_file(path: Path) -> SpecFile:
    """Read one file; errors of the file and of its YAML go to `problems`."""
    try:
        text = spec_bytes(path).decode()
        if problem := find_depth_problem(path, text, SpecLoader):
            return SpecFile(path, "", {}, (problem,))
        loader = SpecLoader(text)
        node = loader.get_single_node()
        if node and (problem := find_size_problem(path, node)):
            return SpecFile(path, text, {}, (problem,))
        problems = (*drop_non_text_keys(path, node), *find_repeated_keys(path, node)) if node else ()
        document = loader.construct_document(node) if node else None
    except OSError as error:
        message = f"the file cannot be read: {error.strerror or error}"
        return SpecFile(
            path, "", {}, (SpecProblem(path, 1, "", None, message, "check what is there, and its permissions"),)
        )
    except UnicodeDecodeError as error:
        message = f"not UTF-8 text: {error.reason} at byte {error.start}"
        return SpecFile(path, "", {}, (SpecProblem(path, 1, "", None, message, "save it as UTF-8"),))
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        parts = (getattr(error, "context", None), getattr(error, "problem", None) or str(error))
        message = "not YAML: " + ", ".join(part for part in parts if part)
        fix = "fix it here or just above; text with ': ' or '#' needs quotes, and tabs cannot indent"
        return SpecFile(path, "", {}, (SpecProblem(path, mark.line + 1 if mark else 1, "", None, message, fix),))
    if not isinstance(document, dict) or not document:
        problem = SpecProblem(path, 1, "", document, "not a spec: a spec is a mapping that starts with `table:`", "")
        return SpecFile(path, text, {}, (problem,))
    return SpecFile(path, text, document, problems)


def _child(node: yaml.Node | None, part: str | int) -> tuple[int, yaml.Node] | None:
    """Return the line (from 0) and the node of a key or an item."""
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            if isinstance(key, yaml.ScalarNode) and key.value == str(part):
                return key.start_mark.line, value
    if isinstance(node, yaml.SequenceNode) and isinstance(part, int) and part < len(node.value):
        return node.value[part].start_mark.line, node.value[part]
    return None


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

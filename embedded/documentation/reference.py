"""Write what the models say into the pages of `docs/reference`: `python -m embedded.documentation.reference`.

The lists of keys and rules come from the models of specs, the examples from the specs in `docs/examples/reference`,
which `lakehouse check` accepts. All else in the pages is written by hand, and stays.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from embedded.clone import CLONE
from millrace.contracts.spec.arguments import Arguments
from millrace.contracts.spec.expectation_arguments import (
    ARGUMENT_MEANINGS,
    ARGUMENT_SCHEMAS,
    COMPARISONS,
    REFERENCES,
    ROW_EXPECTATIONS,
    VERSION_EXPECTATIONS,
)
from millrace.contracts.spec.gx_expectations import GX_EXPECTATIONS
from millrace.specs.files import read_spec_file
from millrace.specs.schema import table_spec_schema

PAGES = CLONE / "docs" / "reference"
EXAMPLES = CLONE / "docs" / "examples"
SPECS = EXAMPLES / "reference"

_BLOCK = re.compile(r"(<!-- (?P<what>\w+): (?P<name>[^\n]+) -->\n).*?(<!-- end -->)", re.DOTALL)
_MODELS = table_spec_schema()["$defs"]
_MANY = 12
"""From so many values on a list does not name them."""


@dataclass(frozen=True)
class KeyList:
    """The keys of one model, as one list of a page.

    Attributes:
        model: the model, as the JSON Schema names it.
        layer: the layer whose specs give the examples, if one of them has the key.
        path: where the model stands in a spec, with `*` for any name or number.
        having: a key that only specs with this model have.
        lacking: a key that specs with this model do not have.
    """

    model: str
    layer: str
    path: tuple[str, ...] = ()
    having: str = ""
    lacking: str = ""

    @property
    def keys(self) -> dict[str, dict[str, Any]]:
        """Each key that no other list has, with a dot before one of a mapping within, with its JSON Schema."""
        keys = _flat_keys(self.model)
        if self.path:
            return keys
        elsewhere = {key: about["description"] for key, about in _common_keys().items()}
        if self.model == "SilverQuerySpec":
            elsewhere |= {key: about["description"] for key, about in _flat_keys("GoldSpec").items()}
        return {key: about for key, about in keys.items() if elsewhere.get(key) != about["description"]}


KEY_LISTS = {
    "of every table": KeyList("BronzeSpec", "bronze"),
    "of columns": KeyList("ColumnSpec", "bronze", ("columns", "*")),
    "of bronze": KeyList("BronzeSpec", "bronze"),
    "of landing files": KeyList("LandingSource", "bronze", ("source",), lacking="source.kafka"),
    "of Kafka topics": KeyList("KafkaSource", "bronze", ("source",), having="source.kafka"),
    "of silver": KeyList("SilverSpec", "silver", lacking="query"),
    "of a source of silver": KeyList("MergeSource", "silver", ("sources", "*"), lacking="query"),
    "of silver by a query": KeyList("SilverQuerySpec", "silver", having="query"),
    "of gold": KeyList("GoldSpec", "gold"),
    "of a source of gold": KeyList("GoldSource", "gold", ("sources", "*")),
    "of a rule": KeyList("Expectation", "gold", ("expectations", "*")),
}
"""The name of a list in the pages -> its keys."""

RULE_LISTS: dict[str, Mapping[str, Arguments]] = {
    "on rows or versions": {**ROW_EXPECTATIONS, **REFERENCES},
    "on versions": {name: takes for name, takes in VERSION_EXPECTATIONS.items() if name not in GX_EXPECTATIONS},
    "that compare": {name: takes for name, takes in COMPARISONS.items() if name not in REFERENCES},
    "of Great Expectations": GX_EXPECTATIONS,
}
"""The name of a list in the pages -> its rules."""


def written(page: str) -> str:
    """Return a page with its lists and examples as the models and the specs have them now.

    Raises:
        KeyError: the page asks for what there is not.
        ValueError: no spec has an example of a key.
    """
    shown = [EXAMPLES / block["name"] for block in _BLOCK.finditer(page) if block["what"] == "example"]
    return _BLOCK.sub(lambda block: f"{block[1]}\n{_content(block['what'], block['name'], shown)}\n{block[4]}", page)


def blocks(page: str) -> list[str]:
    """Return the names of what is generated within a page."""
    return [block["name"] for block in _BLOCK.finditer(page)]


def _content(what: str, name: str, shown: list[Path]) -> str:
    if what == "example":
        return f"```yaml\n{(EXAMPLES / name).read_text(encoding='utf-8')}```\n"
    if what == "keys":
        keys = _common_keys() if name == "of every table" else KEY_LISTS[name].keys
        items = [_key_item(KEY_LISTS[name], key, about, shown) for key, about in keys.items()]
    elif what == "rules":
        items = [f"`{rule}`: {_arguments(takes)}" for rule, takes in RULE_LISTS[name].items()]
    else:
        items = [_argument_item(name, text) for name, text in ARGUMENT_MEANINGS.items()]
    return "".join(f"- {item}\n" for item in items)


def _flat_keys(model: str) -> dict[str, dict[str, Any]]:
    about = _MODELS[model]
    flat: dict[str, dict[str, Any]] = {}
    for key, schema in about["properties"].items():
        within = schema.get("$ref", "").rpartition("/")[2]
        if within:
            flat |= {f"{key}.{name}": schema for name, schema in _flat_keys(within).items()}
        elif not key.startswith("expect_"):
            flat[key] = {**schema, "is_needed": key in about.get("required", ())}
    return flat


def _common_keys() -> dict[str, dict[str, Any]]:
    """Return the keys of all layers."""
    others = _flat_keys("SilverSpec").keys() & _flat_keys("GoldSpec").keys()
    keys = {key: about for key, about in _flat_keys("BronzeSpec").items() if key in others}
    keys["table"].pop("pattern")  # which is that of a bronze table
    return keys


def _key_item(table: KeyList, key: str, about: dict[str, Any], shown: list[Path]) -> str:
    """Return what a key takes and means, with an example where no value, default or spec of the page is one."""
    default, text, example = about.get("default"), about["description"], _example(table, key)
    has_default = default not in (None, "", [])
    kind = _unsaid(_type(about), text)
    brackets = [
        "" if has_default and kind in ("text", "whole number") else kind,
        f"default `{str(default).lower() if isinstance(default, bool) else default}`" if has_default else "",
        "needed" if about["is_needed"] else "",
    ]
    takes = ", ".join(filter(None, brackets))
    is_shown = any(True for path in shown for _ in _values(table, path, key))
    example = "" if not kind or has_default or is_shown else f" Example: `{example}`"
    return f"**`{key}`**{f' ({takes})' if takes else ''}: {text[0].upper()}{text[1:]}{example}"


def _argument_item(name: str, text: str) -> str:
    kind = _unsaid(_type(ARGUMENT_SCHEMAS[name]), text)
    return f"`{name}`{f' ({kind})' if kind else ''}: {text}"


def _unsaid(kind: str, text: str) -> str:
    """Return what a key takes, or nothing if that is `true` or `false`, or its meaning names each value."""
    if kind == "`true`, `false`":
        return ""
    return "" if kind.startswith("`") and all(value in text for value in kind.split(", ")) else kind


def _type(schema: dict[str, Any]) -> str:
    """Return the values that a key takes, in words."""
    if "anyOf" in schema:
        parts = [_type(part) for part in schema["anyOf"] if part.get("type") != "null"]
        return "size" if "size" in parts else " or ".join(dict.fromkeys(parts))
    if "enum" in schema:
        return ", ".join(f"`{value}`" for value in schema["enum"]) if len(schema["enum"]) < _MANY else "text"
    if "const" in schema:
        return f"`{schema['const']}`"
    kind, pattern = schema.get("type", "any"), schema.get("pattern", "")
    if isinstance(kind, list):
        return " or ".join(_type({"type": part}) for part in kind)
    if units := re.fullmatch(r"\^\[0-9\]\+ \((.+)\)\$", pattern):
        return f"`<n> {units[1]}`"
    if kind == "array":
        return f"list: {_type(schema['items'])}" if "type" in schema.get("items", {}) else "list"
    named = {"^[0-9.": "size", r"^bronze\.": "bronze table", r"^silver\.": "silver table", "^(silver|gold)": "table"}
    if found := [word for start, word in named.items() if pattern.startswith(start)]:
        return found[0]
    words = {"string": "text", "integer": "whole number", "boolean": "`true`, `false`", "object": "mapping"}
    return words.get(kind, str(kind))


def _arguments(takes: Arguments) -> str:
    bounds = "*bounds*" if {*takes.one_of} == {"min_value", "max_value"} else ""
    one_of = bounds or " and/or ".join(f"`{name}`" for name in takes.one_of)
    needed = [", ".join(f"`{name}`" for name in takes.required), one_of]
    optional = ", ".join(
        f"`{name}`" for name in takes.optional if not (bounds and name in ("strict_min", "strict_max"))
    )
    return "; ".join(part for part in (", ".join(filter(None, needed)), optional) if part)


def _example(table: KeyList, key: str) -> str:
    """Return the shortest value that a spec of the examples has for a key, of its own layer if there is one."""
    for folder in (SPECS / table.layer, SPECS):
        values = [value for path in sorted(folder.rglob("*.yaml")) for value in _values(table, path, key)]
        if texts := [yaml.safe_dump(value, default_flow_style=True, width=1000, sort_keys=False) for value in values]:
            return min((text.removesuffix("...\n").strip() for text in texts), key=len)
    raise ValueError(f"no spec in {SPECS} has an example of {table.model}.{key}")


def _values(table: KeyList, path: Path, key: str) -> Iterator[Any]:
    document = read_spec_file(path).document
    has = [bool(list(_nodes(document, tuple(other.split("."))))) for other in (table.having or "table", table.lacking)]
    if has == [True, False]:
        yield from _nodes(document, (*table.path, *key.split(".")))


def _nodes(node: Any, path: tuple[str, ...]) -> Iterator[Any]:
    if not path:
        yield node
    elif path[0] == "*" and isinstance(node, dict | list):
        for within in node.values() if isinstance(node, dict) else node:
            yield from _nodes(within, path[1:])
    elif isinstance(node, dict) and path[0] in node:
        yield from _nodes(node[path[0]], path[1:])


def main() -> int:
    """Write all pages anew."""
    for path in sorted(PAGES.glob("*.md")):
        path.write_text(written(path.read_text(encoding="utf-8")), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Validate a document against its layer's model, and translate pydantic's errors for the owner of the spec."""

from __future__ import annotations

from collections.abc import Mapping
from types import UnionType
from typing import Any, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from millrace.contracts.spec.bronze_sources import SOURCE_KINDS
from millrace.contracts.spec.expectation import Expectation
from millrace.contracts.spec.table_spec import AnySpec, SilverQuerySpec, SilverSpec
from millrace.contracts.spec.values import NAME
from millrace.specs.problem import Defect, KeyPath, did_you_mean

_FORM_OF_PATTERN = {
    rf"^bronze\.{NAME}$": "a bronze table is written bronze.<name>, in small letters, digits and _",
    rf"^silver\.{NAME}$": "a silver table is written silver.<name>, in small letters, digits and _",
    rf"^gold\.{NAME}$": "a gold table is written gold.<name>, in small letters, digits and _",
    rf"^(silver|gold)\.{NAME}$": "gold reads silver and gold tables: silver.<name> or gold.<name>, in small letters",
    rf"^{NAME}$": "a name starts with a small letter and has only small letters, digits and _",
}
_UNKNOWN, _MISSING = "unknown key", "the key is missing"
_MESSAGES = {
    "extra_forbidden": _UNKNOWN,
    "missing": _MISSING,
    "tuple_type": "a list is needed here",
    "dict_type": "a mapping is needed here",
    "model_type": "a mapping is needed here",
    "model_attributes_type": "a mapping is needed here",
    "string_type": "text is needed here",
    "bool_type": "true or false is needed here",
    "bool_parsing": "true or false is needed here",
    "too_short": "at least one is needed",
    "literal_error": "unknown value",
    "enum": "unknown value",
    "byte_size": "a size is needed here",
    "byte_size_unit": "a size is needed here",
}
_WAY_OUT_OF_LAYER = {
    (SilverSpec, "silver"): "read silver tables by a `query`, with `sources` as a mapping: alias -> {table: ...}",
    (SilverQuerySpec, "bronze"): "merge its events into a silver table first, and read that: a query reads states",
    (SilverQuerySpec, "gold"): "write this table in gold: silver is built before",
}
"""Model, and the layer of a source that its tables cannot read -> the way out."""


def validate_shape(document: Mapping[str, Any], model: type[AnySpec]) -> tuple[AnySpec | None, list[Defect]]:
    """Return the spec that `document` states, or all the ways in which it does not fit `model`."""
    try:
        return model.model_validate(document), []
    except ValidationError as error:
        return None, _said_once([_defect(document, model, detail) for detail in error.errors(include_url=False)])


def _said_once(defects: list[Defect]) -> list[Defect]:
    """Return the defects without the missing keys that an unknown key beside them seems to mean."""
    meant = [(defect.path[:-1], defect.fix) for defect in defects if defect.message == _UNKNOWN]
    missing = [defect for defect in defects if defect.message.startswith(_MISSING)]
    said = [each for each in missing if (each.path[:-1], f"did you mean {each.path[-1]!r}?") in meant]
    return [defect for defect in defects if defect not in said]


def _defect(document: Mapping[str, Any], model: type[BaseModel], error: ErrorDetails) -> Defect:
    path, context = _path_in_document(document, error["loc"]), error.get("ctx", {})
    value = None if error["type"] == "missing" or not path else error["input"]
    if key := context.get("key"):
        path, value = (*path, key), error["input"].get(key)
    message = _MESSAGES.get(error["type"], error["msg"].removeprefix("Value error, "))
    if error["type"] == "string_pattern_mismatch":
        message = _FORM_OF_PATTERN.get(context["pattern"], error["msg"])
    return Defect(path, message, value, _fix(path, model, error))


def _path_in_document(document: Mapping[str, Any], loc: tuple[int | str, ...]) -> KeyPath:
    """Return the error's key path in the YAML.

    In YAML an expectation's `name` and `arguments` are one key, the kind of a bronze source is not a key, and one name
    may stand for a list of names.
    """
    path = tuple(part for part in loc if part != "[key]")
    if path[:1] == ("refresh_by",) and not isinstance(document["refresh_by"], list):
        return path[:1]
    if path[:1] == ("source",) and path[1:2] and path[1] in SOURCE_KINDS:
        return (path[0], *path[2:])
    if path[:1] != ("expectations",) or path[2:3] not in (("name",), ("arguments",)):
        return path
    rule = document["expectations"][path[1]]
    name = next((key for key in rule if str(key).startswith("expect_")), path[2])
    return (*path[:2], name, *path[3:])


def _fix(path: KeyPath, model: type[BaseModel], error: ErrorDetails) -> str:
    context = error.get("ctx", {})
    value = error["input"]
    match error["type"]:
        case "extra_forbidden" if model is SilverQuerySpec and path[0] in SilverSpec.model_fields:
            return "leave it out: the rows of a query are computed from those of its sources, not merged from events"
        case "unknown_word" | "extra_forbidden" if _is_cut(value) or _is_cut(path[-1]):
            return 'write it in quotes, since a comma ends it here: {type: "decimal(10,2)"}'
        case "extra_forbidden":
            return did_you_mean(path[-1], _known_keys(model, error["loc"][:-1]))
        case "unknown_word":
            return did_you_mean(context["word"], context["vocabulary"])
        case "not_on_spark":
            return str(context["fix"])
        case "literal_error" | "enum":
            return did_you_mean(value, context["expected"].replace("'", "").replace(" or ", ", ").split(", "))
        case "string_pattern_mismatch" if path[0] in ("source", "sources"):
            return _WAY_OUT_OF_LAYER.get((model, str(value).partition(".")[0]), "")
        case "byte_size" | "byte_size_unit":
            return "write a number of bytes, or one with a unit: B, kB, MB, GB, or KiB, MiB, GiB"
        case "model_type" if path[0] == "columns" and isinstance(value, str):
            return f"write it as a mapping: {{type: {value}}}"
        case "tuple_type" if isinstance(value, str):
            return f"write it as a list: [{value}]"
        case "string_type" if not isinstance(value, (dict, list)) and value is not None:
            return f'write it in quotes: "{str(value).lower() if isinstance(value, bool) else value}"'
    return ""


def _is_cut(text: object) -> bool:
    """Whether a text has one bracket of a pair, as a part of `decimal(10,2)` that YAML has cut at its comma."""
    return isinstance(text, str) and text.count("(") != text.count(")")


def _known_keys(model: type[BaseModel], path: KeyPath) -> list[str]:
    kind: Any = model
    if path[:1] == ("source",) and path[1:]:
        kind, path = SOURCE_KINDS[str(path[1])], path[2:]
    for part in path:
        kind = _inner(kind, part)
    if kind is Expectation:
        return ["action", "severity", "warn", "reason"]
    if not (isinstance(kind, type) and issubclass(kind, BaseModel)):
        return []
    return [field.alias or name for name, field in kind.model_fields.items() if name != "domain"]


def _inner(kind: Any, part: str | int) -> Any:
    """Return the type of the value at key (or index) `part` of a value of type `kind`."""
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        fields = kind.model_fields.items()
        return next((_without_none(field.annotation) for name, field in fields if part in (name, field.alias)), None)
    arguments = get_args(kind)
    return _without_none(arguments[1] if get_origin(kind) is dict else arguments[0]) if arguments else None


def _without_none(kind: Any) -> Any:
    if get_origin(kind) in (Union, UnionType):
        return next(member for member in get_args(kind) if member is not type(None))
    return kind

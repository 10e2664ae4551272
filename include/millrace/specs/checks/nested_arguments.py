"""Check the arguments of expectations that contain lists or mappings, by their JSON Schema."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from millrace.specs.problem import key_text

Invalid = tuple[str, object, str]
"""What is wrong with a value, the wrong value, and a fix."""


def invalid_nested(argument: str, schema: Mapping[str, Any], value: Any) -> Invalid | None:
    """Return what is wrong with the value of an argument of this schema; None for a valid value."""
    # Imported here: few specs need it, and each parse of a DAG checks its specs.
    from jsonschema import Draft202012Validator
    from jsonschema.exceptions import SchemaError, best_match

    if (error := best_match(Draft202012Validator(schema).iter_errors(value))) is not None:
        place = key_text(tuple(error.absolute_path))
        return f"{f'{place}: ' if place else ''}{error.message}", error.instance, ""
    if argument == "json_schema":
        try:
            Draft202012Validator.check_schema(value)
        except SchemaError as wrong:
            return f"no JSON Schema: {wrong.message}", wrong.instance, ""
    if argument == "quantile_ranges":
        return _invalid_quantiles(value)
    return _invalid_partition(value) if argument == "partition_object" else None


def _invalid_quantiles(value: Mapping[str, Any]) -> Invalid | None:
    quantiles, ranges = value["quantiles"], value["value_ranges"]
    if len(quantiles) != len(ranges):
        message = f"each quantile needs one range, and there are {len(quantiles)} and {len(ranges)}"
        return message, value, "write a [least, greatest] for each quantile"
    for low, high in ranges:
        if low is not None and high is not None and low > high:
            return "no value is in this range", [low, high], f"write [{high}, {low}]"
    return None


def _invalid_partition(value: Mapping[str, Any]) -> Invalid | None:
    parts = len(value["values"]) if "values" in value else len(value["bins"]) - 1
    weights = value["weights"]
    if len(weights) != parts:
        return f"there are {parts} parts and {len(weights)} weights", weights, "write a weight for each part"
    total = math.fsum([*weights, *value.get("tail_weights", ())])
    return None if math.isclose(total, 1, abs_tol=1e-6) else (f"the weights add up to {total:g}, not to 1", weights, "")

"""Great Expectations, used as its documentation says, to compare Millrace's own results with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import great_expectations as gx
from great_expectations.core.expectation_validation_result import ExpectationValidationResult
from great_expectations.data_context.types.base import ProgressBarsConfig
from great_expectations.expectations.registry import get_expectation_impl
from pyspark.sql import DataFrame, SparkSession

from millrace.contracts.spec.expectation import Expectation


@dataclass(frozen=True)
class Batches:
    """Makes batches of Spark frames, whose rows it reads in a session of its own."""

    definition: Any
    session: SparkSession

    def results(self, df: DataFrame, rules: Sequence[Expectation]) -> list[ExpectationValidationResult]:
        """Return its result for each rule, in the order of the rules."""
        expectations = [
            get_expectation_impl(rule.name)(**rule.arguments, meta={"place": place}) for place, rule in enumerate(rules)
        ]
        own = self.session.createDataFrame(df.toArrow(), df.schema)
        batch = self.definition.get_batch(batch_parameters={"dataframe": own})
        outcome = batch.validate(gx.ExpectationSuite("rules", expectations=expectations), result_format="BASIC")
        by_place = {result.expectation_config.meta["place"]: result for result in outcome.results}
        return [by_place[place] for place in range(len(rules))]


def batches_of_frames(session: SparkSession) -> Batches:
    """Return batches in a context that stores nothing."""
    context = gx.get_context(mode="ephemeral")
    context.variables.progress_bars = ProgressBarsConfig(globally=False)
    source = context.data_sources.add_or_update_spark("spark", persist=False)
    return Batches(source.add_dataframe_asset("table").add_batch_definition_whole_dataframe("whole"), session)

"""The functions that a query of a gold table may not call, with the reason and the way out."""

from __future__ import annotations

_CLOCK = "reads the clock, so that each run would give other rows: derive it from a column"
_RANDOM = "is random, so that each run would give other rows: use a hash of a column"
_SPLITS = "depends on how Spark splits the rows, so that each run may give other rows: use a key or row_number()"
_OUTSIDE = "reaches outside of the sources"
_SESSION = "depends on who runs the query, and where"

CLOCKS = ("curdate", "current_date", "current_time", "current_timestamp", "localtimestamp", "now")
"""The functions that read the clock."""
_RANDOMS = "rand randn random randstr shuffle uniform uuid"
_SPLITTING = "monotonically_increasing_id spark_partition_id"
_REACHING = """
identifier input_file_block_length input_file_block_start input_file_name java_method python_worker_logs reflect
table_changes table_changes_by_path try_reflect
"""
_OF_SESSION = "current_catalog current_database current_schema current_timezone current_user session_user user version"

REFUSED = {
    **dict.fromkeys(CLOCKS, _CLOCK),
    **dict.fromkeys(_RANDOMS.split(), _RANDOM),
    **dict.fromkeys(_SPLITTING.split(), _SPLITS),
    **dict.fromkeys(_REACHING.split(), _OUTSIDE),
    **dict.fromkeys(_OF_SESSION.split(), _SESSION),
}
"""Function -> why a query may not call it."""

REFUSED_BARE = frozenset(("current_date", "current_time", "current_timestamp", "current_user", "session_user"))
"""Refused functions that may be called without parentheses."""

_GENERATING = """
explode explode_outer inline inline_outer json_tuple posexplode posexplode_outer range stack variant_explode
variant_explode_outer
"""
ROW_GENERATORS = frozenset(_GENERATING.split())
"""Functions that give rows, and read nothing but their arguments."""

WINDOWS_OF_TIME = "window"
SESSIONS = "session_window"
"""Functions of time that Spark replaces by rows of their own."""

_BY_ORDER = """
any_value approx_percentile approx_top_k approx_top_k_accumulate approx_top_k_combine array_agg collect_list collect_set
first first_value histogram_numeric kll_merge_agg_bigint kll_merge_agg_double kll_merge_agg_float kll_sketch_agg_bigint
kll_sketch_agg_double kll_sketch_agg_float last last_value listagg max_by min_by mode nth_value percentile_approx
string_agg
"""
DEPENDS_ON_ORDER = frozenset(_BY_ORDER.split())
"""Functions whose result may depend on the order in which Spark reads the rows."""

ORDERED_WITH_TIES = frozenset(("lag", "lead", "ntile", "row_number"))
"""Functions of a window whose value for rows that tie depends on that order."""

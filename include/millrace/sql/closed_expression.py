"""The Spark SQL that is allowed in fixes of quarantined rows, and in conditions of repairs: a closed list.

It lists words, functions and characters.

An expression that no reviewer has read runs with the driver's own rights: `reflect` calls any Java method, a subquery
reads any file. Spark and sqlglot parse some texts differently (comments, backslashes, parameters, variables), so these
are refused first; of the rest only what is listed here is accepted (ADR 0023).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from millrace.errors import BadInputError, first_line
from millrace.specs.problem import brief, closest_word
from millrace.sql.growth import growing

_TEXT = r"'[^'\\]*'"
_QUOTED_NAME = r"`[^`\\]*`"
_CHARACTERS = re.compile(r"[\w \n\t+\-*/%<>=!~^&|(),.\[\]]*", re.ASCII)
_PAIRS = re.compile(r"--|/\*|\*/|->|(?<!<)=>|\|>")
_CALL = re.compile(r"(\.\s*)?([A-Za-z_]\w*|``)\s*\(", re.ASCII)
_WORD = re.compile(r"[A-Za-z_]\w*", re.ASCII)

_ROW_FUNCTIONS = """
    abs acos add_months ascii asin atan atan2 bin bit_count bit_get bit_length bround btrim cast cbrt ceil ceiling
    char char_length character_length chr coalesce concat concat_ws contains conv cos cosh cot crc32 current_date
    current_timestamp date date_add date_diff date_format date_from_unix_date date_part date_sub date_trunc datediff
    day dayname dayofmonth dayofweek dayofyear decode degrees double endswith equal_null exp find_in_set float floor
    from_unixtime from_utc_timestamp get_json_object greatest hex hour if ifnull initcap instr int isnan isnotnull
    isnull last_day lcase least left length levenshtein like ln locate log log10 log2 lower lpad ltrim make_date
    make_timestamp md5 minute mod month monthname months_between nanvl negative next_day now nullif nullifzero nvl nvl2
    octet_length overlay parse_url pmod position positive pow power quarter radians regexp_count regexp_extract
    regexp_instr regexp_like regexp_replace regexp_substr replace reverse right rint rlike round rpad rtrim second sha1
    sha2 sign signum sin smallint soundex split_part sqrt startswith string substr substring substring_index tan
    timestamp timestamp_micros timestamp_millis timestamp_seconds tinyint to_char to_date to_number to_timestamp
    to_unix_timestamp to_utc_timestamp translate trim trunc try_add try_cast try_divide try_mod try_multiply
    try_subtract try_to_number try_to_timestamp typeof ucase unbase64 base64 unhex unix_date unix_timestamp upper
    url_decode url_encode weekday weekofyear width_bucket year zeroifnull bigint boolean decimal
"""
FUNCTIONS = frozenset(_ROW_FUNCTIONS.split())
"""The functions that use only values of one row, always end, and reveal nothing about the driver."""

_BEFORE_A_PARENTHESIS = frozenset(
    ("and", "between", "case", "div", "else", "ilike", "in", "is", "like", "not", "or", "rlike", "then", "when")
)
"""Words that are not functions although a parenthesis may follow them."""

_QUERY_WORDS = """
    any current_catalog current_database current_schema current_user exists except explain filter from identifier
    intersect lateral limit map minus order over partition pivot reduce select session_user some table tablesample
    transform union unpivot user using values where window with within
"""
_OF_QUERIES = frozenset(_QUERY_WORDS.split())
"""Words of queries and of the driver's own values; a column of such a name needs backquotes."""

_NODES = (
    exp.Query, exp.Table, exp.Star, exp.Lambda, exp.Kwarg, exp.Parameter, exp.Placeholder, exp.Window, exp.AggFunc,
    exp.Alias, exp.Aliases, exp.Command, exp.Block, exp.DDL, exp.DML, exp.Dot, exp.UDTF,
)  # fmt: skip


def require_closed(column: str, sql: str) -> None:
    """Refuse an expression for `column` that could do more than compute a value from one row's columns.

    Raises:
        BadInputError: the expression is not allowed; the message says why, and what to write instead.
    """
    reason = next(closed_reasons(sql), "")
    if reason:
        ways = "Write an expression over the columns of one row (docs/guides/work-the-quarantine.md), or edit the rows."
        raise BadInputError(f"{column} cannot be set to {brief(sql)}: {reason}\n{ways}")


def closed_reasons(sql: str) -> Iterator[str]:
    """Yield the reasons to refuse an expression over the columns of one row; none for an allowed one."""
    bare = re.sub(_QUOTED_NAME, "``", re.sub(_TEXT, "''", sql))
    rest = bare.replace("''", " ").replace("``", " ")
    if "\\" in sql:
        yield "no backslashes, since Spark may read them in another way than this check; write [0-9] for \\d"
    if "${" in sql:
        yield "Spark replaces '${', also in quotes, by variables of its process"
    if not _CHARACTERS.fullmatch(rest):
        character = next(character for character in rest if not _CHARACTERS.fullmatch(character))
        yield f"the character {character!r} is not allowed (text needs single quotes)"
    if pair := _PAIRS.search(rest):
        yield f"{pair[0]!r} is not allowed: no comments, and no lambda functions"
    for dot, name in _CALL.findall(bare):
        word = name.lower()
        if dot or name == "``":
            yield "a function is called by its bare name"
        if word not in FUNCTIONS | _BEFORE_A_PARENTHESIS:
            near = closest_word(word, sorted(FUNCTIONS))
            yield f"the function {word} is not for single rows{f', {near}' if near else ''}"
    if word := next((word for word in map(str.lower, _WORD.findall(rest)) if word in _OF_QUERIES), ""):
        yield f"{word.upper()} is a word of queries (a column of this name is written `{word}`)"
    try:
        tree = sqlglot.parse_one(sql, dialect="spark")
    except SqlglotError as error:
        yield f"it cannot be read: {first_line(error)}"
        return
    yield from (f"{refusal.message}: {refusal.fix}" for refusal in growing(sql))
    for node in tree.walk():
        if isinstance(node, _NODES):
            yield f"{type(node).__name__.lower()} is not allowed in an expression over one row"

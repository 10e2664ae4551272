"""How large a value of a function may be follows from the text of its arguments, or the text is refused."""

from __future__ import annotations

from itertools import product

import pytest

from millrace.errors import BadInputError
from millrace.sql.closed_expression import require_closed
from millrace.sql.growth import GROWING, growing

BOUNDED = [
    "lpad(id, 10, '0')",
    "rpad(id, least(width, 20))",
    "repeat('0', 8 - length(id)) || id",
    "repeat(x, 24 * 60)",
    "space(10L)",
    "array_repeat(0, 5 - size(items))",
    "format_number(amount, 2)",
    "format_number(amount, '#,##0.00')",
    "concat_ws('', rpad(name, 40), rpad(street, 40), rpad(city, 30), lpad(zip, 10, '0'), rpad(country, 20))",
    "format_string('%-10s %05.2f %%', a, b)",
    "sequence(1, 10000)",
    "sequence(1, size(items))",
    "sequence(0, length(a) - 1)",
    "sequence(day, day)",
    "sequence(day, day + 30)",
    "sequence(at, at + interval 7 days, interval '1' hour)",
    "sequence(a, greatest(a, least(b, a + 1000)))",
    "sequence(a, greatest(a, least(b, date_add(a, 366))))",
    "sequence(a, least(b, a + 1000), 1)",
    "sequence(date '2013-01-01', date '2033-12-31')",
    "sequence(to_date('2013-01-01'), to_date('2013-12-31'), interval 1 month)",
    "explode(sequence(10, 1, -1))",
    "replace(replace(replace(a, '.', ''), ',', '.'), '\"', '')",
    "regexp_replace(regexp_replace(a, '[^0-9]', ' '), ' +', ' ')",
    "transform(sequence(1, 100), i -> lpad(i, 10))",
    "aggregate(items, 0, (sum, item) -> sum + item)",
    "aggregate(items, '', (text, item) -> concat(text, ',', item))",
    "aggregate(words, text, (text, word) -> replace(text, word, ''))",
    "aggregate(items, '', (text, item) -> concat(text, replace(item, ',', ', '), repeat('-', 3)))",
    "approx_count_distinct(a)",
    "approx_count_distinct(a, 0.01)",
    "histogram_numeric(a, 20)",
    "SELECT a.x, lpad(b, 20) FROM a LATERAL VIEW explode(sequence(1, 10)) s AS n GROUP BY window(at, '1 hour')",
    "SELECT n FROM range(100)",
    "`repeat` + left(a, 2000000000)",
    "concat(repeat('*', length(card) - 4), right(card, 4))",
    "array_repeat(0, size(items))",
    "rpad(id, greatest(length(id), 8) + 4, ' ')",
    "sequence(since, until, interval 1 day)",
    "sequence(day, add_months(day, 11), interval 1 month)",
    "sequence(date_sub(day, 6), day)",
    "sequence(at - interval 6 days, at)",
    "sequence(1, month(day))",
    "transform(sequence(1, greatest(size(a), size(b))), i -> a[i])",
    "SELECT o.a:b.c AS range FROM o",
    r"regexp_replace(" * 8 + "a" + r", '\\bAve\\b', 'Avenue')" * 8,
]
UNBOUNDED = [
    "lpad(id, length(id) + 2000000000)",
    "repeat(id, length(id) * 100)",
    "sequence(since, until, interval 1 second)",
    "sequence(since, until)",
    "sequence(date_sub(day, 2000000), day)",
    "lpad(id, 2000000000)",
    "`lpad`(id, 2000000000)",
    "LPAD (id, 20000)",
    "system.builtin.repeat(id, 20000)",
    "rpad(id, n)",
    "rpad(id, '20000')",
    "repeat(str => id, n => 20000)",
    "repeat(id, 1e9)",
    "repeat(id, 1e400)",
    "repeat(id, 1e300 * 1e300 - 1e300 * 1e300)",
    "sequence(day, date_add(day, 999999999999))",
    "sequence(day, day + interval 999999 years)",
    "repeat('0', n - length(id))",
    "repeat('0', 5 + length(id))",
    "space(200 * 200)",
    "array_repeat(0, greatest(n, 10))",
    "array_insert(items, 20000, 1)",
    "array_insert(items, least(n, 10), 1)",
    "array_insert(items, -20000, 1)",
    "format_number(amount, 20000)",
    "format_string('%20000d', a)",
    "printf(layout, a)",
    "sequence(1, 20000)",
    "sequence(a, b)",
    "sequence(a, least(b, a + 1000))",
    "sequence(a, least(b, a + 1000), -1)",
    "sequence(a, greatest(b, a + 1000))",
    "sequence(n, size(items))",
    "sequence(1, n - size(items))",
    "sequence(at, at + interval 7 days, interval 1 second)",
    "sequence(at, at + interval 7 days, every)",
    "sequence(date '2013-01-01', date '2063-12-31')",
    "sequence(cast('20130101' as int), cast('20140101' as int))",
    "SELECT n FROM range(0, 20000)",
    "SELECT stack(20000, a) FROM a",
    "SELECT x FROM a WHERE EXISTS (SELECT repeat(b, n) FROM b)",
    "repeat(repeat(a, 2000), 2000)",
    "transform(sequence(1, 2000), i -> repeat('x', 2000))",
    "array_join(sequence(1, 2000), space(2000))",
    "replace(replace(replace(a, 'a', b), 'a', b), 'a', b)",
    "replace(" * 4 + "a" + f", 'a', '{'b' * 40}')" * 4,
    "replace(repeat(repeat(a, 2000), 2000), b, '')",
    "concat_ws(space(2000), repeat('x', 2000))",
    "aggregate(items, 'a', (text, item) -> concat(text, text))",
    "aggregate(items, 'a', (text, item) -> replace(text, 'a', item))",
    "aggregate(items, array('a'), (texts, item) -> transform(texts, text -> replace(text, 'a', 'aa')))",
    "aggregate(items, 'a', (text, item) -> text || item || text)",
    "aggregate(items, 'a', (text, item) -> repeat(text, 2))",
    "reduce(items, 'a', (text, item) -> replace(text, 'a', 'aa'))",
    "aggregate(items, array('a'), (texts, item) -> transform(texts, text -> concat(text, text)))",
    "approx_count_distinct(a, 0.00001)",
    "approx_count_distinct(a, e)",
    "count_min_sketch(a, 0.00000001, 0.9, 1)",
    "histogram_numeric(a, 20000)",
    "repeat(a, 20000) is distinct from from",
]


@pytest.mark.parametrize("text", BOUNDED)
def test_what_has_a_bound_that_can_be_read_goes_through(text: str) -> None:
    assert list(growing(text)) == []


@pytest.mark.parametrize("text", UNBOUNDED)
def test_what_has_none_is_refused_with_a_way_out(text: str) -> None:
    refusals = list(growing(text))
    assert refusals
    assert all(refusal.message and refusal.fix for refusal in refusals)


def test_no_arguments_are_too_odd_to_be_judged() -> None:
    odd = ["x", "'a'", "1e400", "x'1F'", "interval 0 day", "date 'now'", "least()", "greatest(x)", "x -> x", "*"]
    for name, number in product(sorted(GROWING), range(4)):
        for arguments in product(odd[::2] if number == 3 else odd, repeat=number):
            list(growing(f"{name}({', '.join(arguments)})"))


def test_the_way_out_that_a_refusal_names_goes_through() -> None:
    for text in ("lpad(id, n)", "sequence(a, b)"):
        [refusal] = growing(text)
        assert "10,000" in refusal.fix
    assert "sequence(a, greatest(a, least(b, a + 1000)))" in refusal.fix
    assert list(growing("lpad(id, least(n, 10000))")) == []


def test_a_fix_of_quarantined_rows_is_bounded_too() -> None:
    require_closed("id", "lpad(id, 10, '0')")
    with pytest.raises(BadInputError, match=r"the size in LPAD\(id, 2000000000\) is 2,000,000,000, and 10,000 is"):
        require_closed("id", "lpad(id, 2000000000)")

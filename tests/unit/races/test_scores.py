"""The score of a race and the verdict of a soak."""

from __future__ import annotations

from pathlib import Path

from include.paths import LakehousePaths
from races.drivers import torn
from races.places import PlaceName, place, tokens_of
from races.soak.lives import SILVER
from races.soak.verdict import folders
from races.versions import Answer, Answers
from tests.support.ledger.delta_tables import append, commit_file, create_table


def answers(**won: list[bool]) -> Answers:
    return Answers({name: {n: Answer(one, 1.0) for n, one in enumerate(wins)} for name, wins in won.items()})


def test_a_commit_that_two_were_told_of_is_lost_by_one_and_one_that_is_nowhere_is_lost() -> None:
    both = answers(ann=[True, False], bob=[True, True])
    assert both.winners == {0: ["ann", "bob"], 1: ["bob"]}
    assert both.lost({0: "ann", 1: "bob"}) == 1
    assert answers(ann=[True, True], bob=[False, False]).lost({0: "ann"}) == 1


def test_the_log_is_read_with_its_holes_and_with_each_token_as_often_as_it_is_there(tmp_path: Path) -> None:
    with place(PlaceName.DISK, tmp_path) as disk:
        table = Path(disk.new_folder())
        create_table(table)
        for token in ("a", "b", "b"):
            append(table, user_metadata=token)
        log = {version: commit_file(table, version).read_text() for version in range(4)}
        assert tokens_of(log) == ["a", "b", "b"]
        assert torn(disk.log_of(str(table))) == ""
        commit_file(table, 1).unlink()
        assert torn(disk.log_of(str(table))) == "version 1 is missing"


def test_the_tables_of_silver_are_those_of_its_present_id(tmp_path: Path) -> None:
    paths = LakehousePaths(tmp_path)
    assert folders(paths) == []
    table_id = create_table(paths.table(SILVER))
    tables = [paths.table(SILVER), paths.quarantine(SILVER), paths.tombstones(SILVER, table_id)]
    for path in tables[1:]:
        create_table(path)
    assert folders(paths) == tables

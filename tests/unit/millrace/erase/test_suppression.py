"""The list of those who were erased: hashes that only its lakehouse can make, kept once, and pinned by a number."""

from __future__ import annotations

import hmac
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from millrace.erase.subjects import Subjects
from millrace.erase.suppression import Suppressions
from millrace.errors import MillraceError
from millrace.paths import LakehousePaths
from tests.support.ledger.delta_tables import file_contents

KIND = "customer"


@pytest.fixture
def paths(tmp_path: Path) -> LakehousePaths:
    return LakehousePaths(tmp_path / "lake")


def salt_file(paths: LakehousePaths) -> Path:
    return Path(str(paths.suppressions / "salt"))


def test_a_list_keeps_hashes_of_keys_as_text_and_as_number_and_a_request_adds_them_once(paths: LakehousePaths) -> None:
    assert (Suppressions(paths).newest([KIND]), Suppressions(paths).of(KIND, 9)) == (0, None)
    assert not Path(str(paths.root)).exists(), "who reads an empty list makes nothing"
    subjects = Subjects(KIND, ("C-1717", "0017"))
    Suppressions(paths).add(subjects, "DSR-1", "ann")
    first = Suppressions(paths).newest([KIND])
    Suppressions(paths).add(subjects, "DSR-1", "ann")

    found = Suppressions(paths).of(KIND, first)

    assert found
    assert Suppressions(paths).newest([KIND]) == first
    texts = ("customer text C-1717", "customer text 0017", "customer number 17")
    assert found.hashes == {hmac.digest(found.salt, text.encode(), "sha256").hex() for text in texts}
    assert stat.S_IMODE(salt_file(paths).stat().st_mode) == 0o600
    assert found.salt.hex() not in repr(found)
    everything = b"".join(content for name, content in file_contents(paths.root).items() if "salt" not in name)
    assert b"C-1717" not in everything


def test_an_earlier_number_leaves_out_those_who_came_later_and_another_kind_counts_apart(paths: LakehousePaths) -> None:
    listed = Suppressions(paths)
    listed.add(Subjects(KIND, ("C-1",)), "DSR-1", "ann")
    first = listed.newest([KIND])
    listed.add(Subjects(KIND, ("C-2",)), "DSR-2", "ann")
    listed.add(Subjects("driver", ("C-1",)), "DSR-3", "ann")
    assert listed.newest([KIND]) == first + 1
    counts = [len(found.hashes) for number in (first, first + 1) if (found := listed.of(KIND, number))]
    assert counts == [1, 2]
    customers, drivers = (listed.of(kind, listed.newest([kind])) for kind in (KIND, "driver"))
    assert customers
    assert drivers
    assert not customers.hashes & drivers.hashes, "of two kinds nobody can tell that the keys are equal"


def test_two_who_begin_a_list_at_once_have_one_salt(paths: LakehousePaths) -> None:
    with ThreadPoolExecutor(8) as several:
        list(
            several.map(lambda at: Suppressions(paths).add(Subjects(KIND, (f"C-{at}",)), f"DSR-{at}", "ann"), range(8))
        )
    listed = Suppressions(paths)
    found = listed.of(KIND, listed.newest([KIND]))
    assert found
    assert found.hashes == {
        hmac.digest(found.salt, f"customer text C-{at}".encode(), "sha256").hex() for at in range(8)
    }


def test_a_list_whose_salt_is_gone_is_refused_and_no_other_one_is_begun(paths: LakehousePaths) -> None:
    subjects = Subjects(KIND, ("C-1",))
    Suppressions(paths).add(subjects, "DSR-1", "ann")
    salt_file(paths).unlink()
    with pytest.raises(MillraceError, match="salt is gone"):
        Suppressions(paths).of(KIND, 99)
    with pytest.raises(MillraceError, match="salt is gone"):
        Suppressions(paths).add(subjects, "DSR-2", "ann")
    assert not salt_file(paths).exists()

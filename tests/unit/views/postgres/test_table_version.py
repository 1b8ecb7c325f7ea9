"""A version of a table by its name and marks, which are those of no other. No server."""

from __future__ import annotations

from dataclasses import replace

from headwater.views.postgres.table_version import TableVersion

ENTRY = TableVersion(7, "orders", 2, "id BIGINT, n BIGINT", ("id",), True, 3, 1, (), None, True, 0, False)


def test_the_published_version_has_the_name_of_the_view_and_others_have_their_number() -> None:
    assert ENTRY.table == "orders"
    assert replace(ENTRY, published=False).table == "orders@2"


def test_the_statements_are_for_the_name_it_has_now() -> None:
    assert ENTRY.sql.target.as_string(None) == '"orders"'
    aside = replace(ENTRY, published=False)
    assert aside.sql.changes.as_string(None) == '"orders@2_changes"'
    assert aside.sql.keyed.what == 'view "orders"'


def test_no_two_entries_or_parts_share_a_mark() -> None:
    entries = [ENTRY, replace(ENTRY, version=3), replace(ENTRY, id=8), replace(ENTRY, name="order")]
    marks = {entry.mark(part) for entry in entries for part in ("rows", "changes", "order")}
    assert len(marks) == 12
    assert replace(ENTRY, published=False, batch=9).mark("rows") == ENTRY.mark("rows")

"""The SQL of a MySQL sink: names are quoted, whatever is in them."""

from __future__ import annotations

from headwater.sinks.mysql.statements import TableStatements
from headwater.values.keyed import declare

KEYED = declare("table", "`a``b` STRING NOT NULL, `50%` BIGINT, note STRING", ("a`b", "50%"))
SQL = TableStatements("st`ock", KEYED)


def test_names_are_quoted_and_no_percent_is_taken_for_a_parameter() -> None:
    assert SQL.upsert == (
        "INSERT INTO `st``ock` (`a``b`, `50%%`, `note`) VALUES (%s, %s, %s) "
        "ON DUPLICATE KEY UPDATE `note` = VALUES(`note`)"
    )
    assert SQL.delete(2) == "DELETE FROM `st``ock` WHERE (`a``b`, `50%%`) IN ((%s, %s), (%s, %s))"
    assert SQL.all == "SELECT `a``b`, `50%`, `note` FROM `st``ock`"


def test_a_table_of_nothing_but_a_key_can_be_written_to() -> None:
    only = TableStatements("t", declare("table", "id BIGINT", "id"))
    assert only.upsert.endswith("ON DUPLICATE KEY UPDATE `id` = VALUES(`id`)")


def test_texts_are_compared_with_the_spaces_at_their_ends_on_both_servers() -> None:
    assert "utf8mb4_nopad_bin" in SQL.create("it's ours", mariadb=True)
    assert "utf8mb4_0900_bin COMMENT = 'it''s ours'" in SQL.create("it's ours", mariadb=False)

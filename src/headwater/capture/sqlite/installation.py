"""Keeps the triggers of captured tables in step with the tables.

Invariant: after ``fit`` the triggers are those of the tables as they are, and what may have happened to a
table while they were not is in the outbox as well, by what the table holds.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from headwater.capture.sqlite import catalog, foreign_triggers
from headwater.capture.sqlite.catalog import SqliteTable
from headwater.capture.sqlite.connection import Row, SqliteConnection
from headwater.capture.sqlite.object_names import ObjectNames
from headwater.capture.sqlite.outbox import Outbox, OutboxSource
from headwater.capture.sqlite.triggers import Triggers
from headwater.errors import SourceRefused


class Installation:
    """The triggers of one capture."""

    def __init__(self, db: SqliteConnection, names: ObjectNames, outbox: Outbox):
        self._db, self._names, self._outbox = db, names, outbox
        self._replacing: list[Triggers] = []
        """Those that put rows aside."""

    def fit(self, tables: Sequence[str], since: int) -> None:
        """Make what is missing and remove what is no longer wanted, within a transaction of the caller.

        ``since`` is the newest change of which it is known that the triggers were right when it was made.
        """
        self._replacing = []
        live = {each.table.name: each for each in self._outbox.sources() if each.live}
        for name in dict.fromkeys(tables):
            shape = catalog.table_shape(self._db, name)
            foreign_triggers.check(self._db, shape)
            source = live.pop(name, None)
            if source is None:
                self._install(shape)
            else:
                self._renew(source, shape, since)
        for source in live.values():
            self._outbox.end_source(source.number)
        self.tell()

    def has_untold(self) -> bool:
        """Tell whether rows were replaced of which no trigger could tell."""
        return any(self._db.value(each.untold()) for each in self._replacing)

    def tell(self) -> None:
        """Tell of such rows, within a transaction of the caller."""
        for each in self._replacing:
            self._run(each.tell())

    def _renew(self, source: OutboxSource, shape: SqliteTable, since: int) -> None:
        """Make the triggers of a table anew, if it is not what it was."""
        triggers = Triggers(self._names, shape, source.number)
        wanted, there = triggers.statements(), self._outbox.triggers(source.number)
        lost = _are_lost(wanted, there, shape.table.name)
        made = {name: sql for name, (_, sql) in there.items()}
        if not lost and shape.table == source.table and wanted == made:
            self._note(triggers)
            return
        if not lost and _before(wanted) != _before(made):
            # Rows may have been replaced because of a constraint that was not known.
            lost = self._outbox.has_changes(source.number, since)
        self._run([] if lost else triggers.tell())
        self._outbox.end_source(source.number)
        renewed = self._install(shape)
        self._run(renewed.everything() if lost else [renewed.told_again(since, source.number)])

    def _run(self, statements: Iterable[str]) -> None:
        for each in statements:
            self._db.execute(each)

    def _install(self, shape: SqliteTable) -> Triggers:
        triggers = Triggers(self._names, shape, self._outbox.add_source(shape.table))
        self._run(triggers.statements().values())
        try:
            self._run(triggers.checks())
        except SourceRefused as error:
            raise SourceRefused(
                f'table "{shape.table.name}" of {self._db.title} cannot be captured',
                detail=error.detail,
                hint="does a unique index or a trigger of it use a function that only the application has?",
            ) from None
        self._note(triggers)
        return triggers

    def _note(self, triggers: Triggers) -> None:
        if triggers.shape.uniques:
            self._replacing.append(triggers)


def _are_lost(wanted: Mapping[str, str], there: Mapping[str, Row], table: str) -> bool:
    """Tell whether the triggers that run after each statement have gone with the table, or to another."""
    needed = [name for name in wanted if not name.endswith(_BEFORE)]
    return any(name not in there or there[name][0] != table for name in needed)


_BEFORE = (":before_insert", ":before_update")


def _before(triggers: Mapping[str, str]) -> dict[str, str]:
    return {name: sql for name, sql in triggers.items() if name.endswith(_BEFORE)}

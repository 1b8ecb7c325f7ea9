"""What a verification has found, for people: the counts as a table, and what differs with examples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import click

from headwater import Pipeline, Verdict
from headwater.cli.failure import say
from headwater.cli.formats.tables import print_table


def print_verdicts(verdicts: Sequence[Verdict]) -> None:
    """Print verdicts as a table."""
    columns = ("node", ">equal", ">missing", ">extra", ">different")
    print_table(columns, [(verdict.node, *verdict.counts.values()) for verdict in verdicts])


def tell_differences(
    pipeline: Pipeline,
    verdicts: Sequence[Verdict],
    expected: str = "a batch over the same input gives",
    instead: Mapping[str, str] | None = None,
) -> None:
    """Say what differs from what is ``expected``, of some ``instead``, and exit with 1; or say nothing."""
    wrong = [verdict for verdict in verdicts if not verdict.ok]
    for verdict in wrong:
        gives = (instead or {}).get(verdict.node, expected)
        say("error", f"{pipeline[verdict.node].title} is not what {gives}")
        for example in verdict.to_dict()["examples"]:
            say("detail", example)
    if wrong:
        raise click.exceptions.Exit(1)

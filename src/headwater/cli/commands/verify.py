"""``headwater verify``: whether views and streams are what a batch over the same input gives."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from headwater.cli import spark
from headwater.cli.background import apart
from headwater.cli.commands.check import check_parts
from headwater.cli.failure import say
from headwater.cli.formats.tables import print_ndjson, print_table
from headwater.cli.options import format_option, spark_options, verbose_option
from headwater.cli.screens.progress import waiting
from headwater.cli.wording import NOT_YET
from headwater.engine.figures.progress import progress
from headwater.errors import UsageError
from headwater.log.open import open as open_log
from headwater.pipeline.loading import load
from headwater.pipeline.node import Node
from headwater.pipeline.pipeline import Pipeline

if TYPE_CHECKING:
    from headwater.engine.proof.verify import Verdict


@click.command()
@click.argument("file")
@click.argument("nodes", metavar="[NODE]...", nargs=-1)
@spark_options
@format_option("table", "ndjson", default="table")
@verbose_option
def verify(file: str, nodes: tuple[str, ...], form: str, **where: Any) -> None:
    """Prove the views and streams of the pipeline in FILE, or some of them, right.

    Each is computed again from the log as a batch, up to where it has got, and compared row by row.
    Nothing is changed, and the pipeline may run meanwhile. Exits with 1 if anything differs; what the
    proof does not cover is named as not verified.

    \b
    Examples:
      headwater verify shop.py
      headwater verify shop.py newest
    """
    pipeline = load(file)
    check_parts(pipeline)
    chosen = _chosen(pipeline, nodes)
    ready = _with_results(pipeline, chosen)
    with waiting(f'verifying pipeline "{pipeline.name}"'):
        verdicts = apart(partial(verdicts_of, pipeline, ready, where)) if ready else []
    _print(chosen, verdicts, form)
    _tell_unverified(
        pipeline, verdicts, [] if nodes else [each for each in pipeline.order() if not each.verifiable]
    )
    tell_wrong(pipeline, verdicts)


def _chosen(pipeline: Pipeline, names: Sequence[str]) -> list[Node]:
    """Return the nodes to verify: those that were named, or all that can be."""
    for each in (pipeline[name] for name in names):
        if not each.verifiable:
            raise UsageError(f"{each.title} cannot be verified", detail="views and streams can be")
    return [node for node in pipeline.order() if node.verifiable and (not names or node.name in names)]


def _with_results(pipeline: Pipeline, nodes: Sequence[Node]) -> list[str]:
    """Return the names of nodes that have done a batch; say so of the others."""
    with open_log(pipeline.log) as log:
        done = {each.node for each in progress(pipeline, log) if each.batch is not None}
    for node in nodes:
        if node.name not in done:
            say("note", f"{node.title} {NOT_YET}")
    return [node.name for node in nodes if node.name in done]


def verdicts_of(
    pipeline: Pipeline, names: Sequence[str], where: Mapping[str, Any] | None = None
) -> list[Verdict]:
    """Compute nodes again and compare; call it apart, for it starts Spark."""
    session = spark.start_aside(**(where or {}))
    from headwater.engine.inspection import look
    from headwater.engine.proof.verify import verify

    with look(pipeline, session) as found:
        return [verify(found, name) for name in names]


def _print(nodes: Sequence[Node], verdicts: Sequence[Verdict], form: str) -> None:
    if form == "ndjson":
        kinds = {node.name: node.kind for node in nodes}
        print_ndjson(_facts(each, kinds[each.node]) for each in verdicts)
    elif proved := [each for each in verdicts if each.unproved is None]:
        print_verdicts(proved)
        if all(each.ok for each in proved):
            click.echo(f"\n{_summary(proved)}")


def _summary(proved: Sequence[Verdict]) -> str:
    """Say of verdicts that found nothing wrong what they have found."""
    if not any(each.equal for each in proved):
        return "there are no rows to compare"
    return "all rows are equal" + (
        ", but for what is not verified" if any(each.aside for each in proved) else ""
    )


def _tell_unverified(pipeline: Pipeline, verdicts: Sequence[Verdict], sinks: Sequence[Node]) -> None:
    """Name everything that the proof does not cover."""
    for each in verdicts:
        if each.unproved is not None:
            say("note", f"{pipeline[each.node].title} is not verified: {each.unproved}")
        elif each.aside:
            columns = ", ".join(each.aside)
            say("note", f"{pipeline[each.node].title} is verified without its estimates: {columns}")
    for node in sinks:
        say("note", f"{node.title} is not verified: what it holds is not known here")


def print_verdicts(verdicts: Sequence[Verdict]) -> None:
    """Print verdicts as a table."""
    columns = ("node", ">equal", ">missing", ">extra", ">different")
    print_table(columns, [(each.node, *_counts(each).values()) for each in verdicts])


def tell_wrong(
    pipeline: Pipeline, verdicts: Sequence[Verdict], should: str = "a batch over the same input gives"
) -> None:
    """Say what differs, with examples, and exit with 1; or say nothing."""
    wrong = [each for each in verdicts if not each.ok]
    for each in wrong:
        say("error", f"{pipeline[each.node].title} is not what {should}")
        for example in _examples(each):
            say("detail", example)
    if wrong:
        raise click.exceptions.Exit(1)


def _counts(verdict: Verdict) -> dict[str, int]:
    return {
        "equal": verdict.equal,
        "missing": len(verdict.missing),
        "extra": len(verdict.extra),
        "different": len(verdict.different),
    }


def _examples(verdict: Verdict) -> Iterator[str]:
    """Yield some of what is wrong, each on one line."""
    for example in verdict.examples():
        yield " ".join(example.split())


def _facts(verdict: Verdict, kind: str) -> dict[str, Any]:
    examples = list(_examples(verdict))
    told = {"node": verdict.node, "kind": kind, "ok": verdict.ok if verdict.unproved is None else None}
    return {
        **told,
        **_counts(verdict),
        "examples": examples,
        "unproved": verdict.unproved,
        "aside": list(verdict.aside),
    }

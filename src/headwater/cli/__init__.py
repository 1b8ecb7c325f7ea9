"""The ``headwater`` command: one file per command, all of them callers of the public API.

They are listed here, and imported when they are called: who asks for a topic does not wait for Spark.
Invariant: a command never shows a traceback unless it is asked to (``failure.py``).
"""

from __future__ import annotations

import click

from headwater.cli.failure import HELP
from headwater.cli.lazy_group import LazyCommand, LazyGroup
from headwater.cli.options import root_log_option, verbose_option
from headwater.cli.wording import OWN_LOG
from headwater.errors import UsageError

_COMMANDS = {
    "run": LazyCommand("run", "Run the pipeline in FILE, until Ctrl-C."),
    "check": LazyCommand("check", "Check the pipeline in FILE, and print the columns of its nodes."),
    "status": LazyCommand("status", "Show the progress of each node of the pipeline in FILE."),
    "verify": LazyCommand("verify", "Verify views, streams and sinks against a batch over the log."),
    "view": LazyCommand("view", "Read the views of a pipeline."),
    "serve": LazyCommand("serving.serve", "Serve topics and views over HTTP, until Ctrl-C."),
    "token": LazyCommand("serving.token", "Make, list and revoke the tokens of a server."),
    "graph": LazyCommand("graph", "Draw the pipeline in FILE."),
    "capture": LazyCommand("capture", "Capture the changes of a database into the log."),
    "events": LazyCommand(
        "events",
        "Show what has happened to the aggregate KEY, and its state after each event.",
        needs_pandas=False,
    ),
    "ingest": LazyCommand("topics.ingest", "Take in what has no client of the log."),
    "feed": LazyCommand(
        "topics.ingest", "Send the records of TOPIC by UDP as they are appended, until Ctrl-C."
    ),
    "topic": LazyCommand(
        "topics.topic", "Create, list, describe, alter, adopt and delete topics.", needs_pandas=False
    ),
    "produce": LazyCommand(
        "topics.produce", "Append lines to TOPIC, from FILE or standard input.", needs_pandas=False
    ),
    "mark": LazyCommand(
        "topics.mark", "Append a watermark to TOPIC: no event before TIME will come.", needs_pandas=False
    ),
    "consume": LazyCommand("topics.consume", "Print the records of TOPIC.", needs_pandas=False),
    "lag": LazyCommand(
        "topics.lag", "Show how far groups are behind, in records and in time.", needs_pandas=False
    ),
    "lateness": LazyCommand("topics.lateness", "Show how late the rows of TOPIC are, and advise a lateness."),
    "seek": LazyCommand("topics.seek", "Move GROUP to another position in TOPIC.", needs_pandas=False),
    "group": LazyCommand("topics.group", "List and delete consumer groups.", needs_pandas=False),
    "queue": LazyCommand(
        "queues.queue", "Show queues, redrive dead letters, forget what waits.", needs_pandas=False
    ),
    "work": LazyCommand(
        "queues.work", "Call a function with each message of the queue over TOPIC, until Ctrl-C."
    ),
    "compact": LazyCommand(
        "topics.compact", "Compact TOPIC, or apply its retention, now.", needs_pandas=False
    ),
    "log": LazyCommand("topics.log", "Check the log as a whole.", needs_pandas=False),
    "export": LazyCommand(
        "topics.export", "Write the records of TOPIC to a Parquet file.", needs_pandas=False
    ),
    "import": LazyCommand(
        "topics.import_", "Append the rows of a Parquet file to TOPIC.", needs_pandas=False
    ),
    "rebuild": LazyCommand("rebuild", "Rebuild the view or sink NODE of the pipeline in FILE from the log."),
    "rescale": LazyCommand("rescale", "Spread the state of NODE over N buckets, from 1 to 256."),
    "reset": LazyCommand("rebuild", "Empty the view NODE, and start it at another position."),
    "dead": LazyCommand(
        "dead",
        "List, show and redrive dead letters of a pipeline's nodes; those of queues: `headwater queue dead`.",
    ),
    "demo": LazyCommand("demo", "Watch an example pipeline at work: a small web shop."),
}


@click.group(
    "headwater",
    cls=LazyGroup,
    lazy=_COMMANDS,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(package_name="headwater", message="%(prog)s %(version)s")
@root_log_option
@verbose_option
@click.pass_context
def main(ctx: click.Context, url: str) -> None:
    """Headwater: an application's writes become live, correct, derived data.

    \b
    Try it:
      headwater demo

    \b
    Start your own:
      headwater topic create orders --schema "id BIGINT, item STRING"
      echo '{"id": 1, "item": "tea"}' | headwater produce orders
      headwater consume orders

    \b
    Then run a pipeline over it, declared in a file of yours (README.md has one):
      headwater run shop.py
      headwater verify shop.py
      headwater view list

    The log is the directory ./data unless --log or HEADWATER_LOG names another; a pipeline uses the
    log that its FILE names. --log and --verbose may come before the command or after it.
    """
    typed = ctx.get_parameter_source("url") is click.core.ParameterSource.COMMANDLINE
    if typed and ctx.invoked_subcommand in _PIPELINE_COMMANDS and HELP not in ctx.meta:
        raise UsageError(
            f"`headwater {ctx.invoked_subcommand}` takes no --log",
            hint=OWN_LOG,
        )


_PIPELINE_COMMANDS = (
    "run",
    "check",
    "status",
    "verify",
    "graph",
    "rebuild",
    "reset",
    "rescale",
    "dead",
    "demo",
)
"""Commands about a pipeline, which names its log itself."""

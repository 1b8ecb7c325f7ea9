"""The ``headwater`` command: one file per command, all of them callers of the public API.

Invariant: a command never shows a traceback unless it is asked to (``failure.py``).
"""

from __future__ import annotations

import click

from headwater.cli.commands.capture import capture
from headwater.cli.commands.check import check
from headwater.cli.commands.dead import dead
from headwater.cli.commands.demo import demo as demo_command  # demo is the folder of its parts
from headwater.cli.commands.events import events
from headwater.cli.commands.graph import graph
from headwater.cli.commands.queues.queue import queue
from headwater.cli.commands.queues.work import work
from headwater.cli.commands.rebuild import rebuild, reset
from headwater.cli.commands.rescale import rescale
from headwater.cli.commands.run import run
from headwater.cli.commands.serving.serve import serve
from headwater.cli.commands.serving.token import token
from headwater.cli.commands.status import status
from headwater.cli.commands.topics.compact import compact
from headwater.cli.commands.topics.consume import consume
from headwater.cli.commands.topics.export import export
from headwater.cli.commands.topics.group import group
from headwater.cli.commands.topics.import_ import import_
from headwater.cli.commands.topics.ingest import feed, ingest
from headwater.cli.commands.topics.lag import lag
from headwater.cli.commands.topics.lateness import lateness
from headwater.cli.commands.topics.log import log
from headwater.cli.commands.topics.mark import mark
from headwater.cli.commands.topics.produce import produce
from headwater.cli.commands.topics.seek import seek
from headwater.cli.commands.topics.topic import topic
from headwater.cli.commands.verify import verify
from headwater.cli.commands.view import view
from headwater.cli.failure import HELP, ReportingGroup
from headwater.cli.options import root_log_option, verbose_option
from headwater.cli.wording import OWN_LOG
from headwater.errors import UsageError


@click.group(
    "headwater",
    cls=ReportingGroup,
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


for command in (
    run,
    check,
    status,
    verify,
    view,
    serve,
    token,
    graph,
    capture,
    events,
    ingest,
    feed,
    topic,
    produce,
    mark,
    consume,
    lag,
    lateness,
    seek,
    group,
    queue,
    work,
    compact,
    log,
    export,
    import_,
    rebuild,
    rescale,
    reset,
    dead,
    demo_command,
):
    main.add_command(command)

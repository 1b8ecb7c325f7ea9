"""``headwater graph``: a pipeline's parts and who reads whom, as text or as a picture."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import click

import headwater
from headwater import Pipeline, drawing
from headwater.cli.options import format_option, verbose_option

_ENDINGS = {".svg": "svg", ".mmd": "mermaid", ".mermaid": "mermaid"}


@click.command()
@click.argument("file")
@format_option(
    *drawing.FORMS, default=None, help="The output format.  [default: by the ending of --output, else text]"
)
@click.option(
    "--output", type=click.Path(dir_okay=False, path_type=Path), metavar="PATH", help="Write it to this file."
)
@verbose_option
def graph(file: str, form: str | None, output: Path | None) -> None:
    """Draw the pipeline in FILE.

    Nothing is started, and no log is opened. Where FILE declares several pipelines, name one after
    it, as in shop.py:audit.

    \b
    Examples:
      headwater graph shop.py
      headwater graph shop.py --output shop.svg
    """
    pipeline = headwater.load(file)
    form = form or _ENDINGS.get(output.suffix.lower() if output else "", "text")
    if output is None:
        click.echo(_shown(pipeline, form))
        return
    output.write_text(drawing.FORMS[form](pipeline) + "\n", encoding="utf-8")
    click.echo(f'drew pipeline "{pipeline.name}" in {output}')


def _shown(pipeline: Pipeline, form: str) -> str:
    """Draw it for stdout: only text in a terminal has a width."""
    if form == "text" and _in_terminal():
        return drawing.as_text(pipeline, shutil.get_terminal_size().columns)
    return drawing.FORMS[form](pipeline)


def _in_terminal() -> bool:
    return sys.stdout.isatty()

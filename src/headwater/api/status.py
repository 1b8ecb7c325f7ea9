"""How far the nodes of a pipeline have got, whether it runs or not: nothing is started to know it."""

from __future__ import annotations

from headwater.api.subject import Subject, checked
from headwater.engine.figures.progress import Progress, check_has_run, progress
from headwater.log.open import open as open_log


def status(pipeline: Subject) -> list[Progress]:
    """Return how far each node of a pipeline has got, as the nodes have written it down.

    The last batch and when it ended, the records that it is behind, its clock, the rows of a view, and up to
    where its inputs are read. It says nothing about whether the pipeline runs. One that has never run is
    refused with a ``HeadwaterError``.
    """
    found = checked(pipeline)
    check_has_run(found)
    with open_log(found.log) as log:
        return progress(found, log)

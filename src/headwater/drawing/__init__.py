"""A pipeline as a picture: text for a terminal, Mermaid for a page, SVG for a browser.

Invariant: every declaration appears once with its kind and key, and every edge from an upstream to its
reader; the same pipeline is always drawn the same.
"""

from __future__ import annotations

from collections.abc import Callable

from headwater.drawing.mermaid import as_mermaid
from headwater.drawing.svg import as_svg
from headwater.drawing.text import as_text
from headwater.pipeline.pipeline import Pipeline

FORMS: dict[str, Callable[[Pipeline], str]] = {"text": as_text, "mermaid": as_mermaid, "svg": as_svg}
"""The ways to draw a pipeline, by name."""

__all__ = ["FORMS", "as_mermaid", "as_svg", "as_text"]

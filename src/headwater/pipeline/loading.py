"""Loads a user's file and finds the pipeline that it declares.

The file becomes a module of its own name, with its directory on the path, so that what it defines can
be imported by that name wherever the file can be found: in Spark's workers too. Invariant: a file is
run once in a process, however often it is loaded, and one that fails leaves no module behind.
"""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable
from contextlib import redirect_stdout
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any, cast

from headwater.errors import HeadwaterError, PipelineError, UsageError, nearest
from headwater.pipeline.pipeline import Pipeline
from headwater.pipeline.source_line import SourceLine

_OURS: dict[str, Path] = {}
"""The modules that were loaded here, by name: these may give way to another file of their name."""


def load(path: str | os.PathLike[str], name: str | None = None) -> Pipeline:
    """Run a file and return its pipeline: the only one, or the one of a name.

    The name is the pipeline's or its variable's, and may also follow the path: ``shop.py:shop``.
    What the file raises becomes a ``PipelineError`` with the user's own line; what it prints goes to
    stderr.

    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "tiny_shop.py")
    ...     _ = file.write_text("from headwater import Pipeline; shop = Pipeline('shop')")
    ...     load(file).name
    'shop'
    """
    file, named = split_path(os.fspath(path))
    return _choose(_pipelines(load_module(file)), file, name or named)


def load_module(file: Path) -> ModuleType:
    """Run a file of a user's, unless it has been run, and return its module."""
    return _module(_existing(file))


def load_function(path: str) -> Callable[..., Any]:
    """Run a file and return the function that ``FILE.py:FUNCTION`` names.

    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "tiny_mail.py")
    ...     _ = file.write_text("def send(message): return message")
    ...     load_function(f"{file}:send")("hello")
    'hello'
    """
    file, name = split_path(path)
    if name is None:
        raise UsageError(f'"{path}" names no function', hint="write FILE.py:FUNCTION, as in mail.py:send")
    module = load_module(file)
    found = getattr(module, name, None)
    if not callable(found):
        known = [each for each, value in vars(module).items() if callable(value)]
        raise UsageError(f'file "{file.name}" has no function "{name}"', hint=nearest(name, known))
    return cast(Callable[..., Any], found)


def split_path(path: str) -> tuple[Path, str | None]:
    """Return a file and the name that may follow it: ``shop.py:shop``."""
    before, colon, after = path.rpartition(":")
    return (Path(before), after) if colon and before.endswith(".py") else (Path(path), None)


def _existing(file: Path) -> Path:
    if file.is_file():
        if not os.access(file, os.R_OK):
            raise UsageError(f'file "{file}" may not be read', hint="check its owner and permissions")
        return file.resolve()
    if file.is_dir():
        raise UsageError(f'"{file}" is a directory, not a pipeline\'s file', hint="name a .py file in it")
    beside = [path.name for path in file.parent.glob("*.py")] if file.parent.is_dir() else []
    raise UsageError(f'no file "{file}"', hint=nearest(file.name, beside))


def _module(file: Path) -> ModuleType:
    """Return the module of a file; it is run unless it has been."""
    loaded = sys.modules.get(file.stem)
    if loaded is not None and _file_of(loaded) == file:
        return loaded
    _check_module_name(file, loaded)
    spec = spec_from_file_location(file.stem, file)
    if spec is None:
        raise UsageError(f'"{file.name}" is not a Python file', hint="name a .py file")
    module = module_from_spec(spec)
    _run(module, file)
    _OURS[file.stem] = file
    return module


def _file_of(module: ModuleType) -> Path | None:
    file = getattr(module, "__file__", None)
    return Path(file).resolve() if file else None


def _check_module_name(file: Path, loaded: ModuleType | None) -> None:
    """Refuse a file that would be imported as something else, or hide what others import."""
    if "." in file.stem:
        hint = f'rename it, as to "{file.stem.replace(".", "_")}.py"'
        raise PipelineError(f'"{file.name}" cannot be imported: its name has a dot', hint=hint)
    foreign = loaded is not None and _OURS.get(file.stem) != _file_of(loaded)
    if foreign or file.stem in sys.stdlib_module_names:
        hint = f'rename it, as to "{file.stem}_pipeline.py"'
        raise PipelineError(f'"{file.name}" has the name of a module that is in use', hint=hint)


def _run(module: ModuleType, file: Path) -> None:
    name, before = module.__name__, sys.modules.get(module.__name__)
    path = list(sys.path)
    if str(file.parent) not in sys.path:
        sys.path.insert(0, str(file.parent))
    sys.modules[name] = module
    try:
        # Not through the loader: its cache takes two edits within a second for the same text.
        with redirect_stdout(sys.stderr):  # stdout is for the result of a command
            exec(compile(file.read_bytes(), str(file), "exec", dont_inherit=True), module.__dict__)
    except BaseException as error:
        sys.path[:] = path
        _put_back(name, before)
        if isinstance(error, Exception | SystemExit):
            raise _failed(error, file) from error
        raise


def _put_back(name: str, before: ModuleType | None) -> None:
    del sys.modules[name]
    if before is not None:
        sys.modules[name] = before


def _failed(error: Exception | SystemExit, file: Path) -> HeadwaterError:
    """Return what a user's file raised, as an error that names the user's line."""
    if isinstance(error, PipelineError) and error.location:
        return error
    location = str(_line(error, file))
    if isinstance(error, HeadwaterError):
        return PipelineError(error.message, location=location, detail=error.detail, hint=error.hint)
    text = (error.msg if isinstance(error, SyntaxError) else str(error)).strip()
    said = ": ".join([type(error).__name__, *text.splitlines()[:1]])
    return PipelineError(f'cannot load "{file.name}"', location=location, detail=said, hint=_remedy(error))


def _remedy(error: Exception | SystemExit) -> str | None:
    if isinstance(error, SystemExit):
        return "a pipeline's file only declares; it may not end the program"
    if isinstance(error, ModuleNotFoundError) and error.name:
        return (
            f'install what has "{error.name}" for the Python that runs headwater, or put it beside the file'
        )
    return None


def _line(error: BaseException, file: Path) -> SourceLine:
    """Return the innermost line that is the user's: below the file's directory, and not a library."""
    if isinstance(error, SyntaxError) and error.filename and error.lineno:
        return SourceLine(error.filename, error.lineno)
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if frame.lineno and (frame.filename == str(file) or _is_beside(Path(frame.filename), file)):
            return SourceLine(frame.filename, frame.lineno)
    return SourceLine(str(file), 1)


def _is_beside(other: Path, file: Path) -> bool:
    foreign = "site-packages" in other.parts or other.is_relative_to(Path(__file__).parents[1])
    return other.is_relative_to(file.parent) and not foreign


def _pipelines(module: ModuleType) -> dict[str, Pipeline]:
    """Return the pipelines of a module by their variables, each once."""
    by_identity: dict[int, tuple[str, Pipeline]] = {}
    for variable, value in vars(module).items():
        if isinstance(value, Pipeline):
            by_identity.setdefault(id(value), (variable, value))
    return dict(by_identity.values())


def _choose(pipelines: dict[str, Pipeline], file: Path, name: str | None) -> Pipeline:
    names = [pipeline.name for pipeline in pipelines.values()]
    if name is not None:
        return _named(pipelines, file, name)
    if not pipelines:
        stem = file.stem if file.stem.isidentifier() else "shop"
        raise PipelineError(
            f'no pipeline in "{file}"', hint=f'declare one, as in {stem} = Pipeline("{stem}")'
        )
    if len(pipelines) > 1:
        hint = f'name one, as in "{file}:{names[0]}"'
        raise PipelineError(f'"{file}" has {len(pipelines)} pipelines', detail=", ".join(names), hint=hint)
    return next(iter(pipelines.values()))


def _named(pipelines: dict[str, Pipeline], file: Path, name: str) -> Pipeline:
    for pipeline in pipelines.values():
        if pipeline.name == name:
            return pipeline
    if name in pipelines:
        return pipelines[name]
    names = [pipeline.name for pipeline in pipelines.values()]
    hint = nearest(name, [*names, *pipelines]) or ("it has: " + ", ".join(names) if names else None)
    raise PipelineError(f'no pipeline "{name}" in "{file}"', hint=hint)

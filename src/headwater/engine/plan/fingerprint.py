"""What a function of the user's does, as a short text by which an edit is noticed.

It is taken from the source as Python parses it, so it outlives a newer Python; where there is no source,
as in a shell, from the compiled code. Code that is installed is known by its name.

Invariant: comments, formatting, docstrings, annotations and where a function is written do not count. Its
statements, defaults, what it closes over, and the user's own functions, classes and values that it
refers to do, however far away; and the text is the same in every process.
"""

from __future__ import annotations

import ast
import dataclasses
import dis
import hashlib
import inspect
import sys
import sysconfig
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

_IGNORED = ("annotation", "returns", "type_comment", "type_params", "ctx", "kind")
"""Of what Python parses, what does not change what a function does."""
_ATTEMPTS = 20
_PLAIN = (type(None), bool, int, float, complex, str, bytes, type(Ellipsis))
_WRAPPED = ("__wrapped__", "__func__", "fget", "fset", "func")
_INSTALLED = tuple(Path(sysconfig.get_path(name)).resolve() for name in ("stdlib", "purelib", "platlib"))


def fingerprint(function: Any) -> str:
    """Return what a function does, in sixteen characters."""
    return hashlib.sha256(_Description().of(function).encode()).hexdigest()[:16]


class _Description:
    """Describes values as text; of one that is met again, only that it is."""

    def __init__(self) -> None:
        self._met: dict[int, tuple[int, Any]] = {}  # with the value, lest another one gets its identity

    def of(self, value: Any) -> str:
        """Return a value, and all that it is made of."""
        if isinstance(value, _PLAIN):
            return f"{type(value).__name__} {value!r}"
        if isinstance(value, tuple | frozenset | CodeType):  # which of them are one, Python decides
            return self._described(value)
        if id(value) in self._met:
            return f"again {self._met[id(value)][0]}"
        self._met[id(value)] = (len(self._met), value)
        return self._described(value)

    def _described(self, value: Any) -> str:
        if isinstance(value, FunctionType):
            return self._function(value)
        if isinstance(value, type):
            return self._class(value)
        if isinstance(value, CodeType):
            return self._code(value)
        if isinstance(value, ModuleType):
            return f"module {value.__name__}"
        if isinstance(value, BuiltinFunctionType | MethodType):
            return self._all("method", [value.__name__, value.__self__, getattr(value, "__func__", None)])
        return self._container(value)

    def _container(self, value: Any) -> str:
        if type(value) is dict:
            return self._all("dict", [each for item in value.items() for each in item])
        if type(value) in (list, tuple):
            return self._all(type(value).__name__, value)
        if type(value) in (set, frozenset):
            return (
                f"set {sorted(_Description().of(each) for each in value)}"  # each by itself: it has no order
            )
        return self._object(value)

    def _object(self, value: Any) -> str:
        """Return an object as pickle would take it apart; one that it cannot is known by its class."""
        try:
            parts = value.__reduce_ex__(4)
        except Exception:  # an object may raise anything there
            parts = type(value).__qualname__
        if isinstance(parts, str):  # it is known by its name, and by the functions that it wraps
            return self._all(parts, [type(value), *(getattr(value, name, None) for name in _WRAPPED)])
        return self._all("object", [list(each) if isinstance(each, Iterator) else each for each in parts])

    def _function(self, function: FunctionType) -> str:
        registry = getattr(function, "registry", None)
        if registry is not None and hasattr(function, "dispatch"):  # functools.singledispatch
            return self._all("singledispatch", [each for item in registry.items() for each in item])
        if _is_installed(function.__module__):
            return f"function {function.__module__}.{function.__qualname__}"
        cells = [_contents(cell) for cell in function.__closure__ or ()]
        used = self._used(function.__code__, function.__globals__)
        values = [function.__defaults__, function.__kwdefaults__, *cells, *used]
        return self._all(_source(function.__code__) or self._code(function.__code__), values)

    def _class(self, kind: type) -> str:
        if _is_installed(kind.__module__):
            return f"class {kind.__module__}.{kind.__qualname__}"
        parts = [each for item in vars(kind).items() if _counts(*item) for each in item]
        return self._all("class", [*kind.__bases__, *parts, *_field_defaults(kind)])

    def _code(self, code: CodeType) -> str:
        names = (code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars)
        shape = (code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags)
        return self._all(f"code {sys.version_info[:2]}", [code.co_code, code.co_consts, names, shape])

    def _used(self, code: CodeType, values: Mapping[str, Any]) -> Iterator[Any]:
        """Yield the names that code refers to outside of itself, and what is behind each."""
        for name in sorted(_globals(code) & values.keys()):
            found = values[name]
            yield name
            yield found
            if isinstance(found, ModuleType) and not _is_installed(found.__name__):
                for part in sorted(_names(code) & vars(found).keys()):
                    yield part
                    yield vars(found)[part]

    def _all(self, what: str, values: Iterable[Any]) -> str:
        return f"{what}({', '.join(map(self.of, values))})"


def _counts(name: str, part: Any) -> bool:
    """Tell whether a part of a class was written by its author, and not made by Python."""
    if isinstance(part, FunctionType):
        return part.__code__.co_filename != "<string>"  # a dataclass makes such ones of its fields
    return name == "__match_args__" or not name.startswith("__")


def _field_defaults(kind: type) -> Iterator[Any]:
    """Yield the defaults of a dataclass that are no attributes of the class: factories, those of slots."""
    for each in dataclasses.fields(kind) if dataclasses.is_dataclass(kind) else ():
        if each.default_factory is not dataclasses.MISSING:
            yield from (each.name, each.default_factory)
        elif each.default is not dataclasses.MISSING and getattr(kind, each.name, None) is not each.default:
            yield from (each.name, each.default)


def _contents(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # it has no value yet
        return None


def _within(code: CodeType) -> Iterator[CodeType]:
    """Yield code and all code that is written in it."""
    yield code
    for each in code.co_consts:
        if isinstance(each, CodeType):
            yield from _within(each)


def _globals(code: CodeType) -> set[str]:
    steps = (step for each in _within(code) for step in dis.get_instructions(each))
    return {str(step.argval) for step in steps if step.opname in ("LOAD_GLOBAL", "LOAD_NAME")}


def _names(code: CodeType) -> set[str]:
    return {name for each in _within(code) for name in each.co_names}


def _is_installed(module: str | None) -> bool:
    """Tell whether a module is Python's, Headwater's or a package's, and not the user's own."""
    if module is None or module.split(".")[0] in ("headwater", "builtins"):
        return module is not None
    file = getattr(sys.modules.get(module), "__file__", None)
    return module in sys.builtin_module_names or (file is not None and _is_below(file))


@cache
def _is_below(file: str) -> bool:
    return any(Path(file).resolve().is_relative_to(folder) for folder in _INSTALLED)


def _source(code: CodeType) -> str | None:
    """Return a function as it is written; None if that is not there, or not what was compiled."""
    try:
        text = "".join(inspect.findsource(code)[0])
        known = compile(text, code.co_filename, "exec", dont_inherit=True)
    except (OSError, TypeError, SyntaxError, ValueError):
        return None
    if code not in _within(known):  # it was edited since
        return None
    # Two functions of one line cannot be told apart, and count both.
    return "; ".join(_parsed(node) for node in ast.walk(_tree(text)) if _begins(node) == code.co_firstlineno)


def _tree(text: str) -> ast.AST:
    """Parse a source; Python 3.11 may fail at that, and say so, when another thread parses something too."""
    for _ in range(_ATTEMPTS):
        with suppress(SystemError):
            return ast.parse(text)
    return ast.parse(text)


def _begins(node: ast.AST) -> int | None:
    """Return the line where a function begins, decorators included."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return min([node.lineno, *(each.lineno for each in node.decorator_list)])
    return node.lineno if isinstance(node, ast.Lambda) else None


def _parsed(node: Any) -> str:
    """Return what Python has parsed without what it leaves open, so that a later Python says the same."""
    if isinstance(node, ast.AST):
        parts = {
            name: _parsed(each)
            for name, each in ast.iter_fields(node)
            if name not in _IGNORED and each not in ([], None)
        }
        return f"{type(node).__name__}({', '.join(f'{name}={text}' for name, text in parts.items())})"
    if isinstance(node, list):
        return f"[{', '.join(_parsed(each) for each in node if not _is_docstring(each))}]"
    return repr(node)


def _is_docstring(node: Any) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)

"""Loading a user's file: the pipeline in it, or an error that names the user's line."""

from __future__ import annotations

import importlib
import pickle
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from headwater.errors import HeadwaterError, PipelineError, UsageError
from headwater.pipeline import loading
from headwater.pipeline.loading import load

Write = Callable[..., Path]
ONE = 'from headwater import Pipeline\n\nshop = Pipeline("shop")\n'
TWO = ONE + 'audit = Pipeline("shop_audit")\n'


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Write]:
    """Write a file into the working directory; what was imported is forgotten afterwards."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(loading, "_OURS", {})
    modules, path = dict(sys.modules), list(sys.path)

    def written(text: str, name: str = "shop.py") -> Path:
        file = tmp_path / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(text)
        return file

    yield written
    sys.path[:] = path
    for name in set(sys.modules) - set(modules):
        del sys.modules[name]


def failure(path: object, name: str | None = None) -> str:
    with pytest.raises(HeadwaterError) as caught:
        load(path, name)  # type: ignore[arg-type]
    return str(caught.value)


def test_the_only_pipeline_of_a_file_is_found(write: Write) -> None:
    write(ONE)
    assert load("shop.py").name == "shop"
    assert load(Path("shop.py")) is load("shop.py")


def test_a_file_is_run_once_however_it_is_named(write: Write) -> None:
    write(ONE + 'print("run")\n')
    first = load("shop.py")
    assert load(Path("shop.py").resolve()) is first
    assert importlib.import_module("shop").shop is first


def test_a_module_that_was_imported_is_not_run_again(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    file = write(ONE)
    monkeypatch.syspath_prepend(file.parent)
    assert load(file) is importlib.import_module("shop").shop


def test_what_a_file_defines_can_be_imported_by_its_name(write: Write) -> None:
    write(ONE + "@shop.stream()\ndef seen(clicks):\n    return clicks\n")
    function = load("shop.py").nodes[0].code.function
    assert function is not None and function.__module__ == "shop"
    assert pickle.loads(pickle.dumps(function)) is function


def test_a_file_may_import_what_is_beside_it(write: Write) -> None:
    write("NAME = 'named_elsewhere'\n", "names_of_shop.py")
    write("from headwater import Pipeline\nfrom names_of_shop import NAME\nshop = Pipeline(NAME)\n")
    assert load("shop.py").name == "named_elsewhere"


def test_one_pipeline_under_two_names_is_one(write: Write) -> None:
    write(ONE + "again = shop\n")
    assert load("shop.py").name == "shop"


@pytest.mark.parametrize("name", ["shop_audit", "audit"])
def test_one_of_several_is_named_by_its_own_name_or_its_variable(write: Write, name: str) -> None:
    write(TWO)
    assert load(f"shop.py:{name}").name == "shop_audit"
    assert load("shop.py", name).name == "shop_audit"


def test_a_pipelines_name_counts_before_a_variable(write: Write) -> None:
    write('from headwater import Pipeline\na = Pipeline("b")\nb = Pipeline("a")\n')
    assert load("shop.py:a").name == "a"


def test_several_pipelines_must_be_told_apart(write: Write) -> None:
    write(TWO)
    assert failure("shop.py") == (
        '"shop.py" has 2 pipelines\ndetail: shop, shop_audit\nhint: name one, as in "shop.py:shop"'
    )


def test_a_misspelt_name_is_answered_with_the_nearest(write: Write) -> None:
    write(TWO)
    assert failure("shop.py:shp") == 'no pipeline "shp" in "shop.py"\nhint: did you mean "shop"?'
    assert failure("shop.py:xyz") == 'no pipeline "xyz" in "shop.py"\nhint: it has: shop, shop_audit'


def test_a_file_without_a_pipeline_is_told_how_to_get_one(write: Write) -> None:
    write("")
    assert failure("shop.py") == (
        'no pipeline in "shop.py"\nhint: declare one, as in shop = Pipeline("shop")'
    )


def test_a_file_that_is_not_there_is_answered_with_the_nearest(write: Write) -> None:
    write(ONE)
    assert failure("shpo.py") == 'no file "shpo.py"\nhint: did you mean "shop.py"?'
    assert failure("nowhere/shop.py") == 'no file "nowhere/shop.py"'
    with pytest.raises(UsageError):
        load("shpo.py")


def test_neither_a_directory_nor_another_kind_of_file_is_a_pipeline(write: Write) -> None:
    write("shop", "shop.txt")
    assert failure(".").startswith('"." is a directory')
    assert failure("shop.txt") == '"shop.txt" is not a Python file\nhint: name a .py file'


@pytest.mark.parametrize(
    ("text", "detail"),
    [
        ("x = 1\n\nx = 1 / 0\n", "shop.py:3: ZeroDivisionError: division by zero"),
        ("x = (\n", "shop.py:1: SyntaxError: '(' was never closed"),
        ("raise KeyError\n", "shop.py:1: KeyError"),
        (
            "import nothing_of_that_name\n",
            "shop.py:1: ModuleNotFoundError: No module named 'nothing_of_that_name'",
        ),
        ("raise ValueError('first\\nsecond')\n", "shop.py:1: ValueError: first"),
        ("\nimport sys\nsys.exit(3)\n", "shop.py:3: SystemExit: 3"),
        ("import json\n\n\njson.loads('{')\n", "shop.py:4: JSONDecodeError: Expecting property name"),
    ],
)
def test_an_exception_of_the_users_code_is_told_by_its_line(write: Write, text: str, detail: str) -> None:
    write(text)
    assert failure("shop.py").startswith(f'cannot load "shop.py"\ndetail: {detail}')


def test_what_a_file_prints_is_no_result_of_a_command(
    write: Write, capsys: pytest.CaptureFixture[str]
) -> None:
    write("from headwater import Pipeline\nprint('hello')\nshop = Pipeline('shop')\n")
    assert load("shop.py").name == "shop"
    assert capsys.readouterr() == ("", "hello\n")


def test_an_exception_beside_the_file_is_told_by_the_innermost_line_of_the_user(write: Write) -> None:
    write("def divide():\n    return 1 / 0\n", "lib_of_shop.py")
    write("import lib_of_shop\nlib_of_shop.divide()\n")
    assert "detail: lib_of_shop.py:2: ZeroDivisionError" in failure("shop.py")


def test_an_exception_of_an_installed_library_is_told_by_the_users_line(write: Write) -> None:
    write("def divide():\n    return 1 / 0\n", "site-packages/library_of_shop.py")
    write("import sys; sys.path.append('site-packages')\nimport library_of_shop\nlibrary_of_shop.divide()\n")
    assert "detail: shop.py:3: ZeroDivisionError" in failure("shop.py")


def test_a_wrong_declaration_is_told_as_it_is(write: Write) -> None:
    write(ONE + '\n\nshop.source("clicks", "n BIGNIT")\n')
    assert failure("shop.py") == (
        'column "n" has an unknown type "BIGNIT"\ndetail: shop.py:6\nhint: did you mean "BIGINT"?'
    )


def test_another_error_of_headwater_gets_the_users_line(write: Write) -> None:
    write("import headwater\n\nheadwater.open('data')\n")
    assert failure("shop.py").startswith('invalid log URL "data"\ndetail: shop.py:3\nhint: use "file:./data"')


def test_the_cause_is_kept_for_those_who_want_the_traceback(write: Write) -> None:
    write("1 / 0\n")
    with pytest.raises(PipelineError) as caught:
        load("shop.py")
    assert isinstance(caught.value.__cause__, ZeroDivisionError)


def test_a_file_that_fails_leaves_nothing_and_can_be_mended(write: Write) -> None:
    path = list(sys.path)
    write(ONE + "1 / 0\n")
    failure("shop.py")
    assert "shop" not in sys.modules
    assert sys.path == path
    write(ONE)
    assert load("shop.py").name == "shop"


def test_an_interrupt_is_not_taken_for_a_failure(write: Write) -> None:
    write("raise KeyboardInterrupt\n")
    with pytest.raises(KeyboardInterrupt):
        load("shop.py")
    assert "shop" not in sys.modules


def test_two_files_of_one_name_are_two_pipelines(write: Write) -> None:
    write(ONE)
    write(ONE, "other/shop.py")
    first, second = load("shop.py"), load("other/shop.py")
    assert first is not second
    assert second.file.endswith("other/shop.py")
    assert load("other/shop.py") is second


@pytest.mark.parametrize(
    ("name", "hint"), [("pytest.py", "pytest_pipeline.py"), ("queue.py", "queue_pipeline.py")]
)
def test_a_file_does_not_take_the_name_of_another_module(write: Write, name: str, hint: str) -> None:
    write(ONE, name)
    assert (
        failure(name) == f'"{name}" has the name of a module that is in use\nhint: rename it, as to "{hint}"'
    )


def test_a_file_name_with_a_dot_could_not_be_imported(write: Write) -> None:
    write(ONE, "shop.v2.py")
    assert failure("shop.v2.py") == (
        '"shop.v2.py" cannot be imported: its name has a dot\nhint: rename it, as to "shop_v2.py"'
    )


def test_an_edit_within_the_same_second_is_seen(write: Write) -> None:
    write(ONE.replace('"shop"', '"one1"'))
    assert load("shop.py").name == "one1"
    del sys.modules["shop"]
    write(ONE.replace('"shop"', '"two2"'))
    assert load("shop.py").name == "two2"


def test_a_module_that_is_missing_is_named_with_what_to_do(write: Callable[..., Path]) -> None:
    with pytest.raises(PipelineError, match="cannot load") as told:
        load(write("import nowhere_to_be_found\n"))
    assert 'install what has "nowhere_to_be_found"' in str(told.value.hint)

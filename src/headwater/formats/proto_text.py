"""Protobuf schemas that a registry gives as text, compiled as Protobuf's own compiler does.

Most registries give a file's descriptor, which needs no compiler. Invariant: a text that does not compile is
told with what the compiler says; nothing is written outside of a directory that is removed at once.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path, PurePosixPath

from google.protobuf import descriptor_pb2

from headwater.errors import LogRefused
from headwater.formats.writer_schema import WriterSchema

_SECONDS = 60


def compiled(schema: WriterSchema, name: str) -> descriptor_pb2.FileDescriptorProto:
    """Return the descriptor of a schema's file; those that it refers to have to be text as well."""
    if find_spec("grpc_tools") is None:
        raise LogRefused(
            "the schema registry gives a Protobuf schema as text, and no compiler is installed",
            hint="run `pip install 'headwater[formats]'`",
        )
    with tempfile.TemporaryDirectory(prefix="headwater-proto-") as made:
        directory = Path(made)
        _write(schema, name, directory)
        return _descriptor(directory, name)


def _write(schema: WriterSchema, name: str, directory: Path) -> None:
    """Write a schema and those that it refers to, each under the name by which it is imported."""
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts:
        raise ValueError(f'a schema cannot be called "{name}"')
    file = directory / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(schema.text)
    for reference in schema.references:
        _write(reference.schema, reference.name, directory)


def _descriptor(directory: Path, name: str) -> descriptor_pb2.FileDescriptorProto:
    # In a process of its own, for the compiler writes what is wrong to the standard error of the process.
    program = "import sys; from grpc_tools import protoc; from importlib.resources import files; "
    program += "known = '-I' + str(files('grpc_tools') / '_proto'); "
    program += "sys.exit(protoc.main(['protoc', *sys.argv[1:], known]))"
    result = directory / "headwater.descriptors"
    arguments = [f"-I{directory}", f"--descriptor_set_out={result}", name]
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments], capture_output=True, text=True, timeout=_SECONDS
    )
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if ".proto:" in line] or ["it does not compile"]
        raise ValueError(lines[0])
    found = descriptor_pb2.FileDescriptorSet.FromString(result.read_bytes())
    return next(file for file in found.file if file.name == name)

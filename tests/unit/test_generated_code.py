"""The generated code that is committed is what the .proto files beside it generate, with protobuf's own types alone."""

import subprocess
import sys
from pathlib import Path

PROTO = Path(__file__).parents[2] / "proto"
PACKAGE = Path("clepsydra") / "v1"
GENERATED = ("*_pb2.py", "*_pb2.pyi", "*_pb2_grpc.py")


def test_the_committed_code_is_what_make_proto_generates(tmp_path: Path) -> None:
    _generate(tmp_path)
    generated, committed = _generated_files(tmp_path), _generated_files(PROTO)
    assert generated.keys() == committed.keys()
    differing = sorted(name for name in generated if generated[name] != committed[name])
    assert not differing, f"{', '.join(differing)} is not what its .proto file generates: run `make proto`"


def test_every_proto_file_has_its_generated_code_beside_it() -> None:
    stems = {path.stem for path in (PROTO / PACKAGE).glob("*.proto")}
    assert len(stems) > 0
    assert set(_generated_files(PROTO)) == {
        f"{stem}_pb2{ending}" for stem in stems for ending in (".py", ".pyi", "_grpc.py")
    }


def test_the_proto_files_import_only_each_other_and_protobufs_own_types() -> None:
    """Clients in other languages have nothing else: everything else would have to come with these files."""
    imports = {
        line.split('"')[1]
        for path in (PROTO / PACKAGE).glob("*.proto")
        for line in path.read_text().splitlines()
        if line.startswith("import ")
    }
    assert "google/protobuf/timestamp.proto" in imports
    assert {
        name for name in imports if not (PROTO / name).is_file() and not name.startswith("google/protobuf/")
    } == set()


def _generate(folder: Path) -> None:
    """The same arguments as in the Makefile, but for where the code goes."""
    subprocess.run(
        [
            sys.executable,
            "-m",
            "grpc_tools.protoc",
            f"-I{PROTO}",
            f"--python_out={folder}",
            f"--pyi_out={folder}",
            f"--grpc_python_out={folder}",
            *sorted(map(str, (PROTO / PACKAGE).glob("*.proto"))),
        ],
        check=True,
    )


def _generated_files(root: Path) -> dict[str, str]:
    return {path.name: path.read_text() for pattern in GENERATED for path in (root / PACKAGE).glob(pattern)}

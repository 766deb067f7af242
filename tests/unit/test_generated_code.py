"""The generated code that is committed is what the .proto files beside it generate."""

import subprocess
import sys
from importlib.util import find_spec
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


def _generate(folder: Path) -> None:
    """The same arguments as in the Makefile, but for where the code goes."""
    google_rpc = find_spec("google.rpc")
    assert google_rpc is not None
    assert google_rpc.submodule_search_locations is not None
    includes = Path(next(iter(google_rpc.submodule_search_locations))).parents[1]
    subprocess.run(
        [
            sys.executable,
            "-m",
            "grpc_tools.protoc",
            f"-I{PROTO}",
            f"--python_out={folder}",
            f"--pyi_out={folder}",
            f"--grpc_python_out={folder}",
            f"-I{includes}",
            *sorted(map(str, (PROTO / PACKAGE).glob("*.proto"))),
        ],
        check=True,
    )


def _generated_files(root: Path) -> dict[str, str]:
    return {path.name: path.read_text() for pattern in GENERATED for path in (root / PACKAGE).glob(pattern)}

"""Wrong input: one sentence that says what to do, and the documented exit code. No server is needed."""

import shlex
from pathlib import Path

import pytest

from clepsydra.tools.fields.types import NAME, TEXT
from clepsydra.tools.spec_flags.table import FLAGS
from tests.end_to_end.conftest import Command

_FLAGS_WITH_SYNTAX = [flag.name for flag in FLAGS if flag.type not in (NAME, TEXT) and flag.type.parameter is not None]

# No scheduler listens there: a call ends with exit code 5.
_NOBODY = ("--server", "127.0.0.1:1")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ("nope", "No such command 'nope'"),
        ("--nope", "No such option '--nope'"),
        ("get", "Missing argument 'ID'"),
        ("get one two", "Got unexpected extra argument (two)"),
        ("add x", "say what the action does: --http URL, --handler NAME or --log LINE"),
        ("add x --log a --http b", "--http and --log exclude each other"),
        ("add x --log a --handler b", "--handler and --log exclude each other"),
        ("add x --log a --in 5s --at 2027-01-01T00:00:00Z", "--in and --at exclude each other"),
        ("add x --log a --drift", "--drift needs --every: give that too"),
        ("add x --log a --until 2027-01-01T00:00:00Z", "--until needs --every"),
        ("add x --log a --max-runs 1", "--max-runs needs --every"),
        ("add x --log a --method GET", "--method needs --http"),
        ("add x --log a --header a:b", "--header needs --http"),
        ("add x --http http://a --payload a", "--payload needs --handler"),
        ("add x --http http://a --content-type a/b", "--content-type needs --handler"),
        ("add x --log a --in 5", "'5' is not a duration: write it like 500ms"),
        ("add x --log a --in 5m5h", "'5m5h' is not a duration"),
        ("add x --log a --in=-5s", "'-5s' is not a duration"),
        ("add x --log a --in 9999999d", "'9999999d' is longer than a thousand years"),
        ("add x --log a --at tomorrow", "'tomorrow' is not a time: write it like 2027-01-01T07:30:00Z"),
        ("add x --log a --at 2027-01-01T07:30:00", "has no offset: add Z for UTC"),
        ("add x --log a --label team", "'team' is not a name and a value with '=' between: write it like "),
        ("add x --http http://a --header Host", "'Host' is not a name and a value with ':' between"),
        ("add x --http http://a --body @missing", "the file 'missing' cannot be read (No such file or directory)"),
        ("add x --http http://a --body @.", "the file '.' cannot be read (Is a directory)"),
        ("add x --log a --every 1s --max-runs many", "'many' is not a valid integer"),
        ("add x --log a --every 1s --max-runs 99999999999999999999", "the API cannot hold this value"),
        ("add x --log a --max-attempts -1", "-1 is not in the range"),
        ("add x --log a --max-attempts 4294967296", "the API cannot hold this value"),
        ("add x --log a --retry-jitter much", "'much' is not a valid float"),
        ("add '' --log a", "Invalid value for '[ID]': it is empty; is a variable of the shell not set?"),
        ("get ''", "Invalid value for 'ID': it is empty; is a variable of the shell not set?"),
        ("update '' --log a", "Invalid value for 'ID': it is empty; is a variable of the shell not set?"),
        ("rm x ''", "Invalid value for 'ID...': it is empty; is a variable of the shell not set?"),
        ("pause ''", "Invalid value for 'ID...': it is empty; is a variable of the shell not set?"),
        ("resume ''", "Invalid value for 'ID...': it is empty; is a variable of the shell not set?"),
        ("run ''", "Invalid value for 'ID...': it is empty; is a variable of the shell not set?"),
        ("add x --handler ''", "Invalid value for '--handler': it is empty; is a variable of the shell not set?"),
        ("add x --http ''", "Invalid value for '--http': it is empty; is a variable of the shell not set?"),
        ("add x --http http://a --method ''", "Invalid value for '--method': it is empty"),
        ("add x --handler a --content-type ''", "Invalid value for '--content-type': it is empty"),
        ("add x --log a --label ''", "Invalid value for '--label': '' is not a name and a value"),
        ("add x --log a --request-id ''", "Invalid value for '--request-id': it is empty"),
        ("list --page-token ''", "Invalid value for '--page-token': it is empty"),
        ("rm x --etag ''", "Invalid value for '--etag': it is empty"),
        ("update x --log a --etag ''", "Invalid value for '--etag': it is empty"),
        ("update x --clear ''", "Invalid value for '--clear': it is empty"),
        ("list --config ''", "Invalid value for '--config': it is empty"),
        ("import ''", "Invalid value for 'FILE': it is empty"),
        ("backup ''", "Invalid value for 'FILE': it is empty"),
        ("export ''", "Invalid value for '[FILE]': it is empty"),
        ("add x --log a --label a=1 --label b=2 --label a=3", "--label a is given twice: a label has one value"),
        ("add x --handler a --payload @/dev/zero", "Invalid value for '--payload': it is longer than 262,144 bytes"),
        ("add x --http http://a --body @/dev/zero", "Invalid value for '--body': it is longer than 262,144 bytes"),
        ("add --from-file /dev/zero", "/dev/zero:1: the line is longer than any action: not a file of actions"),
        ("import /dev/zero", "/dev/zero:1: the line is longer than any action: not a file of actions"),
        ("update x --from-file /dev/zero", "the file '/dev/zero' is longer than any action"),
        ("add x --from-file a", "a file of actions has everything: leave ID out, or --from-file"),
        ("add --log a --from-file a", "a file of actions has everything: leave --log out, or --from-file"),
        ("add --from-file missing.jsonl", "the file 'missing.jsonl' cannot be read: No such file or directory"),
        ("update x", "say what to change"),
        ("update x --once --every 1s", "--once and the flags of periodic actions exclude each other"),
        ("update x --log a --clear spec.log.message", "--clear spec.log.message contradicts the flag that sets it"),
        ("update x --from-file a --log b", "the file has the whole action: leave --log out, or --from-file"),
        ("update x --from-file a --once", "the file has the whole action: leave --once out, or --from-file"),
        ("update x --from-file missing.json", "the file 'missing.json' cannot be read"),
        ("rm a b --etag x", "--etag belongs to one action: name only one"),
        ("rm a b --request-id x", "--request-id belongs to one action: name only one"),
        ("list --limit 0", "0 is not in the range"),
        ("locks --watch 0", "0.0 is not in the range"),
        ("locks --watch often", "'often' is not a valid float"),
        ("audit --limit -1", "-1 is not in the range"),
        ("init --shards 0", "0 is not in the range"),
        ("init --shards many", "'many' is not a valid integer"),
        ("get x --server nowhere", "server ('nowhere') must be host:port"),
        ("get x --server a:99999", "server ('a:99999') must be host:port"),
        ("scheduler --listen 7070", "listen ('7070') must be host:port"),
        ("worker --log-level loud", "log.level should be 'debug', 'info', 'warning' or 'error', not \"loud\""),
        ("worker --log-format xml", "log.format should be 'auto', 'text' or 'json', not \"xml\""),
        ("worker --set worker.loops", "'worker.loops' is not KEY=VALUE"),
        ("worker --set worker.lops=1", "there is no setting 'worker.lops'; did you mean worker.loops?"),
        ("worker --set worker.loops=many", 'worker.loops should be a valid integer, not "many"'),
        ("worker --config missing.toml", "the configuration file missing.toml cannot be read"),
        ("worker --handlers missing_module", 'there is no module "missing_module"'),
        ("worker --handlers not.a-name", '"not.a-name" is not the name of a module'),
    ],
)
def test_wrong_usage(command: Command, arguments: str, sentence: str) -> None:
    wrong = command(*shlex.split(arguments))
    assert wrong.code == 2
    assert wrong.out == ""
    assert sentence in wrong.err
    _is_one_sentence(wrong.err)


@pytest.mark.parametrize("name", _FLAGS_WITH_SYNTAX)
def test_every_flag_with_a_syntax_refuses_other_text(command: Command, name: str) -> None:
    wrong = command("add", "x", "--log", "a", name, "@missing")
    assert wrong.code == 2
    assert f"Invalid value for '{name}'" in wrong.err
    _is_one_sentence(wrong.err)


def test_a_module_of_handlers_that_fails(command: Command, tmp_path: Path) -> None:
    (tmp_path / "broken_handlers.py").write_text("1 / 0\n")
    (tmp_path / "empty_handlers.py").write_text("")
    broken = command("worker", "--handlers", "broken_handlers")
    assert (broken.code, "ZeroDivisionError: division by zero" in broken.err) == (2, True)
    empty = command("worker", "--handlers", "empty_handlers")
    assert (empty.code, 'module "empty_handlers" registers no handler' in empty.err) == (2, True)


@pytest.mark.parametrize(
    "arguments",
    ["add x --log a", "get x", "list", "update x --log a", "rm x", "pause x", "resume x", "run x", "add --from-file f"],
)
def test_no_scheduler(command: Command, tmp_path: Path, arguments: str) -> None:
    (tmp_path / "f").write_text('{"spec": {"log": {}}}\n')
    nobody = command(*arguments.split(), *_NOBODY)
    assert nobody.code == 5
    assert "no scheduler answers at 127.0.0.1:1: start one with `clepsydra up`" in nobody.err
    _is_one_sentence(nobody.err)


def _is_one_sentence(err: str) -> None:
    assert err.startswith("clepsydra: ")
    assert err.count("\n") == 1
    assert "Traceback" not in err

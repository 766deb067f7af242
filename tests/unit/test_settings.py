"""The settings loader: origins, precedence, and the sentences of its refusals."""

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from clepsydra.core.lifecycle import FASTPATH_VARIABLE
from clepsydra.tools.exits import Exit, Failure
from clepsydra.tools.settings.loader import GivenValue, load_settings
from clepsydra.tools.settings.model import SETTINGS, Setting, Settings
from clepsydra.tools.settings.toml import as_toml

LEASE = ("worker", "lease_ms")


@pytest.fixture
def config(tmp_path: Path) -> "ConfigFile":
    return ConfigFile(tmp_path / "clepsydra.toml")


class ConfigFile:
    def __init__(self, path: Path) -> None:
        self.name = str(path)
        self._path = path

    def holding(self, text: str | bytes) -> str:
        self._path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return self.name


def _refusal(config: str | None = None, **variables: str) -> str:
    with pytest.raises(Failure) as refused:
        load_settings(config, variables, {})
    assert refused.value.code is Exit.USAGE
    return str(refused.value)


def test_the_defaults_need_no_origin() -> None:
    settings, origins = load_settings(None, {}, {})
    assert settings == Settings()
    assert settings.store == "sqlite:///clepsydra.db"
    assert settings.scheduler.listen == settings.server == "127.0.0.1:7070"
    assert origins == {}


def test_flags_beat_the_environment_which_beats_the_file(config: ConfigFile) -> None:
    name = config.holding("[worker]\nlease_ms = 11000\ngrace_ms = 1001\nloops = 1\n")
    environment = {"CLEPSYDRA_WORKER_LEASE_MS": "12000", "CLEPSYDRA_WORKER_GRACE_MS": "1002", "HOME": "/"}
    settings, origins = load_settings(name, environment, {LEASE: GivenValue(13000, "--set")})
    assert (settings.worker.lease_ms, settings.worker.grace_ms, settings.worker.loops) == (13000, 1002, 1)
    assert origins == {
        LEASE: "--set",
        ("worker", "grace_ms"): "CLEPSYDRA_WORKER_GRACE_MS",
        ("worker", "loops"): name,
    }


def test_the_file_may_be_named_by_the_environment(config: ConfigFile) -> None:
    name = config.holding('store = "sqlite:///other.db"')
    assert load_settings(None, {"CLEPSYDRA_CONFIG": name}, {}).settings.store == "sqlite:///other.db"
    # A flag with another file has precedence.
    assert _refusal("missing.toml", CLEPSYDRA_CONFIG=name).startswith("the configuration file missing.toml ")


@pytest.mark.parametrize("setting", SETTINGS.values(), ids=lambda setting: setting.key)
def test_every_setting_can_be_given_in_the_environment_and_in_a_file(setting: Setting, config: ConfigFile) -> None:
    value = _another(setting)
    others = {"CLEPSYDRA_SERVER_TLS": "true"} if setting.key == "server_ca_file" else {}
    if setting.key.startswith("scheduler.tls_"):
        others = {"CLEPSYDRA_SCHEDULER_TLS_CERT_FILE": "x", "CLEPSYDRA_SCHEDULER_TLS_KEY_FILE": "x"}
    text = str(value).lower() if isinstance(value, bool) else str(value)
    from_environment = load_settings(None, {**others, setting.variable: text}, {}).settings
    assert _value(from_environment, setting) == value

    others.pop(setting.variable, None)
    *section, name = setting.path
    written = f"{name} = {text if isinstance(value, int) else repr(str(value))}"
    from_file = load_settings(config.holding("".join(f"[{s}]\n" for s in section) + written), others, {}).settings
    assert _value(from_file, setting) == value


def _value(settings: Settings, setting: Setting) -> Any:
    value: Any = settings
    for step in setting.path:
        value = getattr(value, step)
    return value


# Settings whose type or default allows no "default + 1".
_OTHERS: dict[str, Any] = {
    "store": "sqlite:///a.db",
    "server": "b:1",
    "scheduler.listen": "c:2",
    "log.level": "debug",
    "log.format": "json",
    "worker.name": "w",
    "worker.handlers": "h",
}


def _another(setting: Setting) -> Any:
    if setting.key in _OTHERS:
        return _OTHERS[setting.key]
    if setting.default is None:
        return Path("x")
    return not setting.default if isinstance(setting.default, bool) else setting.default + 1


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("wroker = 1", "there is no setting 'wroker'; did you mean worker?"),
        ("[worker]\nlops = 1", "there is no setting 'worker.lops'; did you mean worker.loops?"),
        ("[worker.lease_ms]\nx = 1", 'worker.lease_ms should be a valid integer, not {"x": 1}'),
        ("[zzz]\nx = 1", "there is no setting 'zzz'; `clepsydra config` lists them all"),
        ("worker = 1", "worker is a table, not a value: write [worker] and its settings below"),
        ("[[worker]]\nloops = 1", "worker is a table, not a value: write [worker] and its settings below"),
        ("[worker]\nloops = '8'", 'worker.loops should be a valid integer, not "8"'),
        ("[worker]\nloops = 1.5", "worker.loops should be a valid integer, not 1.5"),
        ("[worker]\nloops = true", "worker.loops should be a valid integer, not true"),
        ("[worker]\nloops = 0", "worker.loops should be greater than or equal to 1, not 0"),
        ("[worker]\nloops = 9999", "worker.loops should be less than or equal to 1024, not 9999"),
        ("[worker]\nhandlers = ''", 'worker.handlers should have at least 1 character, not ""'),
        ("store = 5", "store should be a valid string, not 5"),
        ("store = 2027-01-01", "store is a date or a time, and no setting takes one: put it in quotes"),
        ("server_tls = 'yes'", 'server_tls should be a valid boolean, not "yes"'),
        ("server = 'x'", "server ('x') must be host:port, such as 127.0.0.1:7070"),
        ("[scheduler]\nlisten = 'x'", "listen ('x') must be host:port, such as 127.0.0.1:7070 or [::]:7070"),
        ("[log]\nlevel = 'loud'", "log.level should be 'debug', 'info', 'warning' or 'error', not \"loud\""),
    ],
)
def test_wrong_content_of_a_file(config: ConfigFile, text: str, sentence: str) -> None:
    assert _refusal(config.holding(text)) == f"{config.name}: {sentence}"


def test_files_that_cannot_be_read(config: ConfigFile, tmp_path: Path) -> None:
    assert _refusal("missing.toml") == "the configuration file missing.toml cannot be read: No such file or directory"
    assert _refusal(str(tmp_path)) == f"the configuration file {tmp_path} cannot be read: Is a directory"
    assert _refusal(config.holding(b"\xff")) == f"the configuration file {config.name} is not text in UTF-8"
    assert _refusal(config.holding("[worker")).startswith(f"the configuration file {config.name} is not TOML: ")
    assert _refusal(config.holding("a = 1\na = 2")).startswith(f"the configuration file {config.name} is not TOML: ")


@pytest.mark.parametrize(
    ("name", "value", "sentence"),
    [
        ("CLEPSYDRA_STOER", "x", "is not a setting of Clepsydra; did you mean CLEPSYDRA_STORE?"),
        ("CLEPSYDRA_WORKER_LEASE", "1", "is not a setting of Clepsydra; did you mean CLEPSYDRA_WORKER_LEASE_MS?"),
        ("CLEPSYDRA_CONFG", "x", "is not a setting of Clepsydra; did you mean CLEPSYDRA_CONFIG?"),
        ("CLEPSYDRA_QQQQQQ", "x", "is not a setting of Clepsydra; `clepsydra config` lists them all"),
        ("CLEPSYDRA_", "x", "is not a setting of Clepsydra; `clepsydra config` lists them all"),
        ("CLEPSYDRA_WORKER", "x", "is not a setting of Clepsydra"),
    ],
)
def test_an_unknown_variable_is_refused(name: str, value: str, sentence: str) -> None:
    assert _refusal(**{name: value}).startswith(f"the environment variable {name} {sentence}")


@pytest.mark.parametrize(
    ("name", "value", "sentence"),
    [
        ("CLEPSYDRA_WORKER_LEASE_MS", "soon", 'worker.lease_ms should be a valid integer, not "soon"'),
        ("CLEPSYDRA_WORKER_LEASE_MS", "", 'worker.lease_ms should be a valid integer, not ""'),
        ("CLEPSYDRA_WORKER_LEASE_MS", "99", 'worker.lease_ms should be greater than or equal to 100, not "99"'),
        ("CLEPSYDRA_SERVER_TLS", "perhaps", 'server_tls should be a valid boolean, not "perhaps"'),
        ("CLEPSYDRA_LOG_LEVEL", "LOUD", "log.level should be 'debug', 'info', 'warning' or 'error', not \"LOUD\""),
    ],
)
def test_a_wrong_value_in_the_environment(name: str, value: str, sentence: str) -> None:
    assert _refusal(**{name: value}) == f"{name}: {sentence}"


def test_variables_that_kubernetes_sets_are_ignored() -> None:
    links = {
        "CLEPSYDRA_PORT": "tcp://10.0.0.1:7070",
        "CLEPSYDRA_SERVICE_HOST": "10.0.0.1",
        "CLEPSYDRA_SERVICE_PORT": "7070",
        "CLEPSYDRA_SERVICE_PORT_GRPC": "7070",
        "CLEPSYDRA_PORT_7070_TCP": "tcp://10.0.0.1:7070",
        "CLEPSYDRA_PORT_7070_TCP_ADDR": "10.0.0.1",
        "CLEPSYDRA_SCHEDULER_SERVICE_HOST": "10.0.0.1",
        "CLEPSYDRA_SCHEDULER_PORT": "tcp://10.0.0.1:7070",
    }
    assert load_settings(None, links, {}).settings == Settings()
    assert _refusal(CLEPSYDRA_PORT="7070").startswith("the environment variable CLEPSYDRA_PORT is not a setting")


def test_the_variable_of_the_fast_path_is_not_a_setting() -> None:
    settings, origins = load_settings(None, {FASTPATH_VARIABLE: "off"}, {})
    assert (settings, origins) == (Settings(), {})


@pytest.mark.parametrize(
    ("variables", "sentence"),
    [
        (
            {"CLEPSYDRA_WORKER_HEARTBEAT_MS": "6000"},
            "the worker settings contradict each other (CLEPSYDRA_WORKER_HEARTBEAT_MS): heartbeat_ms (6000) must be at "
            "most half of lock_life_ms (6000), or one late heartbeat loses the lock",
        ),
        (
            {"CLEPSYDRA_WORKER_POLL_MIN_MS": "3000", "CLEPSYDRA_WORKER_POLL_MAX_MS": "2000"},
            "the worker settings contradict each other (CLEPSYDRA_WORKER_POLL_MAX_MS, CLEPSYDRA_WORKER_POLL_MIN_MS): "
            "poll_min_ms (3000) must not exceed poll_max_ms (2000)",
        ),
        (
            {"CLEPSYDRA_WORKER_LEASE_MS": "5000"},
            "the worker settings contradict each other (CLEPSYDRA_WORKER_LEASE_MS): lock_life_ms (6000) must not "
            "exceed lease_ms (5000), or the work of a dead worker is not taken up within a lease",
        ),
        (
            {"CLEPSYDRA_SCHEDULER_TLS_KEY_FILE": "x"},
            "the scheduler settings contradict each other (CLEPSYDRA_SCHEDULER_TLS_KEY_FILE): tls_cert_file and "
            "tls_key_file go together: give both, or neither",
        ),
        (
            {"CLEPSYDRA_SERVER_CA_FILE": "x"},
            "the settings contradict each other (CLEPSYDRA_SERVER_CA_FILE): server_ca_file needs "
            "server_tls: set that too, or leave server_ca_file out",
        ),
    ],
)
def test_contradictions(variables: dict[str, str], sentence: str) -> None:
    assert _refusal(**variables) == sentence


def test_all_mistakes_are_reported_together(config: ConfigFile) -> None:
    refused = _refusal(config.holding("[worker]\nloops = 0\npage = 0\n"))
    assert [line.partition(": ")[2] for line in refused.splitlines()] == [
        "worker.loops should be greater than or equal to 1, not 0",
        "worker.page should be greater than or equal to 1, not 0",
    ]


def test_the_output_of_config_can_be_read_back(config: ConfigFile) -> None:
    given = {"CLEPSYDRA_WORKER_NAME": 'w "1" \x7f \u2603', "CLEPSYDRA_STORE": "sqlite:///a b.db"}
    loaded = load_settings(None, given, {})
    printed = as_toml(loaded)
    assert 'store = "sqlite:///a b.db"  # CLEPSYDRA_STORE' in printed
    assert "lease_ms = 7500  # default" in printed
    assert tomllib.loads(printed)
    assert load_settings(config.holding(printed), {}, {}).settings == loaded.settings


def test_the_documentation_lists_every_setting_as_it_is() -> None:
    documentation = (Path(__file__).parents[2] / "docs" / "configuration.md").read_text()
    rows = {match[1]: match[0] for match in re.finditer(r"^\| `([a-z_.]+)` \|.*$", documentation, re.MULTILINE)}
    expected = {setting.key: _documented(setting) for setting in SETTINGS.values()}
    assert rows == expected


def _documented(setting: Setting) -> str:
    default = "" if setting.default is None else f"`{str(setting.default).lower()}`"
    return f"| `{setting.key}` | `{setting.variable}` | {default} | {setting.description} |"

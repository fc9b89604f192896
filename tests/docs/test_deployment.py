"""The unit and the image: what they name is there, and what they set is taken."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from broker.config import Settings
from gateways.commands.serving import serve
from gateways.configure import load
from gateways.metrics import Metrics
from gateways.web import metrics_app
from tests.sizes import ROOT
from tests.support.asgi import asked
from tests.support.broker_fake import FakeBroker

UNIT = ROOT / "docs" / "systemd" / "turret.service"
IMAGE = ROOT / "docs" / "container" / "Containerfile"
ANALYZE = shutil.which("systemd-analyze")


def unit() -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for line in UNIT.read_text().splitlines():
        name, equals, value = line.partition("=")
        if equals and not line.startswith("#"):
            found.setdefault(name, []).append(value)
    return found


def instructions() -> list[tuple[str, str]]:
    lines = [line for line in IMAGE.read_text().splitlines() if line and not line.startswith("#")]
    return [(line.partition(" ")[0], line.partition(" ")[2]) for line in lines]


@pytest.mark.requirement("observe.deployment")
def test_the_unit_is_told_of_what_the_broker_tells() -> None:
    set_to = unit()
    assert set_to["Type"] == ["notify"]
    assert int(set_to["WatchdogSec"][0]) >= 20, "the loop says every half of it that it turns"
    assert int(set_to["TimeoutStopSec"][0]) > 10, "a broker takes ten seconds to stop"
    options = {option for each in serve.params for option in each.opts}
    assert set(re.findall(r"--[a-z-]+", set_to["ExecStart"][0])) <= options
    names = [each.partition("=")[0] for each in set_to["Environment"]]
    names += re.findall(r"^#Environment=(\w+)=", UNIT.read_text(), re.MULTILINE)
    load(None, {name: {"TURRET_LOG_FORMAT": "json"}.get(name, "/x") for name in names})


@pytest.mark.requirement("observe.deployment")
@pytest.mark.skipif(ANALYZE is None, reason="there is no systemd-analyze here")
def test_systemd_takes_the_unit_and_finds_little_to_say_about_it(tmp_path: Path) -> None:
    assert ANALYZE is not None
    file = tmp_path / "turret.service"
    file.write_text(UNIT.read_text().replace("/opt/turret/bin/turret", "/bin/true"))
    verified = subprocess.run([ANALYZE, "verify", file], capture_output=True, text=True, check=False)
    assert (verified.returncode, verified.stderr) == (0, "")
    command = [ANALYZE, "security", "--offline=true", "--threshold=15", file]  # in tenths
    judged = subprocess.run(command, capture_output=True, text=True, check=False)
    if "unrecognized option" in judged.stderr:
        pytest.skip("this systemd-analyze is too old to look at a file")
    assert judged.returncode == 0, judged.stdout[-2000:]


@pytest.mark.requirement("observe.deployment")
def test_the_image_names_no_registry_copies_what_there_is_and_runs_as_nobody_special() -> None:
    steps = instructions()
    for base in [value.partition(" ")[0] for name, value in steps if name == "FROM"]:
        assert re.fullmatch(r"python:[0-9.]+-slim", base)
    for source in [value for name, value in steps if name == "COPY" and not value.startswith("--from")]:
        *sources, _ = source.split()
        for each in sources:
            assert (ROOT / each).exists(), each
    user = [value for name, value in steps if name == "USER"][-1]
    made = next(value for name, value in steps if name == "RUN" and "useradd" in value)
    assert f"--uid {user} " in made
    assert user != "0"
    assert [json.loads(value) for name, value in steps if name in ("ENTRYPOINT", "CMD")] == [
        ["turret"],
        ["serve"],
    ]


@pytest.mark.requirement("observe.deployment")
async def test_the_images_settings_are_taken_and_its_health_check_asks_where_health_is() -> None:
    steps = instructions()
    environment = dict(value.split("=", 1) for name, value in steps if name == "ENV" and "TURRET_" in value)
    serving = load(None, environment).serve
    assert serving.data in [value for name, value in steps if name == "VOLUME"]
    port = str(serving.metrics_bind).rpartition(":")[2]
    ports = next(value for name, value in steps if name == "EXPOSE").split()
    assert {port, *(bind.rpartition(":")[2] for bind in (serving.bind, serving.dealing_bind))} == set(ports)
    check = next(value for name, value in steps if name == "HEALTHCHECK")
    found = re.search(r"http://127\.0\.0\.1:(\d+)(/\w+)", check)
    assert found is not None
    assert found[1] == port
    broker = FakeBroker(Settings())
    answer = await asked(metrics_app(broker, Metrics(broker)), found[2])  # type: ignore[arg-type]
    assert answer.status == 200


@pytest.mark.requirement("observe.deployment")
def test_what_the_page_runs_is_taken() -> None:
    page = (ROOT / "docs" / "how-to" / "run-in-a-container.md").read_text()
    environment = dict(re.findall(r"-e (TURRET_\w+)=(\S+)", page))
    assert load(None, environment).transcripts_chosen

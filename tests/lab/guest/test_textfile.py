"""The example units under the real systemd: a snapshot for node_exporter's textfile collector."""

from __future__ import annotations

import pwd
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.lab.host import ROOT
from tests.peers.waiting import eventually

pytestmark = pytest.mark.only_on("6.12")

UNITS = Path("/run/systemd/system")
NAMES = ("cgotel-textfile.service", "cgotel-textfile.timer")
FOLDER = Path("/var/lib/prometheus/node-exporter")
LIMIT_S = 60


def systemctl(*arguments: str) -> None:
    subprocess.run(["systemctl", *arguments], check=True)


@pytest.fixture
def units() -> Iterator[None]:
    """The units as they stand, but for where the lab has put cgotel."""
    for name in NAMES:
        shutil.copy(ROOT / "examples" / name, UNITS)
    place = UNITS / f"{NAMES[0]}.d/lab.conf"
    place.parent.mkdir()
    place.write_text("[Service]\nEnvironment=PYTHONPATH=/project/site\n")
    Path("/opt/cgotel/bin").mkdir(parents=True)
    Path("/opt/cgotel/bin/cgotel").symlink_to("/project/site/bin/cgotel")
    subprocess.run(["useradd", "--system", "prometheus"], check=True)
    FOLDER.mkdir(parents=True)
    shutil.chown(FOLDER, "prometheus")
    systemctl("daemon-reload")
    yield
    systemctl("stop", *NAMES)


def test_the_timer_has_the_text_written(units: None) -> None:
    systemctl("start", "cgotel-textfile.timer")
    file = FOLDER / "cgotel.prom"
    eventually(file.exists, LIMIT_S, "the timer starts the service, which writes the file")
    text = file.read_text()
    assert re.search(
        r'^cgroup_memory_usage_bytes\{.*systemd_unit_name="lab\.service".*\} \d+$', text, re.MULTILINE
    )
    assert file.stat().st_uid == pwd.getpwnam("prometheus").pw_uid
    assert file.stat().st_mode & 0o004, "node_exporter, another user, may read it"

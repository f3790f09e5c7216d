"""What the documents promise is so: generated pages are fresh, examples run, every key is named."""

import re
import subprocess
import sys
import tomllib
import types
from pathlib import Path

import msgspec
import pytest

from cgotel import plugins, testing
from cgotel.assemble import assemble
from cgotel.cli import COMMANDS
from cgotel.config import AgentSettings, PluginSettings, RestartSettings
from cgotel.contract import Bookmark, Timeline
from cgotel.evidence import RuntimeAction, Workload
from cgotel.kernel.roots import Roots
from cgotel.restarts.case import Case, Exit
from cgotel.restarts.classify import classify
from cgotel.restarts.rules import RULES

ROOT = Path(__file__).parents[2]


def test_the_page_of_metrics_is_fresh():
    subprocess.run([sys.executable, "docs/generate.py", "--check"], check=True, cwd=ROOT)


def test_the_example_configuration_is_the_defaults():
    path = str(ROOT / "examples/cgotel.toml")
    with_file = {key: value for key, value, _ in assemble(path, {}).configuration.origins()}
    without = {key: value for key, value, _ in assemble(None, {}).configuration.origins()}
    assert with_file == without


def test_the_example_configuration_names_every_key():
    text = (ROOT / "examples/cgotel.toml").read_text()
    tables = tomllib.loads(re.sub(r"^# (\w+ = )", r"\1", text, flags=re.MULTILINE))
    registry = plugins.load(environ={plugins.RESCUE: "none"})
    sections = {
        "collectors": registry.collectors,
        "watchers": registry.watchers,
        "outputs": registry.outputs,
    }
    for section, known in sections.items():
        for name, kind in known.items():
            keys = {field.encode_name for field in msgspec.structs.fields(kind.Config)}
            assert set(tables[section][name]) == keys, f"[{section}.{name}]"
    for name, table in (("agent", AgentSettings), ("restarts", RestartSettings), ("plugins", PluginSettings)):
        assert set(tables[name]) == {f.encode_name for f in msgspec.structs.fields(table)}, f"[{name}]"


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_is_in_the_readme(command):
    assert f"cgotel {command}" in (ROOT / "README.md").read_text()


def test_the_library_example_runs():
    if Roots.discover().cgroup is None:
        pytest.fail("no cgroup v2 here: the suite needs a kernel that has it mounted")
    done = subprocess.run(
        [sys.executable, "examples/library.py", "/"], check=True, capture_output=True, text=True, cwd=ROOT
    )
    assert re.search(r"^memory limit in force: \d+ bytes, set by host$", done.stdout, re.MULTILINE)


def test_the_library_example_says_what_it_cannot_find():
    done = subprocess.run(
        [sys.executable, "examples/library.py", "nonesuch.service"],
        check=False,
        capture_output=True,
        text=True,
        cwd=ROOT,
    )
    assert done.returncode == 1
    assert done.stderr.strip() == "no cgroups are called 'nonesuch.service'"


def test_the_collector_in_contributing_runs_as_it_stands():
    text = (ROOT / "CONTRIBUTING.md").read_text()
    [source] = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    module = types.ModuleType("cpu_time")
    exec(compile(source, "CONTRIBUTING.md", "exec"), vars(module))
    [kind] = module.cgotel_collectors()
    before = _cpu_ticks()
    [reading] = testing.sweep(kind(kind.Config(), Roots.discover()))
    after = _cpu_ticks()
    assert reading.entity.kind == "host"
    for mode, least, most in zip(module.MODES, before, after, strict=False):
        seconds = reading.metric("system.cpu.time", cpu_mode=mode)
        if mode != "iowait":  # which may fall: proc_stat(5)
            assert least / 100 <= seconds <= most / 100


def test_the_watcher_and_the_rule_in_the_docs_run_as_they_stand(tmp_path):
    text = (ROOT / "docs/restarts/plugins.md").read_text()
    [source] = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    module = types.ModuleType("evictions")
    exec(compile(source, "plugins.md", "exec"), vars(module))
    [kind], [rule] = module.cgotel_watchers(), module.cgotel_rules()
    file = tmp_path / "evictions"
    file.write_text("4242 trainer\n")
    watcher = kind(kind.Config(file=str(file)), Roots.discover(), Timeline(), Bookmark())
    with testing.watched(watcher) as heard:
        told = heard.first(RuntimeAction)
    job = Workload(runtime="docker", id="a", name="trainer", pid=4242)
    case = Case(exit=Exit(workload=job, ended_ns=told.time_ns, code=143), evidence=(told,))
    verdict = classify(case, [*RULES, rule])
    assert (verdict.cause, verdict.by) == ("requested_stop", "scheduler")


def _cpu_ticks():
    return [int(word) for word in Path("/proc/stat").read_text().split("\n")[0].split()[1:]]

"""What telegraf/ says is what is so: the README's configuration, the sample, the names."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.unit.outputs.parsed_lines import parsed

ROOT = Path(__file__).parents[2]
README = (ROOT / "telegraf/README.md").read_text("utf-8")
PAGE = (ROOT / "docs/telegraf.md").read_text("utf-8")
SAMPLE = parsed((ROOT / "telegraf/sample.influx").read_text("utf-8"))


def test_the_readme_shows_the_configuration_itself():
    assert (ROOT / "telegraf/cgotel.conf").read_text("utf-8") in README


def test_the_sample_is_one_batch_of_all_that_comes_with_a_sweep():
    assert len({line.time_ns for line in SAMPLE}) == 1
    assert {line.measurement for line in SAMPLE} == {
        "cgotel_cgroup",
        "cgotel_host",
        "cgotel_source",
        "cgotel_agent",
    }


def test_the_readmes_example_is_from_the_sample():
    block = re.findall(r"```text\n(.*?)```", README, re.DOTALL)[-1]
    for example in parsed(block):
        assert any(
            example.tags == line.tags and example.fields.items() <= line.fields.items() for line in SAMPLE
        )


@pytest.mark.parametrize(
    "field",
    sorted(
        {
            name
            for name in re.findall(r"`((?:memory|cpu|pid|paging)\.[\w.]+)`", PAGE)
            if name.endswith(("effective_limit", "headroom", "owner", "usage", "working_set", "usage_usec"))
        }
        # only where a memory.high or a swap limit is set
        - {"paging.effective_limit", "memory.high_headroom"}
    ),
)
def test_a_field_that_the_page_names_is_in_the_sample(field):
    assert any(field in line.fields for line in SAMPLE)

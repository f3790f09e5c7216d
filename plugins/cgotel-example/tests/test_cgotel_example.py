"""The plugin's own test, with what cgotel gives to plugin authors."""

from cgotel import Roots
from cgotel.testing import sweep, tree
from cgotel_example import EntropyCollector


def test_entropy_is_read_as_it_stands(tmp_path):
    tree({"sys/kernel/random": {"entropy_avail": "256\n"}}, into=tmp_path)
    collector = EntropyCollector(EntropyCollector.Config(), Roots(proc=str(tmp_path)))
    [reading] = sweep(collector)
    assert reading.metric("system.linux.entropy.available") == 256

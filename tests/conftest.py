"""What all tests share."""

from itertools import count

import pytest
from hypothesis import settings

settings.register_profile("cgotel", deadline=None)  # machines that test are shared; nothing is timed
settings.load_profile("cgotel")


_NUMBERS = count()


@pytest.fixture(autouse=True)
def _state_of_its_own(monkeypatch, tmp_path_factory):
    """No test keeps its verdicts where an agent of this machine would."""
    monkeypatch.setenv("STATE_DIRECTORY", str(tmp_path_factory.getbasetemp() / f"state-{next(_NUMBERS)}"))

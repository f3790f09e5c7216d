"""Evidence of any size and text is made fit to be kept, and what is none is refused."""

from __future__ import annotations

from cgotel.evidence import RunEnded, Workload
from cgotel.restarts.intake import taken_in


def test_what_is_sound_stays_as_it_is() -> None:
    piece = RunEnded(source="docker", time_ns=1, workload=Workload(runtime="docker", id="é\x00\n"), code=-1)
    assert taken_in(piece) == piece


def test_an_end_is_not_lost_however_long_all_of_its_texts_are() -> None:
    text = "\U0001f600" * 100_000
    workload = Workload(
        runtime="docker", id=text, name=text, cgroup=text, image=text, image_id=text, pod=text, namespace=text
    )
    sound = taken_in(RunEnded(source="docker", time_ns=1, workload=workload, cgroup=text, error=text))
    assert isinstance(sound, RunEnded)
    assert sound.workload.name == sound.error == "\U0001f600" * 1024

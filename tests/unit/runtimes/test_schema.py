"""Messages made of tables, against bytes that protoc's own classes wrote."""

import pytest
from google.protobuf.any_pb2 import Any as RealAny
from google.protobuf.timestamp_pb2 import Timestamp as RealTimestamp

from cgotel.runtimes import containerd_api, cri_api
from cgotel.runtimes.schema import ENTRY, mapping, messages, text

TABLES = {
    "Any": containerd_api.TABLES["Any"],
    "Timestamp": containerd_api.TABLES["Timestamp"],
    "Entry": ENTRY,
    "Some": {"name": (1, "text"), "labels": (8, "[]Entry")},
    "Less": {"name": (1, "text")},
}


@pytest.fixture(scope="module")
def made():
    return messages("tests.schema", TABLES)


def test_real_messages_are_read_and_written(made) -> None:
    stamp = made["Timestamp"].FromString(RealTimestamp(seconds=1796140365, nanos=7).SerializeToString())
    assert (stamp.seconds, stamp.nanos) == (1796140365, 7)
    real = RealAny(type_url="containerd.events.TaskExit", value=b"\x00\xff")
    assert made["Any"].FromString(real.SerializeToString()).SerializeToString() == real.SerializeToString()


def test_a_map_is_entries(made) -> None:
    # protoc 3.21: message Some { string name = 1; map<string, string> labels = 8; }
    some = made["Some"].FromString(b"\x0a\x01a\x42\x06\x0a\x01k\x12\x01v\x42\x03\x0a\x01e")
    assert (text(some.name), mapping(some.labels)) == ("a", {"k": "v", "e": ""})


def test_fields_that_no_table_names_are_skipped(made) -> None:
    more = made["Some"](name=b"web", labels=[made["Entry"](key=b"k", value=b"v")]).SerializeToString()
    assert text(made["Less"].FromString(more).name) == "web"


def test_a_byte_that_is_no_text_spoils_itself_only(made) -> None:
    assert text(made["Less"].FromString(b"\x0a\x03a\xffb").name) == "a\\xffb"


def test_one_process_may_make_the_same_messages_again() -> None:
    first, second = messages("tests.again", TABLES), messages("tests.again", TABLES)
    assert second["Less"].FromString(first["Less"](name=b"x").SerializeToString()).name == b"x"


@pytest.mark.parametrize("api", [containerd_api, cri_api])
def test_the_tables_of_the_real_apis_are_whole(api) -> None:
    assert messages("tests.whole", api.TABLES).keys() == api.TABLES.keys()

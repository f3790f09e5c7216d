import os

import pytest

from cgotel.identity.paths import split, text, unescaped


@pytest.mark.parametrize(
    ("path", "names"),
    [("/", []), ("", []), ("/a", ["a"]), ("/a/b.slice", ["a", "b.slice"]), ("a//b/", ["a", "b"])],
)
def test_split(path: str, names: list[str]) -> None:
    assert split(path) == names


@pytest.mark.parametrize(
    ("name", "valid"),
    [
        (os.fsdecode(b"caf\xc3\xa9"), "café"),
        (os.fsdecode(b"caf\xe9"), "caf\\xe9"),
        ("\udfff", "\\udfff"),
        (r"a\x2db", r"a\x2db"),
    ],
)
def test_text(name: str, valid: str) -> None:
    assert text(name) == valid
    assert text(valid) == valid


@pytest.mark.parametrize(
    ("escaped", "plain"),
    [
        (r"qemu\x2d1\x2dvm", "qemu-1-vm"),
        (r"caf\xc3\xa9", "café"),
        (r"caf\xe9", r"caf\xe9"),
        (r"a\x00b", r"a\x00b"),
        (r"a\x2", r"a\x2"),
        (r"a\x2g", r"a\x2g"),
        ("plain", "plain"),
        (os.fsdecode(b"\\x2d\xff"), "-\\xff"),
    ],
)
def test_unescaped(escaped: str, plain: str) -> None:
    assert unescaped(escaped) == plain

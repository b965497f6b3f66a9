"""Properties files: read as Java reads them, and edited so that nothing else changes."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable
from pathlib import Path

import pytest
from connectctl.ops.config import java_properties
from connectctl.ops.config.java_properties import Malformed, value_of, with_value
from depth import deep
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

KEY = "exactly.once.source.support"

# What tells lines, keys, values and comments apart is frequent; so are the few keys that are looked
# for.
TEXTS = st.lists(
    st.sampled_from(
        [
            "a",
            "b",
            KEY,
            "=",
            ":",
            " ",
            "\t",
            "\f",
            "\\",
            "\n",
            "\r",
            "\r\n",
            "#",
            "!",
            "\\u0041",
            "ü",
            "x y",
        ]
    ),
    max_size=30,
).map("".join)
KEYS = st.one_of(st.sampled_from(["a", "b", KEY]), st.text(min_size=1, max_size=5))
VALUES = st.one_of(
    st.sampled_from(["", "enabled", " x", "=x", ":", "#", "a\\", "\n", "é😀\x00"]),
    st.text(max_size=8),
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a=b", {"a": "b"}),
        ("a = b ", {"a": "b "}),
        ("a:b", {"a": "b"}),
        ("a b", {"a": "b"}),
        ("a\tb", {"a": "b"}),
        ("a = = b", {"a": "= b"}),
        ("a", {"a": ""}),
        ("a=", {"a": ""}),
        ("=b", {"": "b"}),
        ("  a=b", {"a": "b"}),
        ("#a=b\n ! c=d\n", {}),
        ("a=b#c", {"a": "b#c"}),
        ("a=1\na=2", {"a": "2"}),
        ("a=b\\\n   c", {"a": "bc"}),
        ("a=b\\\r\n   c\rd=e", {"a": "bc", "d": "e"}),
        ("a=b\\\\\nc=d", {"a": "b\\", "c": "d"}),
        ("a=b\\\n#c", {"a": "b#c"}),
        ("a=b\\\n\nc=d", {"a": "b", "c": "d"}),
        ("#a\\\nb=c", {"b": "c"}),
        ("\\\n#a\nb=c", {"b": "c"}),
        ("\\", {}),
        ("a\\=b\\:c\\ d=e", {"a=b:c d": "e"}),
        ("a=\\u0041\\t\\q", {"a": "A\tq"}),
        ("a=\\ud83d\\ude00", {"a": "😀"}),
        ("a=\\u00\\\n41", {"a": "A"}),
        ("a\\\n=\\\n b", {"a": "b"}),
        ("\u00ef\u00bb\u00bf#a\nb=c", {"\u00ef\u00bb\u00bf#a": "", "b": "c"}),
    ],
)
def test_a_file_is_read_as_java_reads_it(text: str, expected: dict[str, str]) -> None:
    assert java_properties.read(text) == expected


@pytest.mark.parametrize("text", ["a=\\u00g0", "b=c\na=\\u12", "\\u=1"])
def test_what_java_refuses_is_refused_with_its_line(text: str) -> None:
    with pytest.raises(Malformed, match=f"line {text.count(chr(10)) + 1} "):
        java_properties.read(text)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", "k=v\n"),
        ("a=b", "a=b\nk=v\n"),
        ("a=b\r\n", "a=b\r\nk=v\r\n"),
        ("a=b\r", "a=b\rk=v\r"),
        ("# k=w\n", "# k=w\nk=v\n"),
        ("k=w", "k=v"),
        ("k = w # no comment\nz=1\n", "k = v\nz=1\n"),
        ("k:w\r\nz=1", "k:v\r\nz=1"),
        ("k w\n", "k v\n"),
        ("k\n", "k=v\n"),
        ("k \n", "k v\n"),
        ("  k=\\\n    w1,\\\n    w2\nz=1\n", "  k=\\\n    v\nz=1\n"),
        ("k=w\\\n", "k=v\n"),
        ("k=\\", "k=v"),
        ("k=1\nk=2\n", "k=1\nk=v\n"),
        ("\\u006b=w", "\\u006b=v"),
        ("a=b\\\n", "a=b\\\n\nk=v\n"),
        ("a=b\\", "a=b\\\n\nk=v\n"),
        ("# a\\", "# a\\\nk=v\n"),
        ("k=v", "k=v"),
        ("k=\\u0076", "k=\\u0076"),
    ],
)
def test_a_value_is_set_where_it_stands_and_all_else_stays(before: str, after: str) -> None:
    assert with_value(before, "k", "v") == after


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (" a b", "\\ a b"),
        ("=a", "\\=a"),
        ("a=b", "a=b"),
        ("\\", "\\\\"),
        ("\ta", "\\ta"),
        ("é", "\\u00e9"),
        ("", ""),
    ],
)
def test_a_value_is_escaped_where_java_needs_it(value: str, written: str) -> None:
    assert with_value("k=w\n", "k", value) == f"k={written}\n"


def test_an_empty_key_is_refused() -> None:
    with pytest.raises(ValueError, match="needs a name"):
        with_value("", "", "v")


def edited(text: str, key: str, value: str) -> str | None:
    """``text`` after the edit; None where Java refuses it already."""
    try:
        return with_value(text, key, value)
    except Malformed:
        return None


@given(TEXTS, KEYS, VALUES)
@example("a=b\\\n", "k", "v")
@example("\\", "a", "")
def test_what_was_set_is_read_back_and_setting_it_again_changes_nothing(
    text: str, key: str, value: str
) -> None:
    after = edited(text, key, value)
    if after is not None:
        assert value_of(after, key) == value
        assert with_value(after, key, value) == after


@given(TEXTS, KEYS, VALUES)
def test_every_other_property_keeps_its_value(text: str, key: str, value: str) -> None:
    after = edited(text, key, value)
    if after is not None:
        others = {k: v for k, v in java_properties.read(text).items() if k != key}
        assert others == {k: v for k, v in java_properties.read(after).items() if k != key}


@given(TEXTS, KEYS, VALUES)
def test_every_character_outside_the_value_stays(text: str, key: str, value: str) -> None:
    after = edited(text, key, value)
    if after is None or after == text:
        return
    found = [p for p in java_properties.properties(text) if p.key == key]
    if not found:
        assert after.startswith(text)
        return
    assert after.startswith(text[: found[-1].begin])
    assert after.endswith(text[found[-1].end :])


@given(TEXTS, KEYS, VALUES)
def test_an_edit_writes_nothing_but_ascii(text: str, key: str, value: str) -> None:
    after = edited(text, key, value)
    assert after is None or {c for c in after if ord(c) > 126} <= {c for c in text if ord(c) > 126}


JAVA = """
import java.io.*;
import java.nio.charset.StandardCharsets;
import java.nio.file.*;
import java.util.*;

public class Read {
    static String hex(String text) {
        StringBuilder out = new StringBuilder();
        for (char c : text.toCharArray()) out.append(String.format("%04x", (int) c));
        return out.toString();
    }

    public static void main(String[] args) throws IOException {
        int files = Integer.parseInt(args[1]);
        for (int n = 0; n < files; n++) {
            Properties found = new Properties();
            StringBuilder out = new StringBuilder();
            try (InputStream in = Files.newInputStream(Path.of(args[0], n + ".properties"))) {
                found.load(in);
                for (String key : new TreeSet<>(found.stringPropertyNames()))
                    out.append(hex(key)).append('=').append(hex(found.getProperty(key))).append(' ');
            } catch (IllegalArgumentException refused) {
                out = new StringBuilder("refused");
            }
            System.out.println(out.toString().trim());
        }
    }
}
"""


def utf16(text: str) -> str:
    return text.encode("utf-16-be", "surrogatepass").hex()


def in_words(text: str) -> list[str]:
    """What the Java program prints of a file."""
    try:
        found = java_properties.read(text)
    except Malformed:
        return ["refused"]
    return named(f"{utf16(k)}={utf16(v)}" for k, v in found.items())


def named(words: Iterable[str]) -> list[str]:
    """Without the one with an empty name: Java makes one of a backslash at some ends of a file, and
    at others not.
    """
    return sorted(word for word in words if not word.startswith("="))


@pytest.mark.live
def test_java_itself_reads_the_same(tmp_path: Path) -> None:
    texts: list[str] = []

    @settings(
        max_examples=deep(1500, 375),
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(TEXTS, KEYS, VALUES)
    def collect(text: str, key: str, value: str) -> None:
        after = edited(text, key, value)
        texts.extend(t for t in (text, after) if t is not None)

    collect()
    for number, text in enumerate(texts):
        (tmp_path / f"{number}.properties").write_bytes(text.encode(java_properties.ENCODING))
    source = tmp_path / "Read.java"
    source.write_text(JAVA)
    run = subprocess.run(
        ["java", str(source), str(tmp_path), str(len(texts))],
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    theirs = [named(line.split()) for line in run.stdout.splitlines()]
    assert len(theirs) == len(texts)
    different = [
        (text, read, in_words(text))
        for text, read in zip(texts, theirs, strict=True)
        if read != in_words(text)
    ]
    assert different == []

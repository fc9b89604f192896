"""The wire's key beside a backup: which files are taken, and that no message tells a seed."""

from pathlib import Path

import msgspec
import pytest

from broker.wire.keys import SigningKey
from gateways.commands.common import Failure
from gateways.commands.restore_key import check_belongs, keys_in, read_wire_key

OLD, NEW = SigningKey.generate(), SigningKey.generate()
TEXT = f'{{"seed":"{OLD.seed}","since":1,"until":2}}\n{{"seed":"{NEW.seed}","since":2}}\n'.encode()


@pytest.mark.requirement("cli.restore-key")
def test_a_key_file_gives_its_text_and_its_public_keys(tmp_path: Path) -> None:
    path = tmp_path / "wire.key"
    path.touch(mode=0o600)
    path.write_bytes(TEXT)
    assert read_wire_key(path) == (TEXT, (OLD.pk, NEW.pk))
    path.chmod(0o640)
    with pytest.raises(Failure, match="open to others"):
        read_wire_key(path)


@pytest.mark.requirement("cli.restore-key")
@pytest.mark.parametrize(
    "text",
    [b"", b"\n", b"{}", TEXT.replace(b"since", b"sinse"), TEXT[:40], b"\xff"],
    ids=["empty", "blank", "no member", "another member", "cut short", "not UTF-8"],
)
def test_what_is_no_key_file_is_refused_without_telling_what_is_in_it(text: bytes) -> None:
    with pytest.raises(Failure, match="not a wire's key file") as caught:
        keys_in(text, "f")
    assert OLD.seed not in str(caught.value)


@pytest.mark.requirement("cli.restore-key")
def test_the_keys_are_those_that_the_store_was_served_with() -> None:
    check_belongs((OLD.pk, NEW.pk), msgspec.json.encode({"pks": [OLD.pk]}), "f")
    check_belongs((NEW.pk,), None, "f")
    with pytest.raises(Failure, match="lacks a key"):
        check_belongs((NEW.pk,), msgspec.json.encode({"pks": [OLD.pk]}), "f")

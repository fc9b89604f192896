"""wire.key: made once, kept private, never of another store, rotated."""

from pathlib import Path

import pytest

from broker.store.memory import MemoryStore
from gateways.wirekeys import WireKeyError, open_keyring, rotate


@pytest.mark.requirement("keys.wire-key")
async def test_the_key_is_made_at_the_first_start_and_stays(tmp_path: Path) -> None:
    store = MemoryStore()
    first = await open_keyring(tmp_path, store, 1000)
    assert (tmp_path / "wire.key").stat().st_mode & 0o777 == 0o600
    assert (
        (await open_keyring(tmp_path, store, 2000)).listing()
        == first.listing()
        == [{"pk": first.pk, "from": 1000}]
    )


@pytest.mark.requirement("keys.wire-key")
async def test_a_missing_key_beside_a_store_that_was_served_is_refused(tmp_path: Path) -> None:
    store = MemoryStore()
    await open_keyring(tmp_path, store, 1000)
    (tmp_path / "wire.key").unlink()
    with pytest.raises(WireKeyError, match="missing"):
        await open_keyring(tmp_path, store, 2000)
    assert not (tmp_path / "wire.key").exists()


@pytest.mark.requirement("keys.wire-key")
async def test_another_stores_key_is_found_out(tmp_path: Path) -> None:
    store, other = MemoryStore(), MemoryStore()
    (tmp_path / "other").mkdir()
    await open_keyring(tmp_path, store, 1000)
    await open_keyring(tmp_path / "other", other, 1000)
    (tmp_path / "other" / "wire.key").rename(tmp_path / "wire.key")
    with pytest.raises(WireKeyError, match="another store"):
        await open_keyring(tmp_path, store, 2000)


async def test_a_key_that_others_can_read_or_that_is_none_is_refused(tmp_path: Path) -> None:
    store = MemoryStore()
    await open_keyring(tmp_path, store, 1000)
    (tmp_path / "wire.key").chmod(0o644)
    with pytest.raises(WireKeyError, match="chmod 600"):
        await open_keyring(tmp_path, store, 2000)
    (tmp_path / "wire.key").chmod(0o600)
    (tmp_path / "wire.key").write_text("nonsense\n")
    with pytest.raises(WireKeyError, match=r"not a wire\.key"):
        await open_keyring(tmp_path, store, 2000)


@pytest.mark.requirement("keys.rotation")
async def test_after_a_rotation_the_old_key_stays_with_an_until(tmp_path: Path) -> None:
    store = MemoryStore()
    old = await open_keyring(tmp_path, store, 1000)
    pk = rotate(tmp_path, 5000)
    new = await open_keyring(tmp_path, store, 6000)
    assert new.pk == pk
    assert new.listing() == [{"pk": old.pk, "from": 1000, "until": 5000}, {"pk": pk, "from": 5000}]
    assert new.opening == (pk,)
    assert new.get(old.pk).pk == old.pk


@pytest.mark.parametrize(
    "text",
    [
        "nonsense\n",
        '{"seed":"' + "g" * 64 + '","since":1}\n',
        '{"seed":"' + "A" * 64 + '","since":1}\n',
        '{"seed":"' + "a" * 63 + '","since":1}\n',
        '{"seed":"' + "a" * 64 + '","since":"x"}\n',
        '{"seed":"' + "a" * 64 + '"}\n',
        '{"seed":"' + "a" * 64 + '","since":1,"until":2}\n',
        "",
        "\n\n",
        "\udcff\n",
    ],
)
async def test_a_file_that_holds_no_key_is_named_in_one_line(tmp_path: Path, text: str) -> None:
    path = tmp_path / "wire.key"
    path.write_bytes(text.encode(errors="surrogateescape"))
    path.chmod(0o600)
    with pytest.raises(WireKeyError) as opening:
        await open_keyring(tmp_path, MemoryStore(), 1000)
    with pytest.raises(WireKeyError) as rotating:
        rotate(tmp_path, 1)
    for caught in (opening, rotating):
        assert f"{path} is not a wire.key" in str(caught.value)
        assert "\n" not in str(caught.value)
    assert path.read_bytes() == text.encode(errors="surrogateescape")

"""The keeper of the audit's head that lasts as long as the process."""

from broker.actors.headkeeper import MemoryHead


async def test_the_text_that_was_written_last_is_read() -> None:
    keeper = MemoryHead()
    assert await keeper.read() is None
    await keeper.write(b"one")
    await keeper.write(b"two")
    assert await keeper.read() == b"two"

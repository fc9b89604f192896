"""Work in pieces."""

from broker.core.pieces import Pieces, whole


def test_what_comes_of_all_pieces_is_what_is_returned() -> None:
    done: list[int] = []

    def work() -> Pieces[str]:
        for piece in range(3):
            done.append(piece)
            yield piece
        return "made"

    assert whole(work()) == "made"
    assert done == [0, 1, 2]

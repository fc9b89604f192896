"""What search answers (law 8 of broker/store/port.py): a part of the conformance suite."""

import pytest

from broker.store.port import Document, Put, Store, Unit
from tests.broker.store.units import hits, put


class Searching:
    """What search answers."""

    @pytest.mark.requirement("store.search")
    async def test_a_hit_has_every_word_the_last_one_maybe_as_a_beginning(self, store: Store) -> None:
        await store.commit(put("a", "Exchange rates", "fx", "every day"))
        await store.commit(put("b", "Rate cards", "fx", "of hotels"))
        await store.commit(put("c", "Nothing"))
        assert await hits(store, "rates") == ["a"]
        assert await hits(store, "rat") == ["b", "a"]
        assert await hits(store, "rate cards") == ["b"]
        assert await hits(store, "rat cards") == []
        assert await hits(store, "cards rat") == ["b"]
        assert await hits(store, "day fx ex") == ["a"]
        assert await hits(store, "fx every none") == []
        [found] = await store.search("note", "hotels")
        assert (found.id, found.version, found.doc) == ("b", 1, b"b/1")

    @pytest.mark.requirement("store.search")
    async def test_first_come_those_whose_weightiest_fields_have_it_all_and_then_the_newest(
        self, store: Store
    ) -> None:
        await store.commit(put("third", "x", "x", "gold fish"))
        await store.commit(put("first", "gold fish", "x", "x"))
        await store.commit(put("spread", "gold", "x", "fish"))
        await store.commit(put("second", "gold", "fish", "x"))
        await store.commit(put("newest", "a fish of gold"))
        assert await hits(store, "gold fish") == ["newest", "first", "second", "spread", "third"]

    @pytest.mark.requirement("store.search-marks")
    async def test_index_rows_narrow_what_is_found(self, store: Store) -> None:
        await store.commit(put("a", "gold", marks=("x", "y")))
        await store.commit(put("b", "gold", marks=("x",)))
        await store.commit(put("c", "silver", marks=("x", "y")))
        await store.commit(put("d", "gold", kind="other", marks=("x",)))
        await store.commit(Unit(puts=(Put("note", "e", 0, b"e", (("tag", "x"), ("tag", 7))),)))
        assert await hits(store, "gold", "x") == ["b", "a"]
        assert await hits(store, "gold", "x", "y") == ["a"]
        assert await hits(store, None, "x") == ["c", "b", "a"]
        assert await hits(store, None) == ["c", "b", "a"]
        assert await hits(store, "gold", "z") == await hits(store, "x") == await hits(store, "y") == []
        assert await store.search("note", "gold", [("gat", "x")]) == []

    @pytest.mark.requirement("store.search")
    async def test_a_text_is_replaced_taken_away_and_gone_with_its_document(self, store: Store) -> None:
        await store.commit(put("a", "old"))
        await store.commit(put("a", "new", expect=1))
        assert (await hits(store, "old"), await hits(store, "new")) == ([], ["a"])
        await store.commit(put("a", expect=2))
        assert await hits(store, None) == await hits(store, "new") == []
        await store.commit(put("a", "back", expect=3, marks=("x",)))
        assert await hits(store, "back") == ["a"]
        await store.commit(put("a", "back", expect=4, marks=("y",)))
        assert (await hits(store, "back", "x"), await hits(store, "back", "y")) == ([], ["a"])
        await store.commit(Unit(puts=(Put("note", "a", 5, None),)))
        assert await hits(store, None) == []
        await store.commit(Unit(puts=(put("b", "one").puts[0], Put("note", "b", 1, None))))
        assert await hits(store, "one") == []

    @pytest.mark.requirement("store.search-pages")
    async def test_pages_go_on_where_the_last_one_ended_whatever_comes_and_goes(self, store: Store) -> None:
        for number in range(6):
            await store.commit(put(f"t{number}", "gold"))
            await store.commit(put(f"d{number}", "x", "x", "gold"))
        first = await store.search("note", "gold", limit=3)
        assert [each.id for each in first] == ["t5", "t4", "t3"]
        await store.commit(put("new", "gold"))
        await store.commit(Unit(puts=(Put("note", "t4", 1, None), Put("note", "t2", 1, None))))
        await store.commit(put("t1", "gold again", expect=1))
        place, rest = first[-1].order, list[Document]()
        while page := await store.search("note", "gold", after=place, limit=2):
            rest += page
            place = page[-1].order
        assert [each.id for each in rest] == ["t1", "t0", "d5", "d4", "d3", "d2", "d1", "d0"]
        orders = [each.order for each in [*first, *rest]]
        assert orders == sorted(set(orders))
        assert await hits(store, "gold", limit=0) == await hits(store, "gold", after=orders[-1]) == []
        assert await hits(store, "gold", after=2**62) == []

    @pytest.mark.requirement("store.search-words")
    @pytest.mark.parametrize(
        ("text", "asked"),
        [
            ("Straße Zürich", "STRASSE zur"),
            ("Ｆｕｌｌ width ﬁ", "full FI"),
            ("naïve CAFÉ", "Café naive"),
            ("数据库手册", "数据"),
            ("東京タワー", "タワ"),
            ("คู่มือภาษาไทย", "ภาษา"),
            ("한국어 안내", "한국"),
            ("Поиск ёлки", "елк"),
            ("हिन्दी में", "हिन्दी"),
            ("مرحبا بالعالم", "بال"),
            ("go 🚀 now", "🚀"),
            ("a" * 200, "a" * 199),
            ("fx-rates_2026.csv", "fx rates 2026 csv"),
        ],
    )
    async def test_text_of_any_language_is_found(self, store: Store, text: str, asked: str) -> None:
        await store.commit(put("a", text))
        await store.commit(put("b", "another"))
        assert await hits(store, asked) == ["a"]

    @pytest.mark.requirement("store.search-words")
    @pytest.mark.parametrize(
        "asked",
        [
            *(
                '"',
                '""',
                "*",
                "^",
                "()",
                "'",
                "''",
                ";",
                "--",
                "\\",
                "\x00",
                "- + : .",
                "",
                " ",
                "\ud800",
                "{}",
            ),
        ],
    )
    async def test_what_holds_no_word_finds_nothing(self, store: Store, asked: str) -> None:
        await store.commit(put("a", "gold " + asked))
        assert await hits(store, asked) == []
        assert await hits(store, f"{asked}gold{asked}") == ["a"]

    @pytest.mark.requirement("store.search-words")
    @pytest.mark.parametrize(
        "asked",
        [
            *("gold OR silver", "gold NOT fish", "NEAR(gold fish)", "first : gold", "gold AND marks"),
            *('"gold" OR "x"', "{first} : gold", "gold) OR (x", 'gold" OR marks:"x', "^gold x"),
        ],
    )
    async def test_no_word_of_a_query_language_is_one_here(self, store: Store, asked: str) -> None:
        await store.commit(put("a", "gold"))
        await store.commit(put("b", "x"))
        assert await hits(store, asked) == []
        await store.commit(put("c", asked))
        assert await hits(store, asked) == ["c"]

    async def test_a_fourth_field_is_a_fault_and_changes_nothing(self, store: Store) -> None:
        with pytest.raises(ValueError, match="fields"):
            await store.commit(put("a", "1", "2", "3", "4"))
        assert await store.get("note", "a") is None

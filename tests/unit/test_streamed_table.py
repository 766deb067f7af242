"""Tables that are printed page by page: widths, what is cut on a narrow terminal, and what never is."""

from collections.abc import Sequence

import pytest

from clepsydra.tools.format.streamed_table import Column, StreamedTable

COLUMNS = (
    Column("ID"),
    Column("STATE"),
    Column("RUNS", cut_first=1, is_right_aligned=True),
    Column("EVERY", cut_first=2),
    Column("TARGET", cut_first=3),
)
ROWS = [
    ("hello", "SCHEDULED", "7", "once", "GET https://example.org/a"),
    ("a", "PAUSED", "12", "every 1h", "log line"),
]


def printed(width: int | None, *pages: Sequence[Sequence[str]], is_bold: bool = False) -> list[str]:
    written: list[str] = []
    table = StreamedTable(COLUMNS, written.append, width, is_bold=is_bold)
    for page in pages:
        table.add_page(page)
    return "".join(written).splitlines()


def test_in_a_pipe_nothing_is_cut_and_columns_stay_in_line() -> None:
    assert printed(None, ROWS) == [
        "ID     STATE      RUNS  EVERY     TARGET",
        "hello  SCHEDULED     7  once      GET https://example.org/a",
        "a      PAUSED       12  every 1h  log line",
    ]


def test_the_least_important_cells_are_cut_first() -> None:
    assert printed(45, ROWS) == [
        "ID     STATE      RUNS  EVERY     TARGET",
        "hello  SCHEDULED     7  once      GET https:…",
        "a      PAUSED       12  every 1h  log line",
    ]


@pytest.mark.parametrize(
    ("width", "header"),
    [
        (40, "ID     STATE      RUNS  EVERY     TARGET"),
        (37, "ID     STATE      RUNS  EVERY  TARGET"),
        (36, "ID     STATE      RUNS  EVERY"),
        (24, "ID     STATE      RUNS"),
        (20, "ID     STATE"),
        (5, "ID     STATE"),
    ],
)
def test_columns_are_left_out_until_the_rest_fits_and_id_and_state_never(width: int, header: str) -> None:
    lines = printed(width, ROWS)
    assert lines[0] == header
    assert lines[1].startswith("hello  SCHEDULED")
    assert all(len(line) <= max(width, len("hello  SCHEDULED")) for line in lines)


def test_a_later_page_keeps_the_widths_and_loses_nothing_that_matters() -> None:
    later = [("an-id-that-is-longer", "SCHEDULED", "1", "once", "x" * 100)]
    assert printed(None, ROWS, later)[-1].split() == ["an-id-that-is-longer", "SCHEDULED", "1", "once", "x" * 100]
    assert printed(45, ROWS, later)[-1].startswith("an-id-that-is-longer  SCHEDULED  ")


def test_a_page_is_printed_when_it_is_added_and_not_kept() -> None:
    written: list[str] = []
    table = StreamedTable(COLUMNS, written.append, None, is_bold=False)
    table.add_page(ROWS)
    assert "".join(written).splitlines() == printed(None, ROWS)
    before = len(written)
    table.add_page(ROWS)
    assert "".join(written[before:]).splitlines() == printed(None, ROWS)[1:]


def test_an_empty_table_has_a_header_and_bold_is_a_choice() -> None:
    assert printed(None, []) == ["ID  STATE  RUNS  EVERY  TARGET"]
    assert printed(80, [], is_bold=True) == ["\x1b[1mID  STATE  RUNS  EVERY  TARGET\x1b[0m"]


def test_wide_characters_take_two_places() -> None:
    [_, line] = printed(43, [("a", "PAUSED", "1", "once", "水時計" * 10)])
    assert line == "a   PAUSED     1  once   水時計水時計水時 …"

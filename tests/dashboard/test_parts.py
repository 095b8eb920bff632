"""What pages are put together from."""

from hubbub_dashboard import parts, text


def test_what_is_to_be_typed_is_code_and_names_are_as_they_are() -> None:
    name = text.quoted("a `b` <i>")
    assert parts.code(f"Type `hubbub close x` for {name} or `y`") == (
        "Type <code>hubbub close x</code> for “\u2068a `b` &lt;i&gt;\u2069” or <code>y</code>"
    )


def test_nothing_in_a_name_ends_its_quotation() -> None:
    assert text.quoted("a\0b\u2069`c`\u202e\u200dd\n") == "“\u2068ab`c`\u200dd\u2069”"


def test_a_table_escapes_its_columns_and_names_its_rows() -> None:
    html = parts.table("A & B", ["<x>"], [parts.Row("<b>y</b>", ["1"], "doubt")])
    assert 'aria-label="A &amp; B"' in html
    assert "&lt;x&gt;" in html
    assert '<tr class="doubt"><th scope="row" dir="auto"><b>y</b></th><td>1</td></tr>' in html


def test_an_interval_below_zero_is_seen_to_hold_zero() -> None:
    shown = parts.exact_interval(-0.000_01, 0.02, 1)
    assert shown == (
        '<data value="-1e-05">\N{MINUS SIGN}0.1</data> to <data value="0.02">2.0</data>\u202f%'
    )

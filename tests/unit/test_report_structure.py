"""What the page is made of: landmarks, headings, tables, pictures, colours; and that it stays small and the same."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from itertools import pairwise

import pytest
import report_fixture as fixture

from components.report import load_run, render
from components.report.drawing import ROLES
from components.report.page import sections

LARGEST = 450_000
"""Bytes of the page of a run of 200 steps with verdicts and samples."""
VOID = {"meta", "br", "link", "img", "hr", "input"}


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> str:
    layout = fixture.rescued(tmp_path_factory.mktemp("long"))
    fixture.train(layout, 200, [fixture.verdict("zero_variance", "warn", 20 * i) for i in range(1, 9)])
    return render(load_run(fixture.settings("train.steps=200"), layout))


class Tree(HTMLParser):
    """Tags in order with their attributes; complains about what is closed wrongly."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None], tuple[str, ...]]] = []
        self.open: list[str] = []
        self.wrong: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs), tuple(self.open)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs), tuple(self.open)))

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open.pop() != tag:
            self.wrong.append(tag)


@pytest.fixture(scope="module")
def tree(page: str) -> Tree:
    return Tree(page)


def test_every_tag_is_closed_where_it_was_opened(tree: Tree) -> None:
    assert tree.wrong == [] and tree.open == []


def test_the_page_loads_nothing_and_runs_nothing(page: str) -> None:
    assert "default-src 'none'" in page
    assert not re.search(r"<(script|img|link|iframe|object|embed|image)\b|\bon\w+=|@import|url\((?!#)|https?:", page)


def test_every_id_is_unique_and_every_reference_inside_the_page_has_a_target(tree: Tree) -> None:
    ids = [value for _, attributes, _ in tree.tags for key, value in attributes.items() if key == "id"]
    values = [value for _, attributes, _ in tree.tags for value in attributes.values() if value]
    targets = [found[1] for value in values if (found := re.fullmatch(r"(?:url\()?#([^)]+)\)?", value))]
    assert len(ids) == len(set(ids))
    assert len(targets) > 20
    assert set(targets) <= set(ids)


def test_there_is_one_of_each_landmark_and_the_sections_are_named(tree: Tree) -> None:
    names = [tag for tag, _, _ in tree.tags]
    assert [names.count(name) for name in ("header", "nav", "main", "footer", "h1")] == [1] * 5
    ids = {attributes.get("id") for _, attributes, _ in tree.tags}
    for tag, attributes, _ in tree.tags:
        if tag == "section":
            assert attributes.get("aria-labelledby") in ids


def test_no_level_of_headings_is_skipped(tree: Tree) -> None:
    levels = [int(tag[1]) for tag, _, _ in tree.tags if re.fullmatch("h[1-6]", tag)]
    assert levels[0] == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))


def test_the_navigation_names_every_section_in_reading_order(tree: Tree) -> None:
    anchors = [attributes.get("id") for tag, attributes, around in tree.tags if tag == "section" and "main" in around]
    assert [anchor for anchor, _ in sections()] == [anchor for anchor in anchors if anchor]


def test_every_head_of_a_table_says_what_it_is_the_head_of(tree: Tree) -> None:
    heads = [attributes for tag, attributes, _ in tree.tags if tag == "th"]
    assert len(heads) > 40
    assert all(attributes.get("scope") in ("col", "row", "rowgroup") for attributes in heads)


def test_every_picture_is_described_or_hidden_from_who_cannot_see_it(tree: Tree) -> None:
    pictures = [attributes for tag, attributes, _ in tree.tags if tag == "svg"]
    assert len(pictures) > 20
    for attributes in pictures:
        described = attributes.get("role") == "img" and attributes.get("aria-label")
        assert described or attributes.get("aria-hidden") == "true"


def test_what_scrolls_sideways_can_be_reached_by_keyboard_and_has_a_name(tree: Tree) -> None:
    wide = [attributes for _, attributes, _ in tree.tags if attributes.get("class") == "wide"]
    assert len(wide) == sum(tag == "table" for tag, _, _ in tree.tags)
    assert all(attributes.get("tabindex") == "0" and attributes.get("aria-label") for attributes in wide)


def test_results_are_distinguished_without_colour(page: str) -> None:
    assert "✓ pass" in page and ">✗ wrong<" in page


def test_the_page_is_styled_for_paper_for_phones_and_for_both_themes(page: str) -> None:
    for part in (
        "@page { size: A4",
        "@media print",
        "::details-content",
        "max-width: 46rem",
        "prefers-color-scheme: dark",
    ):
        assert part in page


def test_a_run_of_two_hundred_steps_stays_below_its_bound(page: str) -> None:
    assert len(page.encode()) < LARGEST


TEXT = ("ink", "muted", "blue", "green", "red", "amber", "orange", "purple")


@pytest.mark.parametrize("theme", [0, 1])
@pytest.mark.parametrize("ground", ["page", "card"])
@pytest.mark.parametrize("role", TEXT)
def test_text_has_the_contrast_of_wcag_aa_on_every_ground_that_it_stands_on(role: str, ground: str, theme: int) -> None:
    assert contrast(ROLES[role][theme], ROLES[ground][theme]) >= 4.5


@pytest.mark.parametrize("theme", [0, 1])
@pytest.mark.parametrize("role", ["blue", "orange", "muted"])
def test_what_is_drawn_stands_out_from_the_band_behind_it(role: str, theme: int) -> None:
    assert contrast(ROLES[role][theme], ROLES["rule"][theme]) >= 3


def contrast(one: str, other: str) -> float:
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def luminance(colour: str) -> float:
    """WCAG relative luminance."""
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return sum(weight * value for weight, value in zip((0.2126, 0.7152, 0.0722), linear, strict=True))

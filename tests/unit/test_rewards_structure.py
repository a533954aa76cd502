"""Rewards for structure: what a skeleton is, how much of the reference it holds, and how far it is from it."""

from __future__ import annotations

import ast
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from components.config.verifiers import StructureVerifier as StructureSettings
from components.rewards import build_verifier
from components.rewards.base import Judgement
from components.rewards.skeleton import Limits, Node, SkeletonError, TooLarge, parse, without_values
from components.rewards.structure import edit_distance, jaccard
from components.types import Prompt

LIMITS = Limits(chars=4000, nodes=400, depth=8)
RULE = "class Corridor { if people(over=50) require width(min=1.2, unit=m) }"


def judge(reference: str, text: str, **settings: object) -> Judgement:
    verifier = build_verifier(StructureSettings.model_validate({"kind": "structure", **settings}))
    return verifier.judge(Prompt("p", "?", reference, reference), text)


# The language


def test_a_skeleton_is_a_tree_with_sets_of_classes_functions_and_parameters():
    found = parse(RULE, LIMITS)
    people = Node("people()", (Node("over=50"),))
    width = Node("width()", (Node("min=1.2"), Node("unit=m")))
    assert found.tree == Node("skeleton", (Node("class Corridor", (Node("require", (Node("if", (people,)), width)),)),))
    assert found.tree.size == 9
    assert found.classes == {"Corridor"}
    assert found.functions == {"people", "width"}
    assert found.parameters == {"people.over=50", "width.min=1.2", "width.unit=m"}
    assert without_values(found.parameters) == {"people.over", "width.min", "width.unit"}


@pytest.mark.parametrize(
    "same",
    [
        "class Corridor{if people(over=50)require width(min=1.2,unit=m)}",
        "class Corridor {\n  if people(over = 50)  # more than fifty\n  require width(unit=m, min=1.20);\n}",
        "class Corridor { if people(over=050) require width(min=01.2, unit=m) }",
    ],
)
def test_white_space_comments_order_and_superfluous_zeros_mean_nothing(same):
    assert judge(RULE, same).accuracy == 1.0
    assert parse(same, LIMITS) == parse(RULE, LIMITS)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("class A { f() g() }", "class A { g() f() }"),
        ("class A { f() } class B { }", "class B {} class A { f() }"),
        ("class A { require f() and g(x=1, y) }", "class A { require g(y, x=1) and f() }"),
        ("class A { if p() and q() forbid f() }", "class A { if q() and p() forbid f() }"),
        ("class A { class B { f() } g() }", "class A { g() class B { f() } }"),
    ],
)
def test_the_order_of_members_is_free(one, other):
    assert parse(one, LIMITS) == parse(other, LIMITS)


@pytest.mark.parametrize(
    "other",
    [
        "class Corridor { if people(over=50) forbid width(min=1.2, unit=m) }",
        "class Corridor { if width(min=1.2, unit=m) require people(over=50) }",
        "class Corridor { require people(over=50) and width(min=1.2, unit=m) }",
        "class Corridor { if people(over=50) require width(min=1.2, unit=m) and width(min=1.2, unit=m) }",
        "class Corridor { if people(over=50) require width(min=1.2, unit=mm) }",
        "class Corridor { if people(over=-50) require width(min=1.2, unit=m) }",
        "class Corridor { } class Corridor { if people(over=50) require width(min=1.2, unit=m) }",
    ],
)
def test_what_sets_of_names_do_not_see_still_is_not_the_same_tree(other):
    assert judge(RULE, other).accuracy == 0.0


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "expected 'class' at character 1, found the end"),
        ("Corridor", "expected 'class' at character 1, found 'Corridor'"),
        ("class", "expected a name at character 6, found the end"),
        ("class if {}", "expected a name at character 7, found 'if'"),
        ("class A { f( }", "expected a name at character 14, found '}'"),
        ("class A { f(x=) }", "expected a name at character 15, found '\\)'"),
        ("class A { f(x,) }", "expected a name"),
        ("class A { if f() }", "expected a name at character 18"),
        ("class A { f() ", "expected a name at character 15, found the end"),
        ("class A { } }", "expected 'class' at character 13"),
        ("class A { f(x=1e5) }", "expected '\\)' at character 16, found 'e5'"),
        ("class A { f(x='y') }", 'unexpected "\'" at character 15'),
        ("class Ä { }", "unexpected 'Ä' at character 7"),
        ("class A { f(\u0663) }", "unexpected"),
        ("__import__('os')", "expected 'class'"),
    ],
)
def test_what_is_no_skeleton_is_refused_with_its_place(text, problem):
    with pytest.raises(SkeletonError, match=problem):
        parse(text, LIMITS)


@pytest.mark.parametrize(
    ("text", "limits"),
    [
        ("class A { f() }", Limits(chars=14, nodes=400, depth=8)),
        ("class A { f() }", Limits(chars=4000, nodes=3, depth=8)),
        ("class A { class B { } }", Limits(chars=4000, nodes=400, depth=1)),
    ],
)
def test_limits_of_length_size_and_depth_hold_to_the_last_one(text, limits):
    with pytest.raises(TooLarge):
        parse(text, limits)
    assert parse(text, Limits(chars=len(text), nodes=parse(text, LIMITS).tree.size, depth=2))


@given(st.text(alphabet="class AB{}(),;=.-#\n if require and 019", max_size=60) | st.text(max_size=60))
def test_no_text_does_anything_but_parse_or_be_refused(text):
    try:
        assert parse(text, LIMITS).tree.size > 1
    except SkeletonError as error:
        assert str(error)


# Overlap of names


@pytest.mark.parametrize(
    ("one", "other", "value"),
    [
        ({"Parser"}, {"Parser"}, 1.0),
        ({"parse", "close"}, {"parse", "open"}, 1 / 3),
        ({"parse.s", "parse.strict"}, {"parse.s"}, 0.5),
        (set(), set(), 1.0),
        (set(), {"a"}, 0.0),
    ],
)
def test_worked_numbers_of_jaccard(one, other, value):
    assert jaccard(one, other) == jaccard(other, one) == pytest.approx(value, abs=5e-5)


def test_the_worked_example_of_the_method():
    found = judge("class Parser { parse(s, strict) close() }", "class Parser { parse(s) open() }")
    assert found.parts == pytest.approx({"jaccard_class": 1.0, "jaccard_function": 1 / 3, "jaccard_parameter": 0.5})
    assert found.metrics["jaccard"] == pytest.approx(0.6111, abs=5e-5)
    assert found.accuracy == 0.0


def test_a_parameter_is_the_same_only_with_the_same_value_unless_values_do_not_count():
    other = RULE.replace("1.2", "12")
    assert judge(RULE, other).parts["jaccard_parameter"] == 0.5
    assert judge(RULE, other, values=False).parts["jaccard_parameter"] == 1.0
    assert judge(RULE, other, values=False).accuracy == 0.0


def test_naming_everything_that_is_plausible_costs_what_it_adds():
    everything = "class Corridor { people(over=50) width(min=1.2, unit=m) height() depth() length() slope() }"
    found = judge(RULE, everything)
    assert found.parts == pytest.approx({"jaccard_class": 1.0, "jaccard_function": 2 / 6, "jaccard_parameter": 1.0})


def test_an_empty_reference_set_gives_the_part_away():
    assert judge("class Door { lock() }", "class Wall { open() }").parts["jaccard_parameter"] == 1.0


@pytest.mark.parametrize("text", ["", "Corridor", RULE[:-2], f"{RULE} ok?", "class A{" * 5000, "f()" * 500])
def test_what_cannot_be_read_is_wrong_and_has_nothing_in_common(text):
    found = judge(RULE, text, tree=True)
    assert found.accuracy == 0.0
    assert set(found.parts.values()) == {0.0}
    assert (found.metrics["parsed"], found.metrics["jaccard"]) == (0.0, 0.0)


def test_only_what_follows_the_last_marker_is_read():
    assert judge(RULE, f"first the subject, then => {RULE}", marker="=>").accuracy == 1.0
    assert judge(RULE, RULE, marker="=>").accuracy == 0.0


def test_a_reference_that_is_no_skeleton_raises():
    with pytest.raises(ValueError, match="the reference is not a skeleton: expected 'class'"):
        judge("width >= 1.2", RULE)


# Tree edit distance


def tree(text: str) -> Node:
    """``f(d(a,c(b)),e)``."""

    def node(found: ast.expr) -> Node:
        if isinstance(found, ast.Call):
            return Node(ast.unparse(found.func), tuple(map(node, found.args)))
        return Node(ast.unparse(found))

    return node(ast.parse(text, mode="eval").body)


@pytest.mark.parametrize(
    ("one", "other", "distance"),
    [
        ("f(d(a,c(b)),e)", "f(c(d(a,b)),e)", 2),  # the example of Zhang and Shasha
        ("a(b,c,d)", "a(b,x,d)", 1),
        ("a(b,c,d)", "a(b,d)", 1),
        ("a(b(c,d))", "a(c,d)", 1),
        ("a", "b", 1),
        ("a", "b(a(c))", 2),
        ("a(b,c)", "x(y,z)", 3),
        ("a(b,c)", "a(c,b)", 2),
    ],
)
def test_worked_tree_edit_distances(one, other, distance):
    assert edit_distance(tree(one), tree(other)) == edit_distance(tree(other), tree(one)) == distance


TREES = st.recursive(
    st.builds(Node, st.sampled_from("ab")),
    lambda inner: st.builds(Node, st.sampled_from("ab"), st.lists(inner, max_size=3).map(tuple)),
    max_leaves=5,
)


@cache
def by_definition(one: tuple[Node, ...], other: tuple[Node, ...]) -> int:
    """The distance of two forests, by trying everything with their last trees."""
    if not one or not other:
        return sum(node.size for node in one + other)
    (*before, last), (*ahead, final) = one, other
    return min(
        by_definition((*before, *last.children), other) + 1,
        by_definition(one, (*ahead, *final.children)) + 1,
        by_definition(tuple(before), tuple(ahead))
        + by_definition(last.children, final.children)
        + (last.label != final.label),
    )


@given(TREES, TREES)
def test_the_tree_edit_distance_is_what_its_definition_says(one, other):
    assert edit_distance(one, other) == by_definition((one,), (other,))


@given(TREES, TREES, TREES)
def test_the_tree_edit_distance_is_a_metric(one, other, third):
    there = edit_distance(one, other)
    assert (there == 0) == (one == other)
    assert there == edit_distance(other, one) <= edit_distance(one, third) + edit_distance(third, other)


@pytest.mark.parametrize(
    ("text", "distance", "part"),
    [
        ("class A { f() }", 0, 1.0),
        ("class A { g() }", 1, 0.75),  # one relabelled node of four
        ("class A { }", 2, 0.5),
        ("class B { require g(x) and h(y) }", 6, 0.1429),
        ("class B { class C { class D { class E { g() } } } }", 5, 0.2857),
        ("nothing", 4, 0.0),
    ],
)
def test_the_tree_part_is_the_share_of_the_larger_tree_that_stays(text, distance, part):
    found = judge("class A { f() }", text, tree=True)
    assert found.metrics["tree_edit_distance"] == distance
    assert found.parts["tree"] == pytest.approx(part, abs=5e-5)


def test_the_tree_part_is_off_by_default():
    assert set(judge(RULE, RULE).parts) == {"jaccard_class", "jaccard_function", "jaccard_parameter"}


def test_a_tree_beyond_the_limit_counts_as_one_of_that_many_strange_nodes():
    found = judge("class A { f() }", "class A { " + "f() " * 60 + "}", max_nodes=50)
    assert (found.accuracy, found.metrics["too_large"], found.metrics["tree_edit_distance"]) == (0.0, 1.0, 50.0)


# Levenshtein


def test_the_distance_of_texts_evens_out_white_space_and_ends_at_one():
    texts = (RULE, RULE.replace(" ", "\n  "), RULE[:34], "", "é" * 99)
    distances = [judge(RULE, text).metrics["levenshtein"] for text in texts]
    assert distances == pytest.approx([0.0, 0.0, 0.5, 1.0, 1.0])

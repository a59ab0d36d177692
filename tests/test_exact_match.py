"""Exact match: answers without their end symbol, compared as text."""

import pytest

from evalsuite.evals.exact_match import answer_text, exact_match


def test_a_finished_answer_loses_its_end_symbol() -> None:
    assert answer_text([5, 7, 2], finished=True) == "5 7"
    assert answer_text([5, 7, 2], finished=False) == "5 7 2"
    assert answer_text([2], finished=True) == ""


def test_the_right_answer_matches_only_without_its_end_symbol() -> None:
    assert exact_match([answer_text([5, 7, 2], finished=True)], ["5 7"]).tolist() == [1.0]


def test_white_space_at_the_ends_does_not_count_but_case_and_inner_space_do() -> None:
    assert exact_match([" a b\n", "A", "a  b", ""], ["a b", "a", "a b", " "]).tolist() == [1.0, 0.0, 0.0, 1.0]


@pytest.mark.parametrize(("hypotheses", "references"), [([], []), (["a"], []), (["a"], ["a", "b"])])
def test_lengths_must_agree(hypotheses: list[str], references: list[str]) -> None:
    with pytest.raises(ValueError, match="give one for each, at least one"):
        exact_match(hypotheses, references)

"""Issue forms: each target's form can be read, and every section that a finding has text for is there."""

import pytest

from miscompile.reports.forms import PARTS, IssueForm, _form, form_of
from miscompile.targets.registry import target_names


@pytest.mark.parametrize("target", target_names())
def test_every_form_can_be_read_and_shows_every_part(target: str) -> None:
    form = form_of(target)
    assert "{title}" in form.title
    shown = [part for section in form.sections for part in section.parts]
    assert sorted(shown) == sorted(PARTS)


def test_a_target_that_is_not_installed_has_the_plain_form() -> None:
    assert form_of("no-such-compiler") == IssueForm()


def test_an_unknown_part_is_named() -> None:
    with pytest.raises(ValueError, match="verse"):
        _form({"section": [{"heading": "H", "parts": ["verse"]}]})


def test_a_form_of_a_settled_target_is_that_of_the_target() -> None:
    assert form_of("onnxruntime==1.20.1") == form_of("onnxruntime")

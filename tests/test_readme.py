"""What the README shows has to work: its example is run, and its files and options exist."""

import re

from tests.zoo_project import ROOT, Project

pytest_plugins = ["pytester"]

README = (ROOT / "README.md").read_text(encoding="utf-8")


def example() -> str:
    (code,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    return code


def test_the_example_records_a_row_and_turns_red_when_the_bot_gets_worse(recorded: Project) -> None:
    """Also beside the rows of a zoo, which share the level with it."""
    project = recorded
    file = project.path / "tests" / "test_support.py"
    file.parent.mkdir()
    file.write_text(example())

    assert project.run("tests/test_support.py").states["my-bot--support--topic"] == "new"
    recorded = project.run("tests/test_support.py", "--snapshot-update")
    assert (recorded.exit, recorded.states["my-bot--support--topic"]) == (0, "recorded")
    again = project.run("tests/test_support.py", "-n2")
    assert (again.exit, again.states) == (0, {"my-bot--support--topic": "ok"})

    file.write_text(example().replace("my_bot(question) ==", "my_bot(question[:2]) =="))  # it is cut short
    worse = project.run("tests/test_support.py")
    assert worse.exit == 1
    assert worse.states == {"my-bot--support--topic": "regressed"}
    assert worse.rows["my-bot--support--topic"]["verdict"]["p"] < 0.04 / 100  # red beside a larger zoo too
    assert "regressed  my-bot  support  topic" in worse.screen


def test_the_example_is_short() -> None:
    assert len(example().strip().splitlines()) <= 36


def test_links_lead_somewhere() -> None:
    for link in re.findall(r"\]\(([^)#]+)\)", README):
        assert link.startswith("http") or (ROOT / link).exists(), link


def test_every_option_is_explained() -> None:
    from evalsuite.options import OPTIONS

    assert [option.flag for option in OPTIONS if f"`{option.flag}" not in README] == []

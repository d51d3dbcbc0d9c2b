import json
import subprocess
import sys

import pytest
import typer

from sparkctl.cli.main import app, main


def exit_code_of(*words: str) -> int:
    with pytest.raises(SystemExit) as caught:
        main(list(words))
    return int(caught.value.code or 0)


def test_help_lists_the_commands_without_loading_them():
    script = (
        "import sys; from sparkctl.cli.main import main\n"
        "try: main(['--help'])\n"
        "except SystemExit: pass\n"
        "print(sorted(m for m in ('paramiko', 'fabric', 'rich', 'pydantic', 'ruamel') if m in sys.modules))"
    )
    printed = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout

    assert "discover" in printed
    assert printed.splitlines()[-1] == "[]"


def test_every_listed_command_can_be_loaded_and_has_help(capsys):
    main_module = sys.modules["sparkctl.cli.main"]
    for name in main_module._COMMANDS:
        assert exit_code_of(name, "--help") == 0
        assert capsys.readouterr().out.startswith(f"Usage: sparkctl {name}")


def test_a_wrong_word_is_a_usage_error_in_words_and_in_json(capsys):
    assert exit_code_of("inventory", "chek") == 2
    assert "hint: `sparkctl inventory --help`" in capsys.readouterr().err

    assert exit_code_of("inventory", "check", "--json", "--bogus") == 2
    printed = json.loads(capsys.readouterr().out)
    assert (printed["command"], printed["exit_code"]) == ("inventory check", 2)
    assert printed["errors"][0]["remedy"] == "`sparkctl inventory check --help`"


def test_a_group_without_a_command_shows_its_help(capsys):
    assert exit_code_of("link") == 2
    shown = capsys.readouterr().err
    assert shown.startswith("Usage: sparkctl link")
    assert "--install-completion" not in shown


def test_without_an_inventory_the_whole_path_does_not_begin(capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SPARKCTL_INVENTORY", raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))

    assert exit_code_of("up") == 2
    printed = capsys.readouterr()
    assert (printed.out, "sparkctl discover --write" in printed.err) == ("", True)


def test_an_invalid_inventory_speaks_json_with_all_problems(tmp_path, capsys):
    file = tmp_path / "c.yaml"
    file.write_text("cluster: x y\nhosts: []\n")

    assert exit_code_of("inventory", "check", str(file), "--json") == 2
    assert len(json.loads(capsys.readouterr().out)["errors"][0]["problems"]) == 2


def test_completion_offers_the_commands():
    environment = {"_SPARKCTL_COMPLETE": "complete_bash", "COMP_WORDS": "sparkctl li", "COMP_CWORD": "1"}
    printed = subprocess.run(
        [sys.executable, "-m", "sparkctl"],
        capture_output=True,
        text=True,
        check=False,
        env={"PATH": "/usr/bin:/bin", **environment},
    ).stdout

    assert printed.split() == ["link"]


def leaf_commands():
    """(words, names of options) of every command that can be typed."""
    root = typer.main.get_command(app)
    context = typer.Context(root, info_name="sparkctl")
    for name in root.list_commands(context):
        command = root.get_command(context, name)
        for words, leaf in (
            [(f"{name} {sub}", child) for sub, child in command.commands.items()]
            if hasattr(command, "commands")
            else [(name, command)]
        ):
            yield words, {option for parameter in leaf.params for option in parameter.opts}


def test_every_command_speaks_json():
    # `lab shell` hands the terminal over to ssh, so nothing is left that could be said.
    assert [words for words, options in leaf_commands() if "--json" not in options] == ["lab shell"]


def test_whatever_changes_a_host_can_be_checked_first_and_asks():
    changing = {"up", "down", "link up", "link down", "serve", "stop", "hosts trust"}

    able = {words for words, options in leaf_commands() if {"--check", "--yes"} <= options}

    assert able == changing


def test_every_command_has_a_first_sentence_of_help():
    root = typer.main.get_command(app)
    context = typer.Context(root, info_name="sparkctl")
    for name in root.list_commands(context):
        assert (root.get_command(context, name).help or "").strip().endswith(".")

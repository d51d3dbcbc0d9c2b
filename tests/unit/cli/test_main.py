import json
import subprocess
import sys

import pytest

from sparkctl.cli.main import main


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

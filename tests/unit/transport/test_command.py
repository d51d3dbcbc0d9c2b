import shlex

from sparkctl.transport.command import Command, CommandResult


def test_arguments_reach_the_program_as_they_are():
    argv = ("printf", "%s", "a b; rm -rf $HOME", "it's")

    words = shlex.split(Command(argv).shell_line())

    assert words[:3] == ["timeout", "--kill-after=5", "30"]
    assert tuple(words[3:]) == argv


def test_the_time_limit_stands_inside_sudo_so_that_it_can_end_root_programs():
    assert Command(("netplan", "apply"), sudo=True, timeout_s=20).shell_line() == (
        "sudo -n timeout --kill-after=5 20 netplan apply"
    )


def test_standard_input_is_never_part_of_the_line():
    command = Command(("cat",), stdin="secret")

    assert "secret" not in command.shell_line() + str(command)


def test_last_words_are_the_last_line_of_stderr_then_stdout():
    command = Command(("x",))

    assert CommandResult("h", command, 1, "out\n", "first\nlast\n\n").last_words() == "last"
    assert CommandResult("h", command, 1, "out\n").last_words() == "out"
    assert CommandResult("h", command, 7, "").last_words() == "exit code 7, no output"

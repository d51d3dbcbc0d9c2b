"""One owner per thing: playbooks never touch what sparkctl does over SSH, and the other way round."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_no_playbook_does_what_depends_on_other_hosts():
    forbidden = re.compile(r"netplan|docker run|_perf\b")

    guilty = [
        str(path.relative_to(ROOT))
        for path in (ROOT / "playbooks").rglob("*.yml")
        if forbidden.search(path.read_text())
    ]

    assert guilty == []


def test_no_command_does_what_playbooks_own():
    forbidden = re.compile(r"""["'](apt|apt-get|useradd|usermod|sysctl)["'],|["']systemctl["'], ["']enable""")

    guilty = [
        str(path.relative_to(ROOT))
        for path in (ROOT / "sparkctl").rglob("*.py")
        if "lab" not in path.relative_to(ROOT).parts and forbidden.search(path.read_text())
    ]

    assert guilty == []

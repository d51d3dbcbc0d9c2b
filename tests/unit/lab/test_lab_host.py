import subprocess
from ipaddress import IPv4Address
from pathlib import Path

import pytest

from sparkctl.errors import UnsafeRefused
from sparkctl.inventory.load import load_cluster
from sparkctl.lab.base import parse_debootstrap_line
from sparkctl.lab.cgroups import parse_cgroup2_mount
from sparkctl.lab.host import parse_mirrors
from sparkctl.lab.inventory_file import inventory_path, render_inventory, write_inventory
from sparkctl.lab.launch import Launch, nspawn_command, render_launch_script
from sparkctl.lab.model import plan_lab
from sparkctl.lab.status import LabHandle, LabState, NodeHandle, NodeState
from sparkctl.lab.trees import parse_mounts_below

DEB822 = """\
Types: deb
URIs: http://mirror.example/debian
Suites: bookworm
Components: main

Types: deb
URIs: http://mirror.example/debian-security
Suites: bookworm-security
"""


@pytest.mark.parametrize(
    ("text", "mirrors"),
    [
        (DEB822, ("http://mirror.example/debian",)),
        ("deb [signed-by=/k.gpg] https://mirror.example/debian/ trixie main\n", ("https://mirror.example/debian",)),
        (
            "URIs: http://snapshot.example/archive/debian/20250520T000000Z\n",
            ("http://snapshot.example/debian",),
        ),
        ("deb http://mirror.example/ubuntu noble main\n# deb http://old.example/debian x main\n", ()),
        (DEB822 + DEB822, ("http://mirror.example/debian",)),
    ],
)
def test_debian_mirrors_are_found_in_apt_sources(text, mirrors):
    assert parse_mirrors((text,)) == mirrors


@pytest.mark.parametrize(
    ("mountinfo", "point"),
    [
        ("30 25 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n", "/sys/fs/cgroup"),
        (
            "30 25 0:26 / /sys/fs/cgroup rw - tmpfs tmpfs rw\n31 30 0:27 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw\n"
            "40 30 0:37 / /sys/fs/cgroup/unified rw shared:9 - cgroup2 cgroup2 rw\n",
            "/sys/fs/cgroup/unified",
        ),
        ("30 25 0:26 / / rw - ext4 /dev/sda rw\n", None),
    ],
)
def test_cgroup2_is_found_on_pure_and_on_hybrid_machines(mountinfo, point):
    assert parse_cgroup2_mount(mountinfo) == point


def test_mounts_are_undone_from_the_deepest_up_and_neighbours_stay():
    mountinfo = "".join(f"1 1 0:1 / {point} rw - ext4 x rw\n" for point in ("/", "/a", "/a/b\\040c", "/ab", "/a/b"))
    assert parse_mounts_below(mountinfo, "/a") == ("/a/b c", "/a/b", "/a")


@pytest.mark.parametrize(
    ("line", "step"),
    [
        ("I: Retrieving sudo 1.9.16p2-3", ("retrieving", "sudo")),
        ("I: Unpacking libc6:amd64...", ("unpacking", "libc6:amd64")),
        ("I: Checking component main on http://mirror.example/debian...", None),
        ("W: Failure", None),
    ],
)
def test_progress_of_debootstrap(line, step):
    assert parse_debootstrap_line(line) == step


def test_the_launch_script_is_valid_and_quotes_what_it_is_given():
    launch = Launch(
        machine="spark-1",
        namespace="sparklab.lab.spark-1",
        cgroup2="/sys/fs/cgroup/unified",
        group="a b/spark-1",
        base="/base",
        directory="/state dir/spark-1",
        machine_id="0" * 32,
        netdevs=("enP7s7",),
        binds=(("/srv/models", "/opt/lab"),),
    )
    script = render_launch_script(launch)
    subprocess.run(("sh", "-n"), input=script, text=True, check=True)
    assert "group='/sys/fs/cgroup/unified/a b/spark-1'" in script
    assert "group='/sys/fs/cgroup/a b/spark-1/node'" in script
    assert "'/state dir/spark-1/root'" in script
    assert script.index("launcher/cgroup.procs") < script.index("mount -t cgroup2") < script.index("nsenter")
    command = nspawn_command(launch)
    assert "--bind-ro=/srv/models:/opt/lab" in command
    assert "--bind=/state dir/spark-1/docker:/var/lib/docker" in command


def test_the_inventory_is_one_that_sparkctl_reads(tmp_path):
    path = tmp_path / "inventory" / "lab.yaml"
    text = render_inventory(_lab(), {"model": "/opt/lab/tiny"})
    assert write_inventory(path, text)
    assert not write_inventory(path, text)
    cluster = load_cluster(path)
    assert [host.name for host in cluster.hosts] == ["spark-1", "spark-2"]
    assert [host.address for host in cluster.hosts] == ["10.213.0.11", "10.213.0.12"]
    assert "expect_gbit_per_s: 2.0" in text
    assert "serving:\n  model: /opt/lab/tiny" in text


def test_an_inventory_of_somebody_else_is_not_overwritten(tmp_path):
    path = tmp_path / "cluster.yaml"
    path.write_text("cluster: mine\n")
    with pytest.raises(UnsafeRefused, match="not written by a lab"):
        inventory_path("lab", path)
    assert inventory_path("x", None) == Path("inventory/x.yaml")


def _lab():
    spec = plan_lab()
    nodes = tuple(
        NodeHandle(
            name=name,
            state=NodeState.READY,
            netns=f"sparklab.lab.{name}",
            address=IPv4Address(f"10.213.0.{11 + index}"),
            leader_pid=1,
            supervisor_pid=1,
            directory=Path("/state/lab", name),
        )
        for index, name in enumerate(spec.nodes)
    )
    return LabHandle(
        name="lab",
        state=LabState.RUNNING,
        spec=spec,
        nodes=nodes,
        directory=Path("/state/lab"),
        key=Path("/state/lab/id_ed25519"),
        known_hosts=Path("/state/lab/known_hosts"),
    )

"""The wheel as users get it: built, unpacked into an empty folder, started from there."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SHIPPED = ("templates/netplan.yaml.j2", "playbooks/provision.yml", "inventory/example.yaml")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    subprocess.run(
        [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder), str(ROOT)],
        check=True,
        capture_output=True,
    )
    return next(folder.glob("dgx_sparkctl-*.whl"))


@pytest.fixture(scope="module")
def unpacked(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    return folder


def run_there(unpacked: Path, script: str) -> str:
    """Run Python with the unpacked wheel in front of everything, away from the checkout."""
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=unpacked.parent,
        env={"PYTHONPATH": str(unpacked), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


def test_it_holds_the_product_and_nothing_else(wheel: Path):
    names = zipfile.ZipFile(wheel).namelist()

    assert {f"sparkctl/_assets/{name}" for name in SHIPPED} <= set(names)
    assert {name.split("/")[0] for name in names if ".dist-info" not in name} == {"sparkctl"}


def test_assets_are_found_in_the_wheel(unpacked: Path):
    script = "import sparkctl; from sparkctl.cli.wiring import asset, asset_path; print(sparkctl.__file__)\n" + "".join(
        f"assert asset({name!r}); print(asset_path({name!r}))\n" for name in SHIPPED
    )

    lines = run_there(unpacked, script).splitlines()

    assert lines == [
        str(unpacked / "sparkctl/__init__.py"),
        *(str(unpacked / "sparkctl/_assets" / name) for name in SHIPPED),
    ]


def test_assets_are_the_same_in_the_checkout(unpacked: Path):
    for name in SHIPPED:
        assert (ROOT / name).read_bytes() == (unpacked / "sparkctl/_assets" / name).read_bytes()


def test_the_command_starts_from_the_wheel(unpacked: Path):
    script = "from sparkctl.cli.main import main; main(['inventory', 'check', '%s'])" % (
        unpacked / "sparkctl/_assets/inventory/example.yaml"
    )

    assert "cluster desk, 2 hosts, no mistakes" in run_there(unpacked, script)

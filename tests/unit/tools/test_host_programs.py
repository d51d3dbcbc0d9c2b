"""The small readings: GPU, Docker, releases, memory, netplan files, programs, identity, what is simulated."""

from ipaddress import ip_address

import pytest

from sparkctl.errors import UnexpectedOutput
from sparkctl.tools.docker_info import ENGINE, EngineState, parse_engine
from sparkctl.tools.identity import IDENTITY, parse_identity
from sparkctl.tools.meminfo import MEMORY, Memory, parse_memory
from sparkctl.tools.netplan_files import FILES, parse_files
from sparkctl.tools.nvidia_smi import GPUS, Gpu, GpuReading, parse_gpus
from sparkctl.tools.programs import look_for, parse_found
from sparkctl.tools.release import DGX_RELEASE, OS_RELEASE, parse_release
from sparkctl.tools.simulated import SIMULATED, parse_simulated
from tests.capture_files import captured, printed


@pytest.mark.parametrize(("machine", "driver"), [("doc", "580.126.09"), ("lab", "580.95.05")])
def test_a_gb10(machine, driver):
    assert parse_gpus(captured(f"nvidia_smi/{machine}--gb10.out", GPUS)) == GpuReading((Gpu("NVIDIA GB10", driver),))


def test_no_nvidia_smi_a_failing_driver_and_no_device_are_three_things():
    assert parse_gpus(printed("", GPUS, exit_code=127)) is None
    failing = parse_gpus(captured("nvidia_smi/doc--driver-fails.out", GPUS, exit_code=9))
    assert failing is not None
    assert failing.complaint.startswith("NVIDIA-SMI has failed")
    none = parse_gpus(captured("nvidia_smi/doc--no-devices.out", GPUS))
    assert none == GpuReading((), "No devices were found")


def test_nvidia_smi_that_says_something_else():
    with pytest.raises(UnexpectedOutput, match="nvidia-smi printed what sparkctl does not know: NVIDIA GB10"):
        parse_gpus(printed("NVIDIA GB10\n", GPUS))


def test_docker_that_answers():
    engine = parse_engine(captured("docker_info/doc--spark.out", ENGINE))
    assert (engine.state, engine.version) == (EngineState.ANSWERS, "28.3.3")
    assert engine.runtimes == ("io.containerd.runc.v2", "nvidia", "runc")
    assert parse_engine(captured("docker_info/lab--ready.out", ENGINE)).version == "26.1.5+dfsg1"


@pytest.mark.parametrize(
    ("words", "state"),
    [
        ("permission denied while trying to connect to the Docker daemon socket", EngineState.REFUSES),
        ("Cannot connect to the Docker daemon at unix:///var/run/docker.sock.", EngineState.SILENT),
    ],
)
def test_docker_that_does_not(words, state):
    engine = parse_engine(printed("{}", ENGINE, exit_code=1, stderr=words))
    assert (engine.state, engine.complaint) == (state, words)


def test_docker_that_puts_its_error_into_the_json():
    assert parse_engine(captured("docker_info/doc--error-in-json.out", ENGINE)).state is EngineState.SILENT


def test_docker_that_is_missing_or_is_podman():
    assert parse_engine(printed("", ENGINE, exit_code=127)).state is EngineState.NOT_INSTALLED
    assert parse_engine(captured("docker_info/doc--podman.out", ENGINE)).state is EngineState.NOT_INSTALLED


@pytest.mark.parametrize("text", ["[]", "{}", "Server: 28"])
def test_docker_that_says_something_else(text):
    with pytest.raises(UnexpectedOutput):
        parse_engine(printed(text, ENGINE))


def test_releases():
    ubuntu = parse_release(captured("os_release/doc--ubuntu.out", OS_RELEASE))
    debian = parse_release(captured("os_release/lab--debian.out", OS_RELEASE))
    assert (ubuntu or {})["PRETTY_NAME"] == "Ubuntu 24.04.3 LTS"
    assert (debian or {})["ID"] == "debian"
    spark = parse_release(captured("dgx_release/doc--spark.out", DGX_RELEASE)) or {}
    assert (spark["DGX_SWBUILD_VERSION"], spark["DGX_OTA_VERSION"]) == ("7.2.3", "7.5.0")
    assert (parse_release(captured("dgx_release/lab--spark.out", DGX_RELEASE)) or {})["DGX_NAME"] == "DGX Spark"
    assert parse_release(printed("", DGX_RELEASE, exit_code=1)) is None
    assert parse_release(printed("# nothing\n\n", DGX_RELEASE)) == {}


@pytest.mark.parametrize("text", ["no assignment", 'A="open'])
def test_a_release_that_is_no_list_of_assignments(text):
    with pytest.raises(UnexpectedOutput):
        parse_release(printed(text, OS_RELEASE))


def test_memory():
    assert parse_memory(captured("meminfo/doc--spark.out", MEMORY)) == Memory(127_600_748 * 1024, 119_876_543 * 1024)
    idle = parse_memory(captured("meminfo/lab--idle.out", MEMORY))
    assert idle is not None
    assert 0 < idle.available_bytes < idle.total_bytes
    assert parse_memory(printed("", MEMORY, exit_code=1)) is None
    with pytest.raises(UnexpectedOutput):
        parse_memory(printed("MemTotal: 5 kB\n", MEMORY))
    with pytest.raises(UnexpectedOutput):
        parse_memory(printed("MemTotal: 5 MB\nMemAvailable: 5 MB\n", MEMORY))


def test_netplan_files_byte_for_byte():
    files = parse_files(captured("netplan_files/doc--two.out", FILES)) or {}
    assert list(files) == ["/etc/netplan/40-cx7.yaml", "/etc/netplan/50-cloud init.yaml"]
    assert files["/etc/netplan/40-cx7.yaml"].endswith("[192.168.101.13/24]\n")
    assert files["/etc/netplan/50-cloud init.yaml"].startswith("# Größe")
    assert not files["/etc/netplan/50-cloud init.yaml"].endswith("\n")
    assert "enP7s7" in (parse_files(captured("netplan_files/lab--management.out", FILES)) or {}).popitem()[1]


def test_no_netplan_files_is_not_the_same_as_not_allowed_to_look():
    assert parse_files(printed("", FILES)) == {}
    assert parse_files(printed("", FILES, exit_code=1, stderr="sudo: a password is required")) is None


@pytest.mark.parametrize("text", ["x", "[9 /etc/a.yaml]\nshort", "[no /etc/a.yaml]\n"])
def test_netplan_sizes_that_do_not_fit(text):
    with pytest.raises(UnexpectedOutput):
        parse_files(printed(text, FILES))


def test_programs():
    command = look_for(("curl", "rsync"))
    assert parse_found(captured("programs/doc--laptop.out", command)) == {"curl", "ping", "rsync"}
    assert "iperf3" in parse_found(captured("programs/lab--spark.out", command))
    assert parse_found(printed("", command)) == frozenset()


def test_identity():
    spark = parse_identity(captured("identity/doc--spark.out", IDENTITY))
    assert spark is not None
    assert (spark.hostname, spark.product, spark.cpu_count) == ("spark-5c2d", "NVIDIA_DGX_Spark", 20)
    assert (spark.server_address, spark.infiniband_dir) == (ip_address("192.168.1.42"), True)
    lab = parse_identity(captured("identity/lab--spark.out", IDENTITY))
    assert lab is not None
    assert lab.server_address == ip_address("10.213.0.11")
    assert parse_identity(printed("", IDENTITY, exit_code=127)) is None


@pytest.mark.parametrize(
    ("connection", "address"),
    [("fe80::9%en0 1 fe80::5 22", "fe80::5"), ("::ffff:1.2.3.4 1 ::ffff:192.0.2.1 22", "192.0.2.1"), ("", None)],
)
def test_the_address_our_connection_arrives_at(connection, address):
    text = captured("identity/doc--spark.out", IDENTITY).stdout.replace(
        "192.168.1.10 51234 192.168.1.42 22", connection
    )
    identity = parse_identity(printed(text, IDENTITY))
    assert identity is not None
    assert identity.server_address == (ip_address(address) if address else None)


def test_something_else_than_a_shell():
    with pytest.raises(UnexpectedOutput, match="the shell printed"):
        parse_identity(printed("Welcome to router OS\n", IDENTITY))


def test_simulated():
    things = parse_simulated(captured("simulated/lab--spark.json", SIMULATED))
    assert "GPU (nvidia-smi)" in things
    assert parse_simulated(printed("", SIMULATED, exit_code=1)) == ()
    for text in ("{}", '[{"how": "x"}]', "nonsense"):
        with pytest.raises(UnexpectedOutput):
            parse_simulated(printed(text, SIMULATED))

from pathlib import Path

from sparkctl.lab.engine_pip import named_paths, passed_environment, without_nested


def test_only_what_steers_pip_and_the_network_is_passed_on() -> None:
    environment = {
        "PIP_FIND_LINKS": "/opt/wheels",
        "https_proxy": "http://proxy:3128",
        "SSL_CERT_FILE": "/etc/ssl/cert.pem",
        "HOME": "/home/me",
        "AWS_SECRET_ACCESS_KEY": "secret",
        "PYTHONPATH": "/somewhere",
    }
    assert passed_environment(environment) == (
        ("PIP_FIND_LINKS", "/opt/wheels"),
        ("SSL_CERT_FILE", "/etc/ssl/cert.pem"),
        ("https_proxy", "http://proxy:3128"),
    )


def test_paths_are_found_in_a_configuration_file() -> None:
    text = """\
[global]
index-url = https://pypi.example/simple
find-links = /srv/wheels/
extra-index-url = file:///srv/pypi/simple file:///srv
constraint = /etc/pip/constraints.txt
"""
    assert named_paths(text) == ("/srv/wheels", "/srv/pypi", "/srv", "/etc/pip/constraints.txt")


def test_nested_paths_are_mounted_once() -> None:
    paths = (Path("/srv/pypi"), Path("/srv"), Path("/etc/pip.conf"), Path("/"), Path("/etc/pip.conf"))
    assert without_nested(paths) == (Path("/srv"), Path("/etc/pip.conf"))

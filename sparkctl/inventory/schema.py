"""The shape of the inventory file, as pydantic models: types, ranges and unknown fields are checked here."""

import re
from ipaddress import IPv4Network
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, field_validator

from sparkctl.inventory.model import (
    DEFAULT_MTU_BYTES,
    DEFAULT_POOL,
    GB10_CAGE_GBIT_PER_S,
    MAX_MTU_BYTES,
    MIN_MTU_BYTES,
)

# RFC 1123 labels: host names become parts of container names, file names and label values.
_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?")

PortNumber = Annotated[int, Field(ge=1, le=65535)]
Degree = Annotated[int, Field(ge=1, le=64)]


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class SshSection(_Section):
    """Defaults for all hosts."""

    user: str | None = None
    port: PortNumber = 22
    key: str | None = None
    known_hosts: str | None = None


class HostSection(_Section):
    """One host; what is absent comes from `ssh`."""

    name: str
    address: str | None = None
    user: str | None = None
    port: PortNumber | None = None
    key: str | None = None
    known_hosts: str | None = None

    @field_validator("name")
    @classmethod
    def _check_name(cls, value: str) -> str:
        if not _NAME.fullmatch(value):
            raise ValueError("use letters, digits and hyphens, at most 63, e.g. spark-a")
        return value

    @field_validator("address")
    @classmethod
    def _check_address(cls, value: str | None) -> str | None:
        if value is not None and (not value or re.search(r"[\s/@]", value)):
            raise ValueError("give a host name or IP address alone; user and port have fields of their own")
        return value


class LinkSection(_Section):
    """Wishes for the links."""

    pool: str = str(DEFAULT_POOL)
    mtu: Annotated[int, Field(ge=MIN_MTU_BYTES, le=MAX_MTU_BYTES)] = DEFAULT_MTU_BYTES
    expect_gbit_per_s: Annotated[float, Field(gt=0, strict=False)] = GB10_CAGE_GBIT_PER_S

    @field_validator("pool")
    @classmethod
    def _check_pool(cls, value: str) -> str:
        network = IPv4Network(value)
        if not network.is_private:
            raise ValueError("must be a private network, such as 10.177.0.0/16")
        if network.prefixlen > 28:
            raise ValueError("too small: four rails with a /30 each need at least a /28")
        return value


class ServingSection(_Section):
    """Wishes for serving."""

    model: str | None = None
    image: str | None = None
    models_dir: str = "~/models"
    port: PortNumber = 8000
    master_port: PortNumber = 25000
    pp: Degree | None = None
    tp: Degree | None = None
    engine_args: tuple[str, ...] = Field(default=(), strict=False)
    env: dict[str, str] = Field(default_factory=dict)


class InventoryFile(_Section):
    """The whole file."""

    cluster: str
    ssh: SshSection = SshSection()
    hosts: Annotated[list[HostSection], Field(min_length=1)]
    links: LinkSection = LinkSection()
    serving: ServingSection = ServingSection()

    @field_validator("cluster")
    @classmethod
    def _check_cluster(cls, value: str) -> str:
        if not _NAME.fullmatch(value):
            raise ValueError("use letters, digits and hyphens, at most 63")
        return value

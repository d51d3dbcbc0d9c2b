"""What the lab's engine image is made of; the hash of it names the image in the cache."""

import hashlib
import platform
from pathlib import Path

SUITE = "bookworm"  # has Python 3.11, the only version that CPU builds of this torch can be counted on for
PACKAGES = ("python3", "python3-venv", "ca-certificates", "libnuma1", "curl")
VLLM = "0.32.0"
TORCH = "2.13.0+cpu"
VENV = "/opt/vllm"
SITE = f"{VENV}/lib/python3.11/site-packages"
REFERENCE = f"sparkctl-lab/vllm-cpu:{VLLM}"
# Entry point and working directory of vllm/vllm-openai, the image that a real pair runs.
ENTRYPOINT = ("vllm", "serve")
WORKING_DIRECTORY = "/vllm-workspace"
ENVIRONMENT = (
    ("PATH", f"{VENV}/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"),
    ("HOME", "/root"),
    ("LANG", "C.UTF-8"),
)

# Counts up when the files in the cache are arranged in another way.
_LAYOUT = "2"
_REQUIREMENTS = Path(__file__).with_name("data") / "engine-requirements.txt"

# An engine is seven Python processes that import for ten seconds of processor time each, a quarter of it spent
# by the garbage collector looking for cycles that imports do not make.
SITECUSTOMIZE = """\
# Lab only: fewer collections while importing.
import gc

gc.set_threshold(1_000_000, 20, 20)
"""

# Parts of the site-packages that a running engine never opens, as glob patterns.
TRIMMED = (
    *("torch/test", "torch/include", "torch/share", "torch/lib/lib*_test.so"),
    *("torch/bin/*Test", "torch/bin/test_*", "torch/bin/protoc*", "torch/bin/*.pt", "torch/bin/*.ptl"),
    *("numba/tests", "numba/cuda/tests", "numpy/**/tests", "sympy/**/tests", "networkx/**/tests", "mpmath/tests"),
    *("supervisor/tests", "setuptools/tests"),
)

# Run in the finished file system. Every module named here is imported by one of the engine's processes; importing
# writes the byte code of all that it pulls in, and asking for a model class writes vLLM's own cache of model facts.
# Without both, each process compiles 3000 files, and each rank starts one process more.
PREPARE = """\
import importlib, pathlib, shutil, sysconfig
site = pathlib.Path(sysconfig.get_paths()["purelib"])
source = next(site.glob("vllm_cpu-*.dist-info"))
alias = site / f"vllm-{source.name.split('-')[1].removesuffix('.dist')}+cpu.dist-info"
if not alias.exists():
    shutil.copytree(source, alias)
    metadata = alias / "METADATA"
    lines = metadata.read_text().split("\\n")
    names = {"Name: ": "Name: vllm", "Version: ": f"Version: {alias.name[5:-10]}"}
    metadata.write_text("\\n".join(next((new for old, new in names.items() if x.startswith(old)), x) for x in lines))
for module in (
    "vllm.entrypoints.cli.main", "vllm.entrypoints.cli.serve", "vllm.entrypoints.openai.api_server",
    "vllm.entrypoints.launchers.api_server.entry", "vllm.v1.engine.core", "vllm.v1.engine.async_llm",
    "vllm.v1.executor.multiproc_executor", "vllm.v1.worker.cpu_worker", "vllm.model_executor.models.llama",
    "vllm.v1.attention.backends.cpu_attn", "vllm.model_executor.model_loader.default_loader",
    "transformers.models.llama.modeling_llama", "transformers.models.gpt2.tokenization_gpt2",
    "torch._dynamo.backends.debugging", "uvicorn.protocols.http.httptools_impl", "uvicorn.lifespan.on",
):
    try:
        importlib.import_module(module)
    except ModuleNotFoundError as missing:
        print(f"not in this version: {missing.name}")
from vllm.model_executor.models.registry import ModelRegistry
ModelRegistry.models["LlamaForCausalLM"].inspect_model_cls()
"""


def requirements() -> tuple[str, ...]:
    """Pinned packages besides torch, one `NAME==VERSION[; marker]` each (pip's requirements file format)."""
    lines = _REQUIREMENTS.read_text().splitlines()
    return tuple(line for line in lines if line and not line.startswith("#"))


def unused_kernel_libraries(cpuinfo: str, machine: str) -> tuple[str, ...]:
    """Files below vllm/ that vLLM will not load on this processor, 100 to 200 MB each.

    cpuinfo: text of /proc/cpuinfo. machine: as `uname -m` prints it; other than x86_64 has only one file.
    Source: `import_kernels` in vllm/platforms/cpu.py, version 0.32.0.
    """
    if machine != "x86_64":
        return ()
    flags = set(next((line for line in cpuinfo.splitlines() if line.startswith("flags")), "").split())
    libraries = (("avx512_bf16", "_C.abi3.so"), ("avx512f", "_C_AVX512.abi3.so"), ("avx2", "_C_AVX2.abi3.so"))
    loaded = next((library for flag, library in libraries if flag in flags), "")
    return tuple(library for _, library in libraries if library != loaded)


def this_machine_lacks() -> tuple[str, ...]:
    """`unused_kernel_libraries` of the machine this runs on."""
    return unused_kernel_libraries(Path("/proc/cpuinfo").read_text(), platform.machine())


def recipe_key(unused: tuple[str, ...]) -> str:
    """Names the image this version builds; changes with every part of the recipe."""
    parts = (_LAYOUT, SUITE, *PACKAGES, TORCH, *requirements(), SITECUSTOMIZE, PREPARE, *TRIMMED, *unused)
    settings = (*ENTRYPOINT, WORKING_DIRECTORY, *(f"{name}={value}" for name, value in ENVIRONMENT))
    return hashlib.sha256("\n".join((*parts, *settings, platform.machine())).encode()).hexdigest()[:12]

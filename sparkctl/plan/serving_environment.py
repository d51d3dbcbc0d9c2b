"""The environment of one rank's container: its own rails, never another node's, and no value left empty."""

from collections.abc import Mapping

from sparkctl.plan.rails import RailAddress

# The engine's own limits. Only our watch on progress ends a start: a first one with JIT and autotuning took 40 minutes
# in the field (DSPARK-2X#19, #40). One step may take 15 minutes, as a first request can compile; longer would only keep
# an engine that has lost a rank from noticing it (seen in vLLM 0.32: /health stays 200 until this limit).
_READY_LIMIT_S = 86_400
_STEP_LIMIT_S = 900


def rank_environment(rails: tuple[RailAddress, ...], *, cache: str) -> Mapping[str, str]:
    """Variables for one rank. rails: own ends, the first one carries the rendezvous; empty for a solo model.

    An interface name differs between nodes, so it is never shared; an empty value is worse than none, because NCCL
    takes it as a name. NCCL_IB_GID_INDEX is left out: NCCL picks the right one, a pinned index breaks (NVIDIA forum).
    Sources: NVIDIA vLLM playbook (interface variables), NVIDIA/dgx-spark-playbooks issue 102 (both twins in
    NCCL_IB_HCA), vLLM envs.py (VLLM_*), triton and flashinfer sources (cache folders).
    """
    variables = {
        "XDG_CACHE_HOME": cache,
        "VLLM_CACHE_ROOT": f"{cache}/vllm",
        "TRITON_CACHE_DIR": f"{cache}/triton",
        "FLASHINFER_WORKSPACE_BASE": cache,
        "VLLM_ENGINE_READY_TIMEOUT_S": str(_READY_LIMIT_S),
        "VLLM_EXECUTE_MODEL_TIMEOUT_SECONDS": str(_STEP_LIMIT_S),
        "VLLM_NO_USAGE_STATS": "1",
        # The weights are on the node; a rank that asks the hub would hang without internet.
        "HF_HUB_OFFLINE": "1",
    }
    if rails:
        netdev = rails[0].netdev
        variables["VLLM_HOST_IP"] = str(rails[0].address)
        for name in ("NCCL_SOCKET_IFNAME", "GLOO_SOCKET_IFNAME", "TP_SOCKET_IFNAME", "UCX_NET_DEVICES"):
            variables[name] = netdev
        devices = [rail.rdma_device for rail in rails if rail.rdma_device]
        if devices:
            variables["NCCL_IB_HCA"] = ",".join(devices)
    return variables

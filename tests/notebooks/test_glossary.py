"""The glossary: each term leads to a heading under which it stands; what people type is there."""

import json
import re
from pathlib import Path

from lightspeed_authoring.site import glossary

CHAPTERS = Path(__file__).parents[2] / "chapters"
# What a practitioner types, by heart and before the glossary was written; the list is not read
# from it.
TYPED = """
TTFT; TPOT; ITL; inter-token latency; goodput; KV cache; paged attention; continuous batching;
in-flight batching; chunked prefill; speculative decoding; prefix caching; prompt caching;
radixattention; disaggregated prefill; GQA; MQA; MLA; MHA; sliding window; FlashAttention;
online softmax; occupancy; warp; SM; HBM; tensor core; L2; shared memory; bank conflict;
coalescing; roofline; arithmetic intensity; operational intensity; ridge point; memory-bound;
compute-bound; GEMM; GEMV; kernel fusion; kernel launch; CUDA graphs; torch.compile; Triton;
MFU; HFU; strong scaling; weak scaling; Amdahl's law; Gustafson; Karp-Flatt; USL; straggler;
all-reduce; allreduce; reduce-scatter; all-gather; all-to-all; ring; tree; double binary tree;
NVLS; SHARP; busbw; algbw; nccl-tests; NVLink; NVSwitch; NVL72; InfiniBand; RoCE; EFA; RDMA;
GPUDirect; PCIe; NUMA; rail-optimized; fat tree; leaf-spine; oversubscription;
bisection bandwidth; incast; PFC; ECN; DCQCN; ECMP; adaptive routing; go-back-N; DDP; FSDP;
HSDP; ZeRO-1; ZeRO-2; ZeRO-3; tensor parallelism; TP; pipeline parallelism; PP;
context parallelism; ring attention; sequence parallelism; expert parallelism; MoE; 1F1B;
interleaved; virtual pipeline; zero bubble; DualPipe; GPipe; activation checkpointing;
gradient checkpointing; gradient accumulation; micro-batch; global batch; bf16; fp16; fp8; E4M3;
E5M2; MXFP4; NVFP4; tf32; int8; int4; loss scaling; mixed precision; master weights;
stochastic rounding; quantization; GPTQ; AWQ; SmoothQuant; NF4; GGUF; LoRA; QLoRA; Little's law;
M/M/1; M/M/c; Erlang C; utilization; tail latency; p99; SLO; SLA; backpressure; load shedding;
closed loop; open loop; coordinated omission; MTBF; MTTR; checkpoint interval; Young-Daly; ETTR;
Xid; ECC; row remapping; DCGM; dcgmi diag; Nsight Systems; nsys; Nsight Compute; ncu; Perfetto;
NVTX; critical path; CUDA stream; data loader; power cap; thermal throttling; TDP;
cost per token; cold start; vLLM; SGLang; TensorRT-LLM; scheduler; preemption; acceptance rate;
draft model; EAGLE; multi-token prediction; Chinchilla; scaling laws; embedding; decode;
prefill; cache line; tiling; wave quantization; structured sparsity; epilogue fusion;
alpha-beta model; PXN; LL128; NCCL_ALGO; MTU; jumbo frame; jitter; silent data corruption;
hot spare; napkin math; TCO; GPU-hour; weight-only quantization; KV cache quantization;
offloading; device mesh; 3D parallelism
"""


def sections(page):
    """Anchor, as JupyterLab has it -> the text under that heading with the heading."""
    cells = json.loads((CHAPTERS / f"{page}.ipynb").read_text("utf-8"))["cells"]
    text = "\n\n".join("".join(c["source"]) for c in cells if c["cell_type"] == "markdown")
    parts = re.split(r"^#{1,4} +(.+)$", text, flags=re.M)
    return {
        re.sub(r"[`*$]", "", title.strip()).replace(" ", "-"): f"{title}\n{under}"
        for title, under in zip(parts[1::2], parts[2::2], strict=True)
    }


def rows():
    [cell] = json.loads((CHAPTERS / "00_glossary.ipynb").read_text("utf-8"))["cells"]
    text = "".join(cell["source"])
    found = glossary.terms(text)
    assert len(found) == len(re.findall(r"^- ", text, re.M)), "a row that the site cannot read"
    return found


def test_each_term_leads_to_a_heading_under_which_it_stands():
    astray = []
    for row in rows():
        under = sections(row.page).get(row.anchor)
        plain = re.sub(r"[*`]", "", re.sub(r"\s+", " ", under or ""))
        stands = any(re.search(rf"(?i)(?<!\w){re.escape(n)}", plain) for n in row.names)
        if not stands:
            astray.append(f"{row.name}: {row.page}#{row.anchor} {'' if under else 'no heading'}")
    assert not astray, "\n".join(astray)


def test_rows_have_a_name_of_their_own_and_a_meaning():
    named = [row.name.lower() for row in rows()]
    assert len(named) == len(set(named)) >= 250
    assert all(row.meaning[0].isupper() or row.meaning[0].isdigit() for row in rows())
    assert all(re.fullmatch(r".*[.!]", row.meaning) and len(row.meaning) > 25 for row in rows())


def test_what_people_type_is_found():
    known = {name.lower().replace("-", " ") for row in rows() for name in row.names}
    typed = [" ".join(word.split()) for word in TYPED.split(";")]
    lost = [word for word in typed if word.lower().replace("-", " ") not in known]
    assert len(typed) >= 180 and len(lost) <= 0.05 * len(typed), lost


def test_the_first_use_of_a_term_is_found_and_a_plain_word_is_left_alone():
    search = glossary.pattern(["KV cache", "TTFT", "ring algorithm"])
    text = "Two KV caches, and TTFTs; nottft, TTFT-like, ring."
    assert [m[0] for m in search.finditer(text)] == ["KV caches", "TTFTs"]

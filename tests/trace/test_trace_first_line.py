"""What the first line says of files in which less is known than one would like."""

import json
import random

import pytest

from lightspeed_tools.trace.diagnosis import diagnose
from lightspeed_tools.trace.made import Job, run, span, write
from lightspeed_tools.trace.pieces import TraceError
from lightspeed_tools.trace.reader import COMMUNICATION, COMPUTE, read
from lightspeed_tools.trace.verdict import headline

ATTENTION = {
    "Input Dims": [[1, 4096, 32, 128]] * 3,
    "Input type": ["c10::BFloat16"] * 3,
    "Concrete Inputs": ["", "", "", "", "", "4096", "4096", "0.", "False", "False"],
}


def event(category, name, ts, dur, tid=1, **args):
    return {"ph": "X", "cat": category, "name": name, "pid": 0, "tid": tid, "ts": ts, "dur": dur,
            "args": args}  # fmt: skip


def launched(number, name, at, start, took, **args):
    tie = {"correlation": number, "External id": number}
    return [
        event("cuda_runtime", "cudaLaunchKernel", at, 3, **tie),
        event("kernel", name, start, took, 7, device=0, stream=7, **tie, **args),
    ]


def told(folder, events, **about):
    path = folder / "trace.json"
    path.write_text(json.dumps(about | {"traceEvents": events}))
    return diagnose([str(path)])


H100 = {"deviceProperties": [{"id": 0, "name": "NVIDIA H100 80GB HBM3"}]}


def steps_of(count, took, name="aten::_flash_attention_forward", steps=3, **shapes):
    """Annotated steps of so many calls of one operator, one after the other on the device."""
    events, number, free = [], 0, 10
    for step in range(steps):
        begin = number * took
        for _ in range(count):
            number += 1
            args = {"External id": number, **shapes}
            events += [event("cpu_op", name, begin + number, 0.9, **args),
                       *launched(number, "k", begin + number, free, took)]  # fmt: skip
            free += took
        events.append(event("user_annotation", f"ProfilerStep#{step}", begin, count * took))
    return events


@pytest.mark.parametrize(("took", "says"), [(10_000, "Fix first: compute"), (400, "Healthy: ")])
@pytest.mark.holds("docs/your-own-question.md", '"Healthy" takes evidence')
def test_a_busy_device_that_is_slow_is_not_healthy(tmp_path, took, says):
    found = told(tmp_path, steps_of(10, took, **ATTENTION), **H100)
    roof = 4 * 32 * 4096**2 * 128 / 989.4e6  # us
    assert says in headline(found)
    assert f"reaches {100 * roof / took:.0f} % of its roofs" in headline(found)


def test_a_step_has_its_time_and_a_file_with_one_is_not_said_to_have_none(tmp_path):
    said = headline(told(tmp_path, steps_of(10, 400, steps=3)))
    assert said.startswith("12 ms for 3 steps, 4 ms each in the median: ")
    gap = [*launched(1, "first", 0, 10, 100), *launched(2, "late", 9_000, 9_010, 100)]
    gap.append(event("cuda_runtime", "cudaMalloc", 200, 8_700))
    one = event("user_annotation", "ProfilerStep#1", 0, 9_200)
    for events, none in ((gap, True), ([*gap, one], False)):
        said = headline(told(tmp_path, events))
        assert "One gap is" in said and (", which has no steps" in said) == none, said


UNKNOWN = {
    "record_shapes=True": (steps_of(10, 400), H100),
    "profile once without graphs": (
        [e for e in steps_of(10, 400) if e["cat"] != "cpu_op"], H100),
    "without a law here: vllm::moe_forward": (
        steps_of(10, 400, name="vllm::moe_forward", **ATTENTION), H100),
    "--hardware mi300x": (steps_of(10, 400, **ATTENTION), {}),
}  # fmt: skip


@pytest.mark.parametrize("remedy", UNKNOWN)
def test_why_compute_is_not_known_has_four_remedies(tmp_path, remedy):
    events, about = UNKNOWN[remedy]
    said = headline(told(tmp_path, events, **about))
    assert "Not known: whether compute is fast" in said and remedy in said
    assert [other for other in UNKNOWN if other in said] == [remedy]


def test_few_kernels_and_steps_that_are_not_marked_are_no_evidence(tmp_path):
    few = told(tmp_path, steps_of(2, 400, **ATTENTION), **H100)
    assert "Not judged: 6 kernels" in headline(few)
    path = tmp_path / "unmarked"
    path.mkdir()
    unmarked = [e for e in steps_of(10, 400, **ATTENTION) if e["cat"] != "user_annotation"]
    assert "whether steps are alike, since none" in headline(told(path, unmarked, **H100))


def test_the_longest_gap_that_nothing_explains_is_named(tmp_path):
    name = "void ns::(anonymous namespace)::late<int>(int*)"
    events = [*launched(1, "first", 0, 10, 5), *launched(2, name, 5, 9_000, 5)]
    said = headline(told(tmp_path, events))
    assert "8.97 ms before late, begins 5 µs after the first event; work from before" in said


def test_one_rank_does_not_call_a_job_healthy_that_waits(tmp_path):
    paths = write(Job(hidden=4096, faults={"slow_rank": 1.12}), tmp_path)
    alone, whole = (headline(diagnose([str(p) for p in some])) for some in (paths[:1], paths))
    assert "takes all 4 ranks; here is 1" in alone and "Healthy" not in alone
    assert "a slow rank (rank 2)" in whole and "takes all" not in whole


def test_names_say_what_communicates(tmp_path):
    sends = [
        "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(x)", "ncclKernel_SendRecv_RING_SIMPLE",
        "void vllm::cross_device_reduce_2stage<__nv_bfloat16, 8>(x)", "mscclKernel_Sum_half",
        "void (anonymous namespace)::multimem_all_reduce_kernel<c10::BFloat16, 16>(x)",
        "tensorrt_llm::kernels::ar_fusion::allreduce_fusion_kernel_oneshot_lamport<x>",
        "tensorrt_llm::kernels::twoShotAllReduceKernel", "mscclpp::allreduce7(x)",
        "quickreduce::allreduce_prototype_twoshot<x>", "nvshmemi_transfer_rma_nbi",
        "void deep_ep::internode_ll::dispatch<true>(x)", "mori::moe::EpDispatchIntraNodeKernel",
        "void dpsk::ep::internode::combine<false, 8>(int4*)", "pplx::a2a_dispatch_send_kernel",
        "c10d::symmetric_memory::barrier_kernel(x)", "kuserbuffers_pullsend",
        "moeA2ADispatchKernel",
    ]  # fmt: skip
    computes = [
        "triton_poi_fused_all_gather_into_tensor_wait_tensor_3", "void small_reduce_kernel<x>",
        "splitKreduce_kernel", "paged_attention_ll4mi_reduce_kernel", "at::native::reduce_kernel",
        "at::native::_scatter_gather_elementwise_kernel", "steps::internode", "_combined_routing",
    ]  # fmt: skip
    events = [event("kernel", name, n, 1, 7) for n, name in enumerate([*sends, *computes])]
    path = tmp_path / "t.json"
    path.write_text(json.dumps(events))
    kinds = list(read(path).device.kind)
    assert kinds == [COMMUNICATION] * len(sends) + [COMPUTE] * len(computes)


def test_capturing_graphs_is_warming_up(tmp_path):
    events = [
        *launched(1, "first", 0, 5, 5), event("cuda_runtime", "cudaStreamBeginCapture", 20, 2),
        event("cuda_runtime", "cudaStreamEndCapture", 800, 5), *launched(2, "a", 900, 905, 100),
    ]  # fmt: skip
    found = told(tmp_path, events)
    assert found.all_accounts[0].causes["compile"] == 785_000
    assert found.gains[0].cause == "compile" and "graphs are captured, not a run" in headline(found)


@pytest.mark.parametrize("size", [0.15, 0.3])
@pytest.mark.parametrize(("fault", "cause"), [("loader", "loader"), ("slow_link", "link"),
                                              ("slow_rank", "rank")])  # fmt: skip
def test_launches_that_the_file_lacks_are_inferred(tmp_path, fault, cause, size):
    job = Job(hidden=1024, layers=5, faults={fault: {"slow_rank": 1.4}.get(fault, 5)})
    truth = span(run(job)) / span(run(job.without(fault)))
    lacks = random.Random(1)
    paths = write(job, tmp_path)
    for path in paths:
        whole = json.loads(path.read_text())
        whole["traceEvents"] = [
            e for e in whole["traceEvents"]
            if e["name"] != "cudaLaunchKernel" or lacks.random() > size
        ]  # fmt: skip
        path.write_text(json.dumps(whole))
    found = diagnose([str(path) for path in paths])
    assert abs(found.closure) < 0.03 and found.gains[0].cause == cause
    assert found.gains[0].gain == pytest.approx(truth, rel=0.12)


@pytest.mark.parametrize(
    ("fault", "size", "cause"), [("slow_rank", 1.4, "rank"), ("slow_link", 5, "link")]
)
def test_recordings_may_begin_at_different_collectives(tmp_path, fault, size, cause):
    paths = write(Job(hidden=1024, layers=5, steps=3, faults={fault: size}), tmp_path)
    for skips, path in enumerate(paths):
        whole = json.loads(path.read_text())
        listed = sorted(whole["traceEvents"], key=lambda e: e["ts"])
        sums = [e for e in listed if "AllReduce" in e["name"]]
        begin = sums[skips]["ts"]
        gone = {
            e["args"]["correlation"] for e in listed if e["cat"] == "kernel" and e["ts"] < begin
        }
        whole["traceEvents"] = [
            e for e in listed
            if e["args"].get("correlation") not in gone and e["ts"] + e["dur"] > begin
        ]  # fmt: skip
        path.write_text(json.dumps(whole))
    found = diagnose([str(path) for path in paths])
    assert abs(found.closure) < 0.01 and found.gains[0].cause == cause
    assert any("not on all ranks" in note for note in found.notes)


def test_calls_whose_rounded_times_overlap_come_one_after_the_other(tmp_path):
    events = [
        *launched(1, "first", 0, 5, 5), event("cuda_runtime", "cudaFree", 10, 500.001),
        event("cuda_runtime", "cudaMalloc", 510, 490), *launched(2, "a", 1000, 1005, 200),
    ]  # fmt: skip
    (gain,) = (g for g in told(tmp_path, events).gains if g.cause == "allocator")
    assert gain.gain == pytest.approx(1200 / 210, rel=0.01)


def test_files_that_are_no_ranks_of_one_job_are_refused(tmp_path):
    paths = []
    for rank in (0, 9):
        paths.append(tmp_path / f"r{rank}.json")
        about = {"distributedInfo": {"rank": rank, "world_size": 2}}
        paths[-1].write_text(json.dumps(about | {"traceEvents": launched(1, "gemm", 0, 5, 5)}))
    with pytest.raises(TraceError, match="rank 9 of 2 ranks; expected 0 to 1"):
        diagnose([str(path) for path in paths])
    with pytest.raises(TraceError, match="given 2 times"):
        diagnose([str(paths[0])] * 2)

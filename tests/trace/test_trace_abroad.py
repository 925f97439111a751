"""Traits of profiles that others published, made small, each with its truth."""

import json
import sqlite3
from contextlib import closing

import pytest

from lightspeed_cli.main import main
from lightspeed_models.cards import chip_of
from lightspeed_tools.trace.diagnosis import diagnose
from lightspeed_tools.trace.folders import trace_files
from lightspeed_tools.trace.made import Job, write
from lightspeed_tools.trace.operators import convolved, packed, work_of
from lightspeed_tools.trace.pieces import TraceError
from lightspeed_tools.trace.report import as_data
from lightspeed_tools.trace.verdict import headline

ABOUT = {"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "NVIDIA H100 80GB HBM3"}]}


def x(category, name, ts, dur, tid=1, pid=1, **args):
    return {"ph": "X", "cat": category, "name": name, "ts": ts, "dur": dur, "pid": pid, "tid": tid,
            "args": args}  # fmt: skip


def diagnosed(folder, events, **about):
    path = folder / "trace.json"
    path.write_text(json.dumps(ABOUT | about | {"traceEvents": events}))
    return diagnose([str(path)])


def rewritten(paths, change):
    """The files of a job's ranks with their documents changed by rank."""
    whole = {rank: json.loads(path.read_text()) for rank, path in enumerate(paths)}
    change(whole)
    for rank, path in enumerate(paths):
        path.write_text(json.dumps(whole[rank]))
    return [str(path) for path in paths]


def pause(steps=4, kernels=300, length=60_000):
    """Launches 10 µs apart, kernels of 100 µs; once a step the host does something else."""
    events, now, free, number = [], 0.0, 0.0, 1
    for step in range(steps):
        begin = now
        for _ in range(kernels):
            tie = {"External id": number, "correlation": number}
            events += [x("cpu_op", "aten::add", now, 8, **{"External id": number}),
                       x("cuda_runtime", "cudaLaunchKernel", now + 2, 4, **tie)]  # fmt: skip
            free = max(free, now + 8)
            events.append(x("kernel", "add", free, 100, 7, 0, **tie, device=0, stream=7))
            free, now, number = free + 101, now + 10, number + 1
        events.append(x("cuda_runtime", "cudaDeviceSynchronize", now, free - now))
        now = free + 5
        events.append(x("python_function", "train/log.py(91): save_log", now, length))
        events.append(x("python_function", "train/main.py(7): main", now - 1, 40 * length))
        now += length
        events.append(x("user_annotation", f"ProfilerStep#{step}", begin, now - begin))
    return events


def test_one_long_gap_a_step_is_a_pause_and_not_launch_bound(tmp_path):
    found = diagnosed(tmp_path, pause())
    said = headline(found)
    assert (
        "Fix first: the host stopping (3 times, for up to 60 ms, in log.py(91): save_log)" in said
    )
    assert "launch" not in said
    span = found.all_accounts[0].span
    assert found.gains[0].gain == pytest.approx(span / (span - 3 * 60e6), rel=0.01)


def test_many_short_gaps_are_launch_bound(tmp_path):
    files = write(Job(hidden=1024, faults={"launch_bound": 30}), tmp_path)
    said = headline(diagnose([str(path) for path in files]))
    assert "launching too late" in said and "launch-bound" in said and "stopping" not in said


def is_comm(event):
    return event.get("cat") == "kernel" and "nccl" in event["name"]


def stop_host(whole, rank=2, length=30e3):
    """The host of one rank stops once, after a synchronize; the others wait in their collective."""
    events = {r: data["traceEvents"] for r, data in whole.items()}
    sums = {r: sorted(filter(is_comm, e), key=lambda one: one["ts"]) for r, e in events.items()}
    ends = sorted(e["ts"] + e["dur"] for e in events[rank] if "Synchronize" in e["name"])
    cut = ends[len(ends) // 2 - 1]
    at = next(i for i, one in enumerate(sums[rank]) if one["ts"] >= cut)
    for r, listed in events.items():
        hit = sums[r][at]
        start, end = hit["ts"], hit["ts"] + hit["dur"]
        for e in listed:
            if e is hit:
                continue
            begin, stop = e["ts"], e["ts"] + e.get("dur", 0)
            later = begin >= cut if r == rank else begin > start if e["cat"] == "kernel" else (
                begin >= end - 1)  # fmt: skip
            if later:
                e["ts"] += length
            elif e["cat"] != "kernel" and stop >= (cut + 1 if r == rank else end):
                e["dur"] += length
        hit["ts" if r == rank else "dur"] += length


def test_where_one_host_alone_stopped_its_rank_is_named(tmp_path):
    job = Job(ranks=4, steps=3, faults={"no_overlap": 1})
    paths = write(job, tmp_path)
    before = diagnose([str(path) for path in paths]).all_accounts[0].span
    found = diagnose(rewritten(paths, stop_host))
    said = headline(found)
    assert "the host stopping (rank 2 alone, once, for 30 ms" in said
    assert "waiting for rank 2" in said and found.waits.late == 2
    truth = found.all_accounts[0].span / before
    assert found.gains[0].gain == pytest.approx(truth, rel=0.01) and 1.5 < truth < 1.7


def as_before_2_2(whole, kind, kernel):
    """Collectives as PyTorch before 2.2 wrote them: named round their launch alone."""
    for data in whole.values():
        events, more = data["traceEvents"], []
        launches = {e["args"].get("correlation"): e for e in events if "Launch" in e["name"]}
        for e in filter(is_comm, events):
            args = e["args"]
            e["args"] = {k: args[k] for k in ("External id", "correlation", "device", "stream")}
            e["name"] = f"ncclKernel_{kernel}_RING_LL_Sum_float(ncclDevComm*, unsigned long)"
            call = launches[args["correlation"]]
            for n, (category, name) in enumerate((
                ("cpu_op", f"c10d::{kind}_"), ("cpu_op", "record_param_comms"),
                ("user_annotation", f"nccl:{kind}"),
            )):  # fmt: skip
                more.append(x(category, name, call["ts"] - 0.3 + 0.1 * n,
                              call["dur"] + 0.6 - 0.2 * n, call["tid"], call["pid"]))  # fmt: skip
        data["traceEvents"] = events + more


def test_an_all_to_all_of_before_2_2_is_told_as_its_all_reduce_twin(tmp_path):
    said = {}
    for kind, kernel in (("alltoall_base", "SendRecv"), ("allreduce", "AllReduce"), ("", "")):
        folder = tmp_path / (kind or "today")
        folder.mkdir()
        paths = write(Job(faults={"slow_rank": 1.35}), folder)
        files = [str(path) for path in paths]
        if kind:
            files = rewritten(paths, lambda whole: as_before_2_2(whole, kind, kernel))  # noqa: B023
        found = diagnose(files)
        waits = found.waits
        said[kind] = headline(found), waits.waiting, waits.transferring, waits.late
    assert said["alltoall_base"] == said["allreduce"] == said[""]
    assert "a slow rank (rank 2)" in said[""][0] and "The others wait for rank 2" in said[""][0]


def test_waiting_and_transferring_are_apart_by_rank_and_one_rank_can_not_tell(tmp_path, capsys):
    paths = [str(p) for p in write(Job(faults={"slow_rank": 1.5, "no_overlap": 1}), tmp_path)]
    found = diagnose(paths)
    for at, account in enumerate(found.all_accounts):
        both = found.waits.waiting[at] + found.waits.transferring[at]
        assert both == pytest.approx(account.exposed_communication, abs=100)
    assert found.waits.late == 2 and found.waits.waiting[2] < min(
        found.waits.waiting[at] for at in (0, 1, 3)
    )
    assert main(["trace", *paths]) == 0
    assert "others waited for it" in "\n".join(capsys.readouterr().out.splitlines()[:4])
    assert "can't be told from one rank: it takes all 4" in headline(diagnose(paths[:1]))


def gemms(rocm, count=10, took=365):
    """Products of one size; ROCm of old ties launch and kernel by an External id of their own."""
    events = []
    for n in range(count):
        outer, tie, at = 1000 + n, 80 + n, 1000 + 10 * n
        events.append(x("cpu_op", "aten::mm", at, 9, **{
            "External id": outer, "Input Dims": [[4097, 4097], [4097, 4097]],
            "Input type": ["c10::BFloat16"] * 2}))  # fmt: skip
        ids = {"External id": tie} if rocm else {"External id": outer, "correlation": tie}
        name = "hipExtModuleLaunchKernel" if rocm else "cudaLaunchKernel"
        events += [x("cuda_runtime", name, at + 3, 3, **ids),
                   x("kernel", "gemm", 1030 + took * n, took, 7, 0, **ids)]  # fmt: skip
    return events


def test_external_ids_of_rocm_link_as_correlations_do(tmp_path):
    rocm, cuda = (as_data(diagnosed(tmp_path, gemms(old))) for old in (True, False))
    assert rocm["compute"] == cuda["compute"] and rocm["compute"]["held_to_a_roof"] == 1.0
    assert "Fix first: compute itself" in rocm["headline"] == cuda["headline"]


def warm_up():
    """Five steps of 20 ms, the first with 6 s in the driver."""
    events, now, number = [], 0.0, 1
    for step in range(5):
        slow = 6e6 if step == 0 else 0
        begin, call = now, now + 100
        if slow:
            tie = {"correlation": number}
            events += [x("cuda_runtime", "cudaMemcpyAsync", now + 5, 5, **tie),
                       x("gpu_memcpy", "Memcpy", now + 12, 10, 7, 0, **tie, device=0, stream=7),
                       x("cuda_runtime", "cudaFree", call, 0.9 * slow)]  # fmt: skip
            number, call = number + 1, call + slow
        free = call + 20
        for _ in range(40):
            tie = {"External id": number, "correlation": number}
            events += [x("cpu_op", "aten::mm", call, 8, **{"External id": number}),
                       x("cuda_runtime", "cudaLaunchKernel", call + 2, 4, **tie)]  # fmt: skip
            start = max(free, call + 12)
            events.append(x("kernel", "gemm", start, 450, 7, 0, **tie, device=0, stream=7))
            free, call, number = start + 451, call + 20, number + 1
        now = max(free, begin + 20_000 + slow)
        events.append(x("user_annotation", f"ProfilerStep#{step}", begin, now - begin))
    return events


def test_a_step_unlike_the_others_is_set_aside_and_said(tmp_path):
    found = diagnosed(tmp_path, warm_up())
    said = headline(found)
    assert "Set aside: step 0 of 5, which took up to 30" in said and "cudaFree" in said
    assert "schedule(wait=1, warmup=1" in said and "allocator" not in said
    assert found.all_accounts[0].span == pytest.approx(80e6, rel=0.05)
    assert as_data(found)["set_aside"]["steps"] == [0]


def test_a_kernel_of_two_microseconds_is_not_judged(tmp_path):
    events = [x("cuda_runtime", "cudaLaunchKernel", 0, 4, correlation=1),
              x("kernel", "triton_poi_fused_add_0", 10, 1.76, 7, 0, correlation=1)]  # fmt: skip
    assert "Not judged: 1 kernel in 1.76 µs" in headline(diagnosed(tmp_path, events))


def test_gains_whose_premise_no_file_shows_have_no_figure(tmp_path):
    for fault, size in (("no_overlap", 1), ("small_products", 16)):
        folder = tmp_path / fault
        folder.mkdir()
        found = diagnose([str(p) for p in write(Job(hidden=1024, faults={fault: size}), folder)])
        data = as_data(found)
        assert "by how much is not said" in data["headline"] and "at most" not in data["headline"]
        assert data["gains"][0]["gain_at_most"] is None and data["gains"][0]["premise"]


def test_a_folder_of_tensorboard_gives_the_latest_recording_of_each_worker(tmp_path, capsys):
    for path in write(Job(ranks=2), tmp_path):
        rank = path.name.removesuffix(".json")[-1]
        text = path.read_text()
        path.rename(tmp_path / f"host_{rank}.1700000000000.pt.trace.json")
        (tmp_path / f"host_{rank}.1700000000999.pt.trace.json").write_text(text)
    files, notes = trace_files([str(tmp_path)])
    assert len(files) == 2 and all("999" in file for file in files) and "2 earlier" in notes[0]
    assert main(["trace", str(tmp_path)]) == 0
    assert "2 earlier recordings" in capsys.readouterr().out
    (tmp_path / "empty").mkdir()
    with pytest.raises(TraceError, match="no profile in this folder"):
        trace_files([str(tmp_path / "empty")])


def test_a_profile_of_the_host_alone_is_told_by_its_operators(tmp_path, capsys):
    events = [x("cpu_op", "aten::mm", 10, 80, **{"External id": 2}),
              x("cpu_op", "aten::linear", 0, 100, **{"External id": 1}),
              x("cuda_runtime", "cudaLaunchKernel", 5, 1, correlation=4)]  # fmt: skip
    path = tmp_path / "cpu.json"
    path.write_text(json.dumps({"traceEvents": events}))
    assert main(["trace", str(path)]) == 0
    said = capsys.readouterr().out
    assert "CPU only: 100 µs in operators, most in aten::mm (1 × in 80 µs, 80 %)" in said
    assert "ask for ProfilerActivity.CUDA" in said
    assert main(["trace", str(path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["operators"][1]["us"] == pytest.approx(20)


def exported(folder, events):
    """The tables of nsys export that hold the same events."""
    path = folder / "report.sqlite"
    names, strings = {}, []

    def number(name):
        if name not in names:
            names[name] = len(names)
            strings.append((names[name], name))
        return names[name]

    rows = {"KERNEL": [], "RUNTIME": [], "NVTX": []}
    for e in events:
        start, args = round(e["ts"] * 1000), e["args"]
        span = start, start + round(e["dur"] * 1000)
        if e["cat"] == "kernel":
            rows["KERNEL"].append((*span, 0, 7, args["correlation"], number(e["name"])))
        elif e["cat"] == "cuda_runtime":
            name = number(f"{e['name']}_v7000")
            rows["RUNTIME"].append((*span, 1, args.get("correlation", 0), name))
        elif e["cat"] == "user_annotation":
            rows["NVTX"].append((*span, 1, e["name"], None))
    with closing(sqlite3.connect(path)) as base:
        base.execute("CREATE TABLE StringIds (id INTEGER, value TEXT)")
        base.execute("CREATE TABLE TARGET_INFO_GPU (id INTEGER, name TEXT)")
        base.execute("INSERT INTO TARGET_INFO_GPU VALUES (0, 'NVIDIA H100 80GB HBM3')")
        base.executemany("INSERT INTO StringIds VALUES (?, ?)", strings)
        for table, columns in (
            ("CUPTI_ACTIVITY_KIND_KERNEL",
             "start, end, deviceId, streamId, correlationId, demangledName"),
            ("CUPTI_ACTIVITY_KIND_RUNTIME", "start, end, globalTid, correlationId, nameId"),
            ("NVTX_EVENTS", "start, end, globalTid, text, textId"),
        ):  # fmt: skip
            listed = rows[next(key for key in rows if key in table)]
            base.execute(f"CREATE TABLE {table} ({columns})")
            marks = ", ".join("?" * len(columns.split(",")))
            base.executemany(f"INSERT INTO {table} VALUES ({marks})", listed)
        base.commit()
    return path


def test_an_export_of_nsight_systems_gives_the_account_of_its_twin(tmp_path):
    for events in (pause(), warm_up()):
        events = [e for e in events if e["cat"] in ("kernel", "cuda_runtime", "user_annotation")]
        twin = diagnosed(tmp_path, events)
        path = exported(tmp_path, events)
        found = diagnose([str(path)])
        assert headline(found) == headline(twin) and found.closure == twin.closure
        ours, theirs = found.all_accounts[0], twin.all_accounts[0]
        assert (ours.name, ours.causes, ours.span) == (theirs.name, theirs.causes, theirs.span)
        path.unlink()


def test_a_cuda_graph_that_nsight_recorded_whole_keeps_the_device_busy(tmp_path):
    """As a real export of 2025.5.2 has it: a table beside the kernels, one row a launch."""
    path = exported(tmp_path, [x("kernel", "gemm", 0, 10, correlation=1)])
    with closing(sqlite3.connect(path)) as base:
        base.execute(
            "CREATE TABLE CUPTI_ACTIVITY_KIND_GRAPH_TRACE"
            " (start, end, deviceId, streamId, correlationId, graphId)"
        )
        row = "(10000, 90000, 0, 7, 2, 3)"
        base.execute(f"INSERT INTO CUPTI_ACTIVITY_KIND_GRAPH_TRACE VALUES {row}")
        base.commit()
    account = diagnose([str(path)]).all_accounts[0]
    assert account.span == 90_000 and account.kernels == 2 and not account.causes


@pytest.mark.parametrize(
    ("driver", "key"),
    [
        ("NVIDIA H800", "h800"), ("NVIDIA A800-SXM4-80GB", "a800"), ("NVIDIA H20", "h20"),
        ("NVIDIA GH200 480GB", "gh200"), ("AMD Instinct MI325X", "mi325x"), ("NVIDIA L40S", "l40s"),
        ("NVIDIA A10G", "a10g"), ("AMD Instinct MI300X VF", "mi300x"), ("NVIDIA GB300", "gb300"),
        ("NVIDIA B300 SXM6 AC", "b300"), ("Tesla V100-SXM2-16GB", "v100_sxm_16gb"),
        ("NVIDIA RTX PRO 6000 Blackwell Server Edition", "rtx_pro_6000"),
        ("NVIDIA H100 NVL", "h100_nvl"), ("NVIDIA A100 80GB PCIe", "a100_pcie_80gb"),
        ("NVIDIA A800 80GB PCIe", None), ("NVIDIA GeForce RTX 4090 Laptop GPU", None), ("", None),
    ],
)  # fmt: skip
def test_drivers_names_of_chips_and_their_variants(driver, key):
    chip = chip_of(driver)
    assert (chip and chip.key) == key


def work(name, dims, types="c10::BFloat16", values=None):
    args = {"Input Dims": dims, "Input type": [types] * len(dims), "Concrete Inputs": values}
    return work_of(name, packed(args, "convolution"))


def brute_convolution(image, filters, stride, padding):
    """Multiplications of a filter with what it sees, place by place, padding counted."""
    (_, _, height, width), (out, depth, down, across) = image, filters
    rows = range(-padding, height + padding - down + 1, stride)
    columns = range(-padding, width + padding - across + 1, stride)
    return 2 * image[0] * out * depth * down * across * len(rows) * len(columns)


@pytest.mark.parametrize(("stride", "padding"), [(1, 0), (2, 3), (3, 1)])
def test_operators_have_the_work_of_their_definitions(stride, padding):
    image, filters = [2, 4, 9, 8], [6, 4, 3, 2]
    lists = [f"[{padding}, {padding}]", f"[{stride}, {stride}]", "[1, 1]", "1"]
    forward = work("aten::cudnn_convolution", [image, filters, [], [], [], []],
                   values=["", "", *lists])  # fmt: skip
    assert forward.flops == brute_convolution(image, filters, stride, padding)
    places = convolved(image[2:], filters[2:], [stride] * 2, [padding] * 2, [1, 1])
    back = work("aten::convolution_backward", [[2, 6, *places], image, filters],
                values=["", "", "", "[True, True, False]"])  # fmt: skip
    assert back.flops == 2 * forward.flops
    # tokens, experts with gated weights, two chosen by each
    dims = [[16, 64], [8, 256, 64], [8, 64, 128], [16, 2], [16, 2]]
    experts = work("vllm::outplace_fused_experts", dims)
    assert experts.flops == 16 * 2 * 2 * (256 * 64 + 64 * 128)
    normed = work("_C::rms_norm", [[32, 64], [32, 64], [64]])
    assert normed.size == 2 * (32 * 64 * 2 + 64) and normed.flops == 0
    scaled = work("_C::cutlass_scaled_mm", [[32, 48], [32, 64], [64, 48], [1], [1]])
    assert scaled.shape == (1, 32, 64, 48)
    assert work("vllm::moe_forward", [[16, 64], [16, 8]]) is None
    assert work("vllm::gptq_marlin_gemm", [[16, 64], [8, 64]]) is None

"""Files are read whatever their layout, and what is no trace is refused with a reason."""

import gzip
import json
import random

import pytest

from lightspeed_tools.trace import pieces
from lightspeed_tools.trace.pieces import TraceError, events, nanoseconds
from lightspeed_tools.trace.reader import COMMUNICATES, read

KERNEL = {
    "ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": 10, "dur": 5,
    "args": {"device": 0, "stream": 7, "correlation": 1},
}  # fmt: skip


def saved(folder, data, name="rank0.json"):
    path = folder / name
    path.write_bytes(data if isinstance(data, bytes) else json.dumps(data).encode())
    return path


@pytest.mark.parametrize("size", [64, 200, 1000])
@pytest.mark.parametrize("indent", [None, 2])
def test_pieces_hold_every_event_wherever_they_are_cut(tmp_path, monkeypatch, size, indent):
    monkeypatch.setattr(pieces, "PIECE", size)
    hostile = ["}, {", '"}, {"ph": "X"', "[{", "}]", "\\", "größer", '"traceEvents": [']
    made = random.Random(size)
    listed = [
        KERNEL
        | {"name": made.choice(hostile), "args": {"list": [{"a": 1}, {"b": [{}, {}]}], "n": n}}
        for n in range(40)
    ]
    about = {"schemaVersion": 1, "distributedInfo": {"rank": 3}}
    trailer = {"deviceProperties": [{"id": 0}, {"id": 1}], "traceName": "}, {"}
    for whole in (
        about | {"traceEvents": listed} | trailer,
        {"traceEvents": listed} | about | trailer,
    ):
        path = saved(tmp_path, json.dumps(whole, indent=indent).encode())
        *lists, said = events(path)
        assert [event for part in lists for event in part] == listed
        assert said == about | trailer
    *lists, said = events(saved(tmp_path, json.dumps(listed, indent=indent).encode()))
    assert [event for part in lists for event in part] == listed and said == {}


@pytest.mark.parametrize("packed", [False, True])
def test_a_cut_file_is_refused_with_the_byte(tmp_path, packed):
    whole = json.dumps({"traceEvents": [KERNEL] * 50, "traceName": "x"}).encode()
    for length in (len(whole) // 3, len(whole) // 2, len(whole) - 30):
        data = gzip.compress(whole)[: 40 + length // 200] if packed else whole[:length]
        path = saved(tmp_path, data, "t.json.gz" if packed else "t.json")
        with pytest.raises(TraceError, match="cut off") as told:
            read(path)
        assert packed or f"{length:,}" in str(told.value)


def test_damage_in_the_middle_is_refused_with_its_byte(tmp_path, monkeypatch):
    monkeypatch.setattr(pieces, "PIECE", 1 << 16)
    good = json.dumps(KERNEL | {"name": "x" * 3000})
    text = '{"traceEvents": [' + ", ".join([good] * 3 + ['{"ph": oops}'] + [good] * 900) + "]}"
    with pytest.raises(TraceError, match=f"damaged at byte {text.index('oops'):,}"):
        read(saved(tmp_path, text.encode()))


@pytest.mark.parametrize(
    "name, data, reason",
    [
        ("a.sqlite", b"SQLite format 3\0", "can't be read"),
        ("a.json", b"SQLite format 3\0" + b"x" * 200, "can't be read"),
        ("a.nsys-rep", b"x", "nsys export --type sqlite"),
        ("host.xplane.pb", b"\n\x01", "XPlane"),
        ("results.csv", b"Kind,Agent", "rocprof"),
        ("et.json", b'{"schema": "1.0.1", "nodes": [{"id": 1}]}', "Chakra"),
        ("908_results.json", b'{"rocprofiler-sdk-tool": []}', "rocprofv3"),
        ("a.json", b"PK\x03\x04zip", "zip"),
        ("a.json", b"", "empty"),
        ("a.json", b"hello", "not JSON"),
        ("a.json", b'{"a": 1}', "no list traceEvents"),
        ("a.json", b'{"a": 1', "cut off at byte 7"),
        ("a.json", b'{"traceEvents": []}', "no device events"),
        ("a.json", b"[]", "no device events"),
    ],
)
def test_other_files_are_refused_by_name(tmp_path, name, data, reason):
    with pytest.raises(TraceError, match=reason) as told:
        read(saved(tmp_path, data, name))
    assert name in str(told.value)


def test_a_profile_of_jax_is_named(tmp_path):
    named = {"ph": "M", "name": "process_name", "pid": 3, "args": {"name": "/device:TPU:0"}}
    with pytest.raises(TraceError, match="JAX"):
        read(saved(tmp_path, {"traceEvents": [named, {"ph": "X", "ts": 1, "dur": 2}]}))


def test_a_device_of_another_kind_is_named(tmp_path):
    other = KERNEL | {"cat": "mtia_ccp_events"}
    with pytest.raises(TraceError, match="1 of 'mtia_ccp_events'"):
        read(saved(tmp_path, {"traceEvents": [other]}))


def test_old_and_odd_events_are_read(tmp_path):
    odd = [
        KERNEL | {"cat": "Kernel", "tid": "stream 7", "args": {"stream": "7"}},
        KERNEL | {"cat": "Memcpy", "ts": 15.25, "args": None},
        KERNEL | {"cat": "gpu_memset", "args": {"correlation": 2**70, "device": "1"}},
        KERNEL | {"dur": None},
        {k: v for k, v in KERNEL.items() if k != "dur"},
        KERNEL | {"ts": "soon"},
        KERNEL | {"dur": -1},
        KERNEL | {"name": ["k"]},
        {"ph": "X", "cat": "Runtime", "name": "cudaLaunchKernel", "ts": 1, "dur": 1, "tid": "a"},
        {"ph": "X", "cat": "Operator", "name": "aten::mm", "ts": 1, "dur": 1},
        "text", None, 7, {},
    ]  # fmt: skip
    text = json.dumps(odd).encode().replace(b'"k"', b'"k\xff\xfe"')
    trace = read(saved(tmp_path, text))
    assert len(trace.device) == 4 and trace.left_out == 4 and len(trace.calls) == 1
    assert trace.devices == [0, 1]
    assert 15_250 in trace.device.start


def test_a_bare_list_may_lack_its_bracket_and_names_may_have_lone_backslashes(tmp_path):
    assert len(read(saved(tmp_path, json.dumps([KERNEL] * 3).encode()[:-1])).device) == 3
    text = json.dumps({"traceEvents": [KERNEL]}).encode().replace(b'"k"', rb'"C:\Users\k"')
    assert read(saved(tmp_path, text)).names == ["C:\\Users\\k"]


def test_nanoseconds_are_exact_however_long_the_time_is(tmp_path):
    for whole in (0, 7, 4_458_676_522_690, 8_796_093_022_207):
        for part in range(0, 1000, 7):
            assert nanoseconds(float(f"{whole}.{part:03}")) == whole * 1000 + part
    since_1970 = "1712195495519866.813"
    text = json.dumps({"traceEvents": [KERNEL] * 2}).replace('"ts": 10', f'"ts": {since_1970}')
    assert set(read(saved(tmp_path, text.encode())).device.start) == {1712195495519866813}
    assert nanoseconds(float("nan")) is nanoseconds(float("inf")) is nanoseconds(True) is None
    assert nanoseconds("1e3") == 1_000_000 and nanoseconds("soon") is None


def test_communication_is_known_by_its_names():
    for name in (
        "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
        "void (anonymous namespace)::multimem_all_reduce_kernel<c10::BFloat16, 16>",
        "void vllm::cross_device_reduce_1stage<__half, 8>",
        "void two_shot_all_reduce_kernel_inplace<float>",
        "void deep_ep::intranode::dispatch<8, 768, 8192>",
        "rcclGenericKernel", "nvshmemi_transfer_kernel", "mscclKernel_Sum",
    ):  # fmt: skip
        assert COMMUNICATES.search(name), name
    for name in (
        "void at::native::reduce_kernel<512, 1>", "void at::native::_scatter_gather_elementwise",
        "sm90_xmma_gemm_bf16bf16", "layer_norm_kernel", "splitKreduce_kernel",
    ):  # fmt: skip
        assert not COMMUNICATES.search(name), name


def test_events_may_be_nested_and_their_list_may_end_in_a_comma(tmp_path):
    inner = {"distributedInfo": {"rank": 3}, "traceEvents": [KERNEL] * 3, "traceName": "x"}
    for whole in ({"a": {"b": 1}, "profile": inner, "z": 2}, {"data": {"p": inner}}):
        read_here = read(saved(tmp_path, json.dumps(whole).encode()))
        assert len(read_here.device) == 3 and read_here.rank == 3
        assert read_here.about["traceName"] == "x"
    loose = json.dumps({"traceEvents": [KERNEL] * 3, "traceName": "x"}).replace("}], ", "},\n], ")
    assert len(read(saved(tmp_path, loose.encode())).device) == 3


def test_numbers_that_no_clock_has_are_left_out(tmp_path):
    wild = [KERNEL | {"ts": 10**30}, KERNEL | {"dur": 1e30}, KERNEL | {"ts": 2**70}]
    found = read(saved(tmp_path, {"traceEvents": [KERNEL, *wild]}))
    assert len(found.device) == 1 and found.left_out == 3


def test_a_device_in_begins_and_ends_is_refused(tmp_path):
    pairs = [KERNEL | {"ph": phase} for phase in "BE"]
    with pytest.raises(TraceError, match="begin and end apart"):
        read(saved(tmp_path, {"traceEvents": pairs}))

"""The account of a device is exact: the parts are the span, to the nanosecond."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lightspeed_tools.trace.account import accounts, parts
from lightspeed_tools.trace.reader import COMMUNICATION, COMPUTE, COPY, read

INTERVALS = st.lists(
    st.tuples(st.integers(0, 60), st.integers(0, 15), st.sampled_from((0, 1, 2))),
    min_size=1, max_size=25,
)  # fmt: skip


def swept(intervals):
    """An independent sweep: each nanosecond by itself."""
    first, last = min(s for s, _, _ in intervals), max(e for _, e, _ in intervals)
    running = [{kind for s, e, kind in intervals if s <= t < e} for t in range(first, last)]
    return {
        "compute": sum(COMPUTE in now for now in running),
        "communication": sum(COMMUNICATION in now for now in running),
        "exposed_communication": sum(
            COMMUNICATION in now and COMPUTE not in now for now in running
        ),
        "copy": sum(COPY in now for now in running),
        "exposed_copy": sum(now == {COPY} for now in running),
        "idle": sum(not now for now in running),
    }


@given(INTERVALS)
@pytest.mark.holds("docs/your-own-question.md", "The first line is the answer")
def test_parts_are_those_of_a_sweep_and_sum_to_the_span(drawn):
    intervals = sorted((s, s + d, kind) for s, d, kind in drawn)
    found = parts(intervals)
    assert {name: getattr(found, name) for name in swept(intervals)} == swept(intervals)
    assert found.compute + found.exposed_communication + found.exposed_copy + found.idle == (
        found.end - found.start
    )
    assert sum(end - start for start, end, _ in found.gaps) == found.idle
    assert all(intervals[place][0] == end for _, end, place in found.gaps)


@given(INTERVALS, st.integers(0, 2))
def test_devices_of_a_file_are_apart(drawn, other):
    from tempfile import TemporaryDirectory

    kinds = {COMPUTE: ("kernel", "k"), COMMUNICATION: ("kernel", "nccl"), COPY: ("gpu_memcpy", "c")}
    listed = [
        {"ph": "X", "cat": kinds[kind][0], "name": kinds[kind][1], "ts": s / 1000, "dur": d / 1000,
         "args": {"device": device, "stream": 1 + s % 3}}
        for s, d, kind in drawn for device in {0, other}
    ]  # fmt: skip
    with TemporaryDirectory() as folder:
        with open(f"{folder}/t.json", "w") as file:
            json.dump({"traceEvents": listed}, file)
        found = accounts(read(f"{folder}/t.json"))
    intervals = sorted((s, s + d, kind) for s, d, kind in drawn)
    assert [a.device for a in found] == sorted({0, other})
    for account in found:
        assert {name: getattr(account, name) for name in swept(intervals)} == swept(intervals)
        assert sum(account.causes.values()) == account.idle


def test_a_gap_is_cut_at_the_launch_that_ends_it(tmp_path):
    """Compute ends at 100 us; a loader runs to 300, a launch comes at 400, its kernel at 460."""

    def kernel(start, end, n):
        return {"ph": "X", "cat": "kernel", "name": "k", "ts": start, "dur": end - start,
                "args": {"device": 0, "stream": 7, "correlation": n}}  # fmt: skip

    def call(name, start, end, n, category="cuda_runtime"):
        return {"ph": "X", "cat": category, "name": name, "ts": start, "dur": end - start, "pid": 1,
                "tid": 1, "args": {"correlation": n}}  # fmt: skip

    listed = [
        kernel(10, 100, 1), kernel(460, 500, 2), kernel(600, 700, 3),
        call("cudaLaunchKernel", 1, 5, 1), call("cudaLaunchKernel", 400, 405, 2),
        call("enumerate(DataLoader)#x", 50, 300, 0, "user_annotation"),
    ]  # fmt: skip
    path = tmp_path / "t.json"
    path.write_text(json.dumps({"traceEvents": listed}))
    (account,) = accounts(read(path))
    assert account.causes == {
        "loader": 200_000, "launches late": 100_000, "launch to start": 20_000,
        "unexplained": 40_000, "no launch in the trace": 100_000,
    }  # fmt: skip

"""The host's numbers: what is measured with something missing; nothing is left."""

import os
import subprocess
import sys

import pytest
from processes import finished

from lightspeed_tools.measure.instruments import kernels, latency_levels, memory_and_io
from lightspeed_tools.measure.instruments.timing import FEWEST, Missing

MIB = 2**20


@pytest.fixture
def small(monkeypatch):
    """A machine whose free memory allows working sets of a MiB."""
    monkeypatch.setattr(memory_and_io, "_free_memory", lambda: 16 * MIB)


def test_the_ladder_has_a_quantity_for_each_size(small):
    found = memory_and_io.latency()
    assert [q.parameters["size"] for q in found] == latency_levels.sizes(MIB)
    assert all(
        q.key == "host.latency"
        and q.unit == "s"
        and q.better == "lower"
        and len(q.samples) >= FEWEST
        for q in found
    )
    assert min(q.value for q in found) > 0
    assert latency_levels.of_quantities(reversed(found))[0] == latency_levels.sizes(MIB)


def test_bandwidth_is_counted_as_stream_counts(small):
    found = memory_and_io.bandwidth()
    assert [(q.key, q.parameters["threads"]) for q in found] == [
        (f"host.{n}_bandwidth", t) for n in ("copy", "triad") for t in kernels.thread_counts()
    ]
    for q in found:
        if q.parameters["threads"] == 1:
            arrays = kernels.PASSES[q.key[5:-10]]
            assert q.counted["bytes"] == arrays * MIB


def test_the_clock_can_be_read():
    resolution, overhead = memory_and_io.clock()
    assert resolution.value > 0 and overhead.value > 0 and resolution.unit == overhead.unit == "s"


def test_storage_leaves_no_file(tmp_path, monkeypatch):
    monkeypatch.setattr(memory_and_io, "_folder", lambda: (tmp_path, "a folder"))
    found = memory_and_io.storage()
    assert [q.key for q in found] == [
        "host.storage_write",
        "host.storage_read",
        "host.storage_flush",
    ]
    assert all(q.value > 0 for q in found if not isinstance(q, Missing))
    assert not list(tmp_path.iterdir())
    assert "a folder" in found[0].note and "host or a drive" in found[1].note


FULL = """
import resource, sys
# the first write beyond a MiB fails, as on a full disk
resource.setrlimit(resource.RLIMIT_FSIZE, (2**20, 2**20))
from lightspeed_tools.measure.instruments import memory_and_io as host
for m in host.storage():
    print(type(m).__name__, m)
"""


@pytest.mark.skipif(os.name != "posix", reason="limits on files are set in the POSIX way")
def test_a_full_disk_is_said_and_leaves_nothing(tmp_path):
    run = finished(
        [sys.executable, "-c", FULL], env=os.environ | {"XDG_CACHE_HOME": str(tmp_path)}, timeout=60
    )
    assert run.returncode == 0, run.stderr
    assert run.stdout.count("Missing host.storage_") == 3
    assert "could not be written" in run.stdout
    assert "Free some space" in run.stdout
    assert not [p for p in tmp_path.rglob("*") if p.is_file()]


def test_a_folder_that_cannot_be_made_gives_the_temporary_one(tmp_path, monkeypatch):
    blocked = tmp_path / "file"
    blocked.write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(blocked))
    monkeypatch.setattr(memory_and_io.tempfile, "gettempdir", lambda: str(tmp_path))
    if sys.platform == "linux":
        folder, name = memory_and_io._folder()
        assert folder == tmp_path and name.startswith("the temporary folder")


@pytest.mark.skipif(not os.path.ismount("/dev/shm"), reason="no file system in memory here")
def test_a_folder_in_memory_is_called_that(tmp_path):
    from pathlib import Path

    assert "in memory" in memory_and_io._named(Path("/dev/shm"), "a folder")
    assert memory_and_io._named(Path("/proc"), "a folder") == "a folder"


def test_loopback_reaches_another_process_that_ends():
    trip, stream = memory_and_io.loopback()
    assert trip.unit == "s" and stream.unit == "byte/s" and trip.value > 0 and stream.value > 0
    assert trip.parameters == {"size": 1} and len(trip.samples) >= FEWEST


def test_no_sockets_no_loopback_but_a_reason(monkeypatch):
    children, start = [], subprocess.Popen

    def started(*arguments, **options):
        children.append(start(*arguments, **options))
        return children[-1]

    def refused(*_, **__):
        raise PermissionError("not allowed")

    monkeypatch.setattr(memory_and_io.subprocess, "Popen", started)
    monkeypatch.setattr(memory_and_io.socket, "create_connection", refused)
    found = memory_and_io.loopback()
    assert [m.key for m in found] == ["host.loopback_round_trip", "host.loopback_bandwidth"]
    assert all(isinstance(m, Missing) and "PermissionError" in m.why and m.remedy for m in found)
    assert children[0].poll() is not None

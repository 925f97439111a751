"""A package that the site does not have: named with its host and size."""

import json

import pytest

from lightspeed_course.web import build, code, packages

ENTRY = {"name": "numpy", "version": "0", "install_dir": "site", "package_type": "package",
         "imports": ["numpy"], "depends": [], "unvendored_tests": False}  # fmt: skip


def listed(**entries):
    return {"place": "https://cdn.example/full/", "packages": {
        name: ENTRY | {"file_name": f"{name}.whl"} | more for name, more in entries.items()
    }}  # fmt: skip


def test_an_offer_names_what_comes_along_from_where_and_how_much():
    told = listed(
        numpy={"bytes": 3_000_000},
        skia={"imports": ["ski"], "depends": ["numpy"], "bytes": 1_500_000},
        odd={"imports": ["odd"], "depends": ["numpy"]},
    )
    offer = packages.offered("ski", told)
    assert set(offer["entries"]) == {"skia", "numpy"} and offer["host"] == "cdn.example"
    assert offer["entries"]["skia"]["file_name"] == "https://cdn.example/full/skia.whl"
    for words in ("ski is not part of this site", "from cdn.example", "4.5 MB", "with 1 package "):
        assert words in offer["words"]
    assert "tells no size" in packages.offered("odd", told)["words"]
    assert packages.offered("torch", told) is None


@pytest.mark.parametrize(
    "source, above, lacks",
    [
        ("import numpy_none", [], "numpy_none"),
        ("a_none.x", ["import b_none as b\nimport a_none.c as a_none"], "a_none"),
        ("y", ["import b_none as b", "y = b.z"], "b_none"),
        ("x = 1\n1 / 0", ["import b_none as b"], ""),
        ("1", ["import b_none as b"], ""),
    ],
)
def test_a_cell_asks_for_the_package_that_stopped_it(source, above, lacks):
    sheet = code.begun(source, above)
    sheet.perform(source)
    assert sheet.lacks == lacks


def test_sizes_are_of_files_that_the_list_names():
    sizes = json.loads((build.HERE / "sizes.json").read_text("utf-8"))
    assert all(len(key) == 64 and size > 0 for key, size in sizes.items())
    lock = {
        "info": {"version": "1.2"},
        "packages": {
            "numpy": {"sha256": next(iter(sizes))},
            "new": {"sha256": "0"},
            "numpy-tests": {"sha256": "1"},
        },
    }
    told = build.elsewhere(lock)
    assert told["place"].endswith("/v1.2/full/")
    assert told["packages"]["numpy"]["bytes"] == next(iter(sizes.values()))
    assert told["packages"]["new"]["bytes"] is None and "numpy-tests" not in told["packages"]

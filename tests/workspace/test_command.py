"""The lightspeed command: every verb does what it says, at once, and a slip is one helpful line."""

import json
import os
import re
import shutil
import sys

import pytest
from processes import finished

from lightspeed_cli import main
from lightspeed_cli import number as lookup
from lightspeed_cli.main import CHECKOUT, GROUPS, VERBS
from lightspeed_course import workspace


def run(*words, **environment):
    command = [sys.executable, "-m", "lightspeed_cli", *words]
    return finished(command, timeout=120, env=os.environ | environment)


SLIPS = {
    "labb": "lightspeed: there is no 'labb'; did you mean lab?",
    "number h100_sxm.hbm_bandwith": "did you mean h100_sxm.hbm_bandwidth?",
    "number h100_sxm.zzzzzzzz": "there are h100_sxm.",
    "number": "required",
    "number ridge": "`lightspeed number --search ridge` looks for a word",
    "number --search zzzzz": "no constant has 'zzzzz'",
    "number --list --search x": "not allowed with",
    "lab --prot 3": "there is no '--prot'; did you mean --port?",
    "lab --port many": "'many' is not a port: expected a number up to 65535",
    "lab --port 80000": "'80000' is not a port: expected a number up to 65535",
    "site --serve --port -1": "'-1' is not a port",
    "number --search nvlnk": "in its key, name, note or source; did you mean nvlink?",
    "number H100_SXM.HBM_BANDWITH": "did you mean h100_sxm.hbm_bandwidth?",
    "law critical_batch ridge=295": "from lightspeed.roofline import critical_batch;"
    " critical_batch(ridge=295)",
    "law ridge=295": "ridge=295 is no law: name the law, such as",
    "reset 13": "no notebook is called 13",
    "progress --take /dev/null": "/dev/null: This is not a file of progress: expected one that",
    "progress --take /nowhere/file": "progress: /nowhere/file: no such file or directory",
    "progress --save /nowhere/file": "progress: /nowhere/file: no such file or directory",
    "lab extra": "there is no 'extra'",
    "reset": "required: name",
    "reset 99_nothing": "no notebook is called 99_nothing",
    "reset chapters/00_strt_here": "did you mean chapters/00_start_here?",
    "progress --fast": "there is no '--fast'",
}


@pytest.mark.parametrize("words", SLIPS)
def test_a_slip_is_one_line_and_status_2(words, capsys, tmp_path, monkeypatch):
    monkeypatch.setenv("LIGHTSPEED_HOME", str(tmp_path))
    (tmp_path / workspace.PRIVATE).mkdir()
    try:
        code = main(words.split())
    except SystemExit as stop:
        code = stop.code
    out, err = capsys.readouterr()
    assert code == 2 and out == ""
    assert SLIPS[words] in err and err.count("\n") == 1 and err.startswith("lightspeed")


def test_help_lists_each_verb_once_with_those_it_is_for(capsys):
    assert main([]) == 0
    shown = capsys.readouterr().out
    places = [shown.index(f"\n{heading}:") for heading in GROUPS]
    assert places == sorted(places)
    for verb in VERBS:
        assert len(re.findall(rf"^  {verb} ", shown, re.MULTILINE)) == 1
    assert "authors" not in shown[: places[2]] and "(for authors)" not in shown


def without_a_checkout(tmp_path, *words):
    """A command as from a bare wheel: the library, the delivered notebooks, and no packages."""
    lib = tmp_path / "lib"
    if not lib.exists():
        root = workspace.course_root()
        ignored = shutil.ignore_patterns("__pycache__", "shipped")
        shutil.copytree(root / "lib", lib, ignore=ignored)
        for folder in workspace.FOLDERS:
            shutil.copytree(
                root / folder,
                lib / "lightspeed_course/_delivered" / folder,
                ignore=shutil.ignore_patterns("*.py"),
            )
    code = (
        "import sys; sys.path[:] = [p for p in sys.path if 'site-packages' not in p];"
        "sys.meta_path = [f for f in sys.meta_path if 'editable' not in repr(f).lower()];"
        f"sys.path.insert(0, {str(lib)!r});"
        "from lightspeed_cli import main; sys.exit(main())"
    )
    return finished(
        [sys.executable, "-c", code, *words],
        cwd=tmp_path,
        timeout=60,
        env={"HOME": str(tmp_path / "home"), "PATH": os.environ["PATH"]},
    )


def test_a_bare_wheel_writes_nothing_before_what_it_needs_is_there(tmp_path):
    done = without_a_checkout(tmp_path, "lab")
    assert done.returncode == 2 and done.stdout == ""
    assert done.stderr.startswith("lightspeed lab: jupyterlab is not installed.")
    assert "pip install '.[lab]'" in done.stderr and done.stderr.count("\n") == 1
    assert not (tmp_path / "home").exists(), "no notebook was copied"
    for words in (
        "new law roofline.x", "build", "statements", "check", "check --fast", "site"
    ):  # fmt: skip
        done = without_a_checkout(tmp_path, *words.split())
        assert done.returncode == 2 and done.stdout == ""
        assert done.stderr == f"lightspeed {words.split()[0]}: {CHECKOUT}\n"
    done = without_a_checkout(tmp_path, "site", "--serve", str(tmp_path / "nothing"))
    assert "there is no site in" in done.stderr, "a site that is built is served anywhere"


def test_no_hint_names_a_distribution_that_is_not_ours_on_the_index():
    root = workspace.course_root()
    for path in (root / "lib").rglob("*.py"):
        assert "install 'speed-of-light" not in path.read_text("utf-8"), path


def test_help_and_errors_come_at_once():
    loaded = run("nonsense", PYTHONPROFILEIMPORTTIME="1").stderr
    assert not re.search(
        r"\| +(numpy|pint|matplotlib|jupyterlab|nbformat|sqlite3)$", loaded, re.MULTILINE
    )


def test_number_shows_value_source_date_and_users(capsys):
    assert main(["number", "h100_sxm.hbm_bandwidth"]) == 0
    shown = capsys.readouterr().out
    for part in (
        "h100_sxm.hbm_bandwidth = 3.35e+12 byte/s (3.35 TB/s)",
        "printed    3.35 TB/s",
        "NVIDIA",
        "https://",
        "read       20",
    ):
        assert part in shown
    assert re.search(r"read +20\d\d-\d\d-\d\d, second hand through ", shown), (
        "who read it elsewhere says so"
    )
    assert re.search(r"used by +chapters/02_roofline\n", shown)
    assert re.search(r"used by +solutions/02_roofline\n", shown)


def test_number_says_what_was_read_at_second_hand(capsys):
    main(["number", "h100_sxm"])
    lines = dict(line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines())
    assert lines["h100_sxm.bf16"].endswith(", second hand"), "by what it is derived from"
    assert not lines["h100_sxm.hbm_capacity"].endswith("hand"), "read from the device"
    main(["number", "h100_sxm.bf16"])
    assert "(second hand)" in capsys.readouterr().out


def test_number_expands_a_formula_and_lists_its_sources_once(capsys):
    main(["number", "h100_sxm.link_bandwidth"])
    shown = capsys.readouterr().out
    assert "nvlink4.bandwidth [4.5e+11 byte/s (450 GB/s)]" in shown
    assert "direction  one way" in shown
    assert len(re.findall("source ", shown)) == len(set(re.findall("source .*", shown)))


def test_number_lists_and_searches_every_constant(capsys):
    main(["number", "--list"])
    listed = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in listed] == list(lookup.constants())
    main(["number", "--search", "TRAINIUM"])
    found = capsys.readouterr().out.splitlines()
    assert found and set(found) < set(listed)


def test_number_searches_words_before_parts_of_words(capsys):
    main(["number", "--search", "l40s"])
    l40s = capsys.readouterr().out
    assert l40s.startswith("l40s.")
    main(["number", "--search", "h10"])
    assert capsys.readouterr().out.startswith("No constant has the word 'h10'; these contain it")
    main(["number", "--search", "NVLINK"])
    assert "\nnvlink4." in capsys.readouterr().out, "a number behind a word is no part of it"


def test_a_key_is_found_whatever_its_case(capsys):
    assert main(["number", "H100_SXM.HBM_BANDWIDTH"]) == main(["number", "H100_SXM"]) == 0
    assert "h100_sxm.hbm_bandwidth = 3.35e+12" in capsys.readouterr().out


def test_number_lists_the_constants_of_an_entry(capsys):
    assert main(["number", "h100_sxm"]) == 0
    shown = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in shown] == [
        key for key in lookup.constants() if key.startswith("h100_sxm.")
    ]
    assert any("3.35 TB/s" in line for line in shown)


def test_every_constant_can_be_described(monkeypatch):
    monkeypatch.setattr(lookup, "users", lambda key: [])
    for key in lookup.constants():
        assert lookup.describe(key).startswith(f"{key} = ")
        assert "\n  source " in lookup.describe(key)


@pytest.mark.parametrize(
    ("text", "named"),
    {
        'chip = accelerator("h100_sxm")\nchip.bf16': True,
        'a, chip = accelerator("a100_80gb"), accelerator("h100_sxm")\nprint(chip.bf16 / 2)': True,
        "accelerator('h100_sxm').bf16": True,
        'number("h100_sxm.bf16")': True,
        "the peak is {{chip.bf16}}": False,
        'chip = accelerator("h100_sxm")\nchip.bf16_sparse': False,
        'chip = accelerator("a100_80gb")\nchip.bf16': False,
        'a, chip = accelerator("h100_sxm"), accelerator("a100_80gb")\nchip.bf16': False,
    }.items(),
)
def test_who_names_a_constant(text, named):
    assert lookup._names(text, "h100_sxm", "bf16") is named


def test_reset_through_the_command(tmp_path, capsys):
    workspace.sync(tmp_path)
    page = tmp_path / "chapters/02_roofline.ipynb"
    page.write_bytes(json.dumps({"cells": []}).encode())
    assert main(["reset", "02_roofline", "--dir", str(tmp_path)]) == 0
    said = capsys.readouterr().out
    assert (
        page.read_bytes() == (workspace.course_root() / "chapters/02_roofline.ipynb").read_bytes()
    )
    assert re.search(
        r"is as delivered\. Your version is kept: chapters/02_roofline\.backup-\S+\.ipynb", said
    )


@pytest.mark.parametrize("name", ["02", "chapters/02", "exercises/02", "02_roofline.ipynb"])
def test_reset_takes_a_number_as_build_does(name, tmp_path, capsys):
    workspace.sync(tmp_path)
    folder = "exercises" if "exercises" in name else "chapters"
    assert main(["reset", name, "--dir", str(tmp_path)]) == 0
    assert capsys.readouterr().out.startswith(f"{folder}/02_roofline.ipynb in ")


def test_nought_is_where_one_starts(tmp_path, capsys):
    workspace.sync(tmp_path)
    assert main(["reset", "00", "--dir", str(tmp_path)]) == 0
    assert capsys.readouterr().out.startswith(f"{workspace.START} in ")


def test_reset_acts_on_the_workspace_it_stands_in(tmp_path, capsys, monkeypatch):
    mine, other, nowhere = (tmp_path / name for name in ("mine", "other", "nowhere"))
    for folder in (mine, other):
        workspace.sync(folder)
        (folder / "chapters/02_roofline.ipynb").write_bytes(b"changed")
    nowhere.mkdir()
    monkeypatch.setenv("LIGHTSPEED_HOME", str(other))

    monkeypatch.chdir(mine / "exercises")
    assert main(["reset", "02_roofline"]) == 0
    assert f"in {mine} is as delivered" in capsys.readouterr().out
    assert (other / "chapters/02_roofline.ipynb").read_bytes() == b"changed"

    monkeypatch.chdir(nowhere)
    assert main(["reset", "02_roofline"]) == 0
    assert f"in {other} is as delivered" in capsys.readouterr().out

    monkeypatch.setenv("LIGHTSPEED_HOME", str(nowhere))
    for words in (["reset", "02_roofline"], ["reset", "02_roofline", "--dir", str(nowhere)]):
        assert main(words) == 2
        assert f"{nowhere} is not a workspace of the course" in capsys.readouterr().err
    assert not list(nowhere.iterdir())


def test_where_names_folders_and_versions(tmp_path):
    said = run(
        "where", LIGHTSPEED_HOME=str(tmp_path / "mine"), LIGHTSPEED_DATA=str(tmp_path / "data")
    ).stdout
    for part in (
        f"workspace  {tmp_path}/mine",
        f"progress   {tmp_path}/data",
        "jupyterlab     4.",
        sys.executable,
    ):
        assert part in said


def test_progress_is_a_plain_table(tmp_path):
    lines = run("progress", LIGHTSPEED_DATA=str(tmp_path)).stdout.splitlines()
    assert re.fullmatch(r"chapter +questions +tried +solved .*", lines[0])
    assert any(re.match(r"02_roofline +\d+ +0 +0 ", line) for line in lines)


def test_a_lab_that_cannot_prepare_its_folder_says_so(tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("")
    done = run("lab", "--no-browser", "--dir", str(blocked))
    assert done.returncode == 2
    assert done.stderr.startswith("lightspeed lab: cannot prepare")
    assert done.stderr.count("\n") == 1


def test_a_closed_pipe_is_no_error():
    done = finished(
        f"'{sys.executable}' -m lightspeed_cli number --list | head -n 1; exit ${{PIPESTATUS[0]}}",
        shell=True,
        executable="/bin/bash",
        timeout=60,
    )
    assert done.returncode == 0 and done.stderr == ""

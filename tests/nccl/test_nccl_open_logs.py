"""Logs of other people, whole and damaged: what is told is what they say, and nothing else."""

import random
import re
import tomllib
from pathlib import Path

import pytest

from lightspeed_tools.nccl.facts import facts_of
from lightspeed_tools.nccl.judge import judge_report
from lightspeed_tools.nccl.log import ReportError, parse
from lightspeed_tools.nccl.sentences import in_words

LOGS = Path(__file__).parent / "logs"
EXPECTED = tomllib.loads((LOGS / "expected.toml").read_text())
TEXTS = {
    path.stem: path.read_text("utf-8", errors="replace")
    for path in sorted(LOGS.iterdir())
    if path.stem in EXPECTED
}
WHOLE = {name: text for name, text in TEXTS.items() if "verdict" in EXPECTED[name]}


def told(text):
    """(collective, ranks, nodes) of each run; 0 for what is not known."""
    found = []
    for report in parse(text):
        facts = facts_of(report)
        found.append([facts.collective.value or 0, facts.ranks.value or 0, facts.nodes.value or 0])
    return found


def test_every_log_is_read_as_it_is():
    assert set(TEXTS) == set(EXPECTED)
    wrong = {}
    for name, text in TEXTS.items():
        try:
            found = told(text)
        except ReportError as error:
            found = error.line
        expected = [[x or 0 for x in run] for run in EXPECTED[name]["runs"]]
        expected = EXPECTED[name].get("fails", expected)
        if found != expected:
            wrong[name] = (found, expected)
    assert not wrong


def test_verdicts_are_those_that_the_files_support():
    for name, text in TEXTS.items():
        if "verdict" in EXPECTED[name]:
            levels = [judge_report(report).level for report in parse(text)]
            assert levels == EXPECTED[name]["verdict"], name


def test_what_a_list_does_not_say_is_told_as_such():
    """Ranks that share a device are no GPUs, and names of containers no machines."""
    said = {name: "\n".join(in_words(judge_report(parse(text)[0]))) for name, text in WHOLE.items()}
    assert {name[:2] for name, words in said.items() if "listed for several ranks" in words} == {
        "42"
    }
    assert "all_reduce, 2 ranks" in said["42_rtx5090_two_ranks_share_a_device"]
    assert {name[:2] for name, words in said.items() if "may be containers" in words} == {"41"}
    cards = said["40_h200_nvl_one_row_of_four_columns"]
    assert "NVLink 4" in cards and "NVLink 5" not in cards and "very slow" not in cards


def test_eight_in_ten_get_a_verdict_without_options():
    """A level, or those of usual nodes; others are told what keeps them from it."""
    runs = [
        judge_report(report)
        for name, text in TEXTS.items()
        if "verdict" in EXPECTED[name]
        for report in parse(text)
    ]
    judged = [run for run in runs if run.level != "unknown"]
    assert len(judged) >= 0.8 * len(runs)
    for run in runs:
        said = "\n".join(in_words(run))
        assert run.level != "depends" or re.search(r"\d % of|\(\d+ %", said), said
        assert run in judged or "Not judged" in said, said


# ---------------------------------------------------------------- damaged


def lines_dropped(text, random):
    return "\n".join(line for line in text.split("\n") if random.random() > 0.15)


def one_block_dropped(text, random):
    lines = text.split("\n")
    start = random.randrange(len(lines))
    return "\n".join(lines[:start] + lines[start + random.randrange(1, 9) :])


def tagged(text, random):
    tags = ["[1,0]<stdout>:", "0: ", "  3: ", "10.3.35.83: ", "[0] ", "> ", "node7 | ", "        "]
    tag = random.choice(tags)
    return "\n".join(tag + line for line in text.split("\n"))


def tagged_here_and_there(text, random):
    return "\n".join(
        random.choice(["", "[1,3]<stderr>:", "12: "]) + line for line in text.split("\n")
    )


def coloured(text, random):
    return "\n".join(f"\x1b[3{random.randrange(8)}m{line}\x1b[0m" for line in text.split("\n"))


def windows(text, random):
    return text.replace("\n", "\r\n")


def marks_eaten(text, random):
    return re.sub(r"^#", " ", text, flags=re.MULTILINE)


def hosts_like_ranks(text, random):
    """The same hosts by names that are numbers, or words of the table."""
    hosts = sorted(set(re.findall(r"\bon\s+(\S+)\s+device\s", text)), key=len, reverse=True)
    names = random.sample(["0", "1", "7", "Rank", "device", "size", "16", "on", "8:", "float"], 4)
    for host, name in zip(hosts, [*names, *map(str, range(90, 99))], strict=False):
        text = re.sub(rf"\bon(\s+){re.escape(host)}(\s+)device", rf"on\g<1>{name}\g<2>device", text)
    return text


def a_column_lost(text, random):
    """One row of a table loses a value, or gains one."""
    lines = text.split("\n")
    rows = [i for i, line in enumerate(lines) if re.search(r"\d+\s+\d+\s+float", line)]
    if not rows:  # it failed before the first
        return text
    at = random.choice(rows)
    words = lines[at].split()
    spot = random.randrange(3, len(words))
    words[spot : spot + 1] = random.choice([[], [words[spot], words[spot]]])
    lines[at] = "  ".join(words)
    return "\n".join(lines)


def written_into(text, random):
    """A message of another process in the middle of a row."""
    lines = text.split("\n")
    rows = [i for i, line in enumerate(lines) if re.search(r"\d+\s+\d+\s+float", line)]
    if not rows:  # it failed before the first
        return text
    at = random.choice(rows)
    cut = random.randrange(20, max(len(lines[at]), 21))
    noise = "node9:77:99 [3] NCCL INFO comm 0x7f - Init START"
    lines[at] = f"{lines[at][:cut]}{noise}\n{lines[at][cut:]}"
    return "\n".join(lines)


DAMAGE = (
    lines_dropped, one_block_dropped, tagged, tagged_here_and_there, coloured, windows,
    marks_eaten, hosts_like_ranks, a_column_lost, written_into,
)  # fmt: skip


def false_facts(text, truths):
    """What a damaged text is told to be that no run of the whole text is."""
    try:
        reports = parse(text)
    except ReportError:
        return []
    found = []
    for report in reports:
        facts = facts_of(report)
        known = (facts.collective.value, facts.ranks.value, facts.nodes.value)
        pairs = [
            all(x is None or x == y for x, y in zip(known, truth, strict=True)) for truth in truths
        ]
        if not any(pairs) or report.apart:
            found.append((known, report.apart))
    return found


def truths_of(name):
    # what a file does not say is true of any value, and no damage may make it known
    return [tuple(run) for run in EXPECTED[name]["runs"]]


@pytest.mark.parametrize("damage", DAMAGE, ids=lambda damage: damage.__name__)
def test_a_damaged_log_gives_no_false_fact(damage):
    wrong = []
    for name, text in TEXTS.items():
        for seed in range(6):
            damaged = damage(text, random.Random(f"{name} {seed}"))
            wrong += [(name, seed, f) for f in false_facts(damaged, truths_of(name))]
    assert not wrong


def test_a_log_cut_at_each_tenth_gives_no_false_fact():
    wrong = [
        (name, tenth, fact)
        for name, text in TEXTS.items()
        for tenth in range(1, 10)
        for fact in false_facts(text[: len(text) * tenth // 10], truths_of(name))
    ]
    wrong += [
        (name, -tenth, fact)
        for name, text in TEXTS.items()
        for tenth in range(1, 10)
        for fact in false_facts(text[len(text) * tenth // 10 :], truths_of(name))
    ]
    assert not wrong


def test_two_logs_in_one_file_stay_two():
    wrong = []
    for first, one in TEXTS.items():
        for second in random.Random(first).sample(sorted(TEXTS), 9):  # all would take long
            other = TEXTS[second]
            truths = truths_of(first) + truths_of(second)
            for tenths in (10, 3):
                joined = one[: len(one) * tenths // 10] + "\n" + other
                wrong += [(first, second, tenths, f) for f in false_facts(joined, truths)]
    assert not wrong

"""Incidents: the truth is the simulator's, the policy finds it, nothing bought is lost."""

import functools
import os
import random
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from processes import finished

from lightspeed_cli.incident import plain
from lightspeed_cli.main import main
from lightspeed_course import incident
from lightspeed_course.incidents import engine, policy, training
from lightspeed_course.incidents.incident import CASES, NOTICED, UnknownChoice, incident_of
from lightspeed_course.incidents.score import TAUGHT, debrief, score
from lightspeed_course.incidents.week import NARROW_PLAN
from lightspeed_course.practice import incident_session as session
from lightspeed_course.practice import store
from lightspeed_tools.nccl.log import parse


@functools.cache
def fresh():
    return [incident_of(f"fresh {n}") for n in range(90)]


@functools.cache
def named():
    settings = {s.id: s for s, _ in CASES}.values()
    return {f"{s.id}: {c.id}": incident_of("named", s, c) for s in settings for c in s.causes}


def test_the_fix_and_no_other_brings_the_plan_back():
    for name, case in named().items():
        setting = case.setting
        broken = setting.rate(case.job)
        assert broken < NOTICED, name
        for other in setting.causes:
            after = setting.rate(other.mend(case.job))
            if {case.cause.id} <= {other.id, *(part.id for part in other.parts)}:
                # a simulated queue scatters round the plan's own formula
                assert after > (0.99 if setting.id == "training" else 0.6), (name, after)
                assert after > broken
            elif not {case.cause, *case.cause.parts} & {other, *other.parts}:
                assert after == broken, f"{name}: the fix of {other.id} changes it"
            elif case.cause.parts:
                assert after < NOTICED, f"{name}: the fix of {other.id} mends a part"


def test_there_is_a_case_of_each_kind():
    causes = {cause.id for _, cause in CASES}
    assert causes >= {
        "slow_nic", "straggler", "numa", "tensor_over_network", "throttling", "padding",
        "bursty_arrivals", "sparse_peak",
    }  # fmt: skip


@pytest.mark.slow
def test_the_policy_solves_what_it_has_not_seen_and_chance_does_not():
    rng = random.Random(17)
    solved = Counter()
    for case in fresh():
        bought, cause = policy.solve(case)
        solved["policy"] += score(case, bought, cause, cause).cause
        # Chance buys as much as the policy did, and cannot read it.
        blind = rng.choice(case.setting.causes).id
        solved["chance"] += score(case, bought, blind, blind).cause
    met = {id for c in fresh() for id in c.cause.id.split("+")}
    assert met == {cause.id for _, cause in CASES}, "all are met"
    assert solved["policy"] >= 0.95 * len(fresh()), solved
    assert solved["chance"] <= 0.20 * len(fresh()), solved
    exact = sum(1 / len(setting.causes) for setting, _ in CASES) / len(CASES)
    assert exact <= 0.20, "the expectation of naming a cause blindly"


def test_causes_can_be_told_apart_by_what_can_be_bought():
    for case in named().values():
        twins = [
            other.cause.id
            for other in named().values()
            if other.setting is case.setting
            and other is not case
            and other.findings == case.findings
        ]
        assert not twins, f"{case.cause.id} looks like {twins}"


def _brute(setting_id, left, owned=()):
    """The least expected cost by trying every order of purchases, without a memory."""
    if len(policy.causes(setting_id, left)) <= 1:
        return 0.0
    costs = []
    for m in policy.SETTINGS[setting_id].measurements:
        if m.id not in owned:
            parts = policy.split(setting_id, left, m.id).values()
            after = sum(len(p) * _brute(setting_id, p, (*owned, m.id)) for p in parts)
            costs.append(m.price + after / len(left))
    return min(costs, default=0.0)


@pytest.mark.holds("docs/learn.md", "the cheapest decision tree over all causes")
@pytest.mark.holds("incidents", "The policy that is cheapest on average")
@pytest.mark.holds("practice", "the policy that is cheapest on average")
def test_no_order_of_purchases_is_cheaper_than_the_policy():
    everything = frozenset(range(len(policy.draws("serving"))))
    assert policy.plan("serving", everything)[0] == pytest.approx(_brute("serving", everything))
    # In training any fixed order, read until the cause is clear, pays at least as much.
    ids = [m.id for m in policy.SETTINGS["training"].measurements]
    rng = random.Random(3)
    training = [case for name, case in named().items() if name.startswith("training")]
    best = sum(case.minutes(policy.solve(case)[0]) for case in training)
    for _ in range(40):
        order, paid = rng.sample(ids, len(ids)), 0
        for case in training:
            found = {}
            for id in order:
                if policy.verdict("training", found)[1]:
                    break
                found[id] = case.findings[id]
            paid += case.minutes(found)
        assert paid >= best, order


@pytest.mark.holds(
    "practice", "The cause counts most, then the fix", "would have shown anything else"
)
def test_the_score_sees_guesses_wrong_purchases_and_what_was_paid():
    case = named()["training: numa"]
    best, cause = policy.solve(case)
    full = score(case, best, cause, cause)
    assert full.points == 100 and full.proved and not full.wrong
    guess = score(case, [], cause, cause)
    assert guess.cause and not guess.proved and 0 < guess.points <= 25
    wasteful = score(case, ["inside", *best], cause, cause)
    assert wasteful.wrong == ("inside",), "NVLink is at its line whatever the cause"
    assert (
        wasteful.minutes == full.minutes + case.setting.measurement("inside").price
        and wasteful.points < full.points
    )
    other_fix = score(case, best, cause, "padding")
    assert other_fix.points == 80 and not other_fix.fix
    assert score(case, best, "padding", cause).points == 0, "the readings rule it out"
    for other in named().values():
        blind = score(other, [], other.cause.id, other.cause.id)
        assert 0 < blind.points <= 25 and not blind.proved, "a guess, and right"
        found = policy.opening_findings(other)
        for id in policy.solve(other)[0][:-1]:
            found[id] = other.findings[id]
        left = policy.causes(
            other.setting.id, policy.consistent(other.setting.id, frozenset(found.items()))
        )
        for cause_id in left:
            half = score(other, list(found), cause_id, cause_id)
            assert half.points > 0 or len(left) == half.suspects, "a half reading is worth it"
            assert half.points < full.points
    dashboards = [m for m in case.setting.measurements if not m.stops]
    standing = [m for m in case.setting.measurements if m.stops]
    assert min(m.price for m in standing) > max(m.price for m in dashboards)
    with pytest.raises(UnknownChoice, match="did you mean clocks"):
        score(case, ["clock"], cause, cause)


def test_who_names_another_cause_is_led_to_the_section_that_teaches_it():
    chapters = Path(__file__).parents[2] / "chapters"
    assert TAUGHT.keys() == {cause.id for _, cause in CASES} | {NARROW_PLAN.id}
    for _, page, section in TAUGHT.values():
        assert f"\n# ## {section}\n" in (chapters / f"{page}.py").read_text("utf-8"), section
    case = named()["training: numa"]
    other, right = (debrief(case, [], cause, "numa")[1] for cause in ("padding", "numa"))
    assert "[Lesson 7](07_nccl_bandwidth.ipynb#Which-wire?)" in other and "Lesson" not in right
    assert "(07_nccl" not in plain(other) and "Lesson 7 has" in plain(other)


def test_nothing_is_always_the_best_to_buy_first():
    """Over all incidents and all first purchases: what to buy first follows from the opening."""
    for setting in {s.id: s for s, _ in CASES}.values():
        best, fewest = Counter(), {m.id: 0 for m in setting.measurements}
        cases = [
            incident_of(f"first {n}", setting, cause) for cause in setting.causes for n in "abc"
        ]
        for case in cases:
            numbers = policy.consistent(
                setting.id, frozenset(policy.opening_findings(case).items())
            )
            expected = {}
            for m in setting.measurements:
                parts = policy.split(setting.id, numbers, m.id).values()
                after = sum(len(p) * policy.plan(setting.id, p)[0] for p in parts) / len(numbers)
                expected[m.id] = m.price + after
            least = min(expected.values())
            assert least == pytest.approx(policy.plan(setting.id, numbers)[0])
            for id, minutes in expected.items():
                fewest[id] += minutes <= least + 1e-9
            best[policy.next_purchase(setting.id, policy.opening_findings(case))] += 1
        assert max(fewest.values()) < 0.8 * len(cases), (setting.id, fewest)
        assert sum(many > 0 for many in best.values()) >= 2, (setting.id, best)


def test_two_at_once_are_told_from_one_and_half_an_answer_is_worth_half():
    pairs = [case for case in named().values() if case.cause.parts]
    assert {case.setting.id for case in pairs} == {"training", "serving", "engine"}
    for case in pairs:
        best, cause = policy.solve(case)
        assert score(case, best, cause, cause).points == 100, case.cause.id
        one, other = case.cause.parts
        pace = case.setting.pace
        for part in (one, other):
            assert pace(part.mend(case.job)) < pace(case.cause.mend(case.job)), "a part"
            words = debrief(case, best, cause, part.id)[1]
            gain = pace(part.mend(case.job)) / pace(case.job)
            assert f"mends a part: {gain:.2f} times" in words
            blind = score(case, [], part.id, part.id)
            assert blind.points > 0 or not blind.left, "the opening rules it out"
            assert blind.points < score(case, [], cause, cause).points <= 25
    drawn = [incident_of(n) for n in range(1, 61)]
    assert 0.1 < sum(bool(case.cause.parts) for case in drawn) / len(drawn) < 0.5
    for case in drawn:
        item, brief = policy.opening(case), policy.brief(case)
        assert item.name in brief and case.show(item.id) in brief
        assert "two things at once" in brief and case.cause.name not in brief


def test_node_0_is_said_to_be_sound_and_is():
    """A slow adapter of node 0 would be in every pair, and look like processes on the wrong socket:
    a reader who named it would be as right as the room.
    """
    wrong_socket = named()["training: numa"]
    pairs = wrong_socket.setting.measurement("pairs")
    job = replace(wrong_socket.job, socket=1.0, adapter=(0, 0.5))
    assert pairs.tell(job, pairs.read(job, random.Random(0))) == "all pairs are slow"
    assert wrong_socket.findings["pairs"] == "all pairs are slow"
    for cause in wrong_socket.setting.causes:
        for n in range(40):
            case = incident_of(f"sound {n}", wrong_socket.setting, cause)
            assert training.SOUND in case.brief
            faults = case.job.adapter, case.job.hot_node
            assert all(node or share == 1 for node, share in faults)
            rank, share = case.job.busy_gpu
            assert share == 1 or rank >= training.PER_NODE


def test_a_log_that_is_bought_is_one_of_nccl_tests():
    case = named()["training: slow_nic"]
    (report,) = parse(case.show("nccl"))
    assert len(report.rows) == 3 and report.collective == "all_reduce"


def test_the_room_on_a_page_goes_on_where_it_was():
    room = incident(4)
    best, cause = policy.solve(room.case)
    assert cause != "replica_down", "named below, too late"
    assert room.case.cause.name not in room.static and not room.error
    room.enter("")
    assert not store.events()
    room.enter(best[0])
    again = incident(4)  # the kernel died, or another lab is open
    assert "Paid so far: 0" not in again.prompt.value
    again.enter(best[0])
    for id in best[1:]:
        again.enter(id)
    assert [e.detail for e in store.events()] == [{"buy": id} for id in best], "paid once each"
    again.press_extra()
    assert "The suspects" in again.prompt.value, "in view from the start"
    fixes = [fix.id for fix in again.case.setting.fixes]
    shown = [field["options"] for field in again.form.fields[1:2]]
    assert not any(id in str(shown) for id in fixes), "no fix carries the name of a cause"
    again.enter(cause, str(1 + fixes.index(cause)))
    assert "Solved." in again.reply.value and "100 of 100" in again.reply.value
    assert not again.error and again.form.fields == []
    room.press_extra()
    room.enter("replica_down", "1")
    assert "100 of 100" in room.reply.value, "the first naming counts"
    assert session.following() == "1" and incident().case.seed == "1"


def test_the_command_goes_step_by_step(capsys):
    case = incident_of(7)
    best, cause = policy.solve(case)
    assert main(["incident", "7"]) == 0
    shown = capsys.readouterr().out
    assert all(m.id in shown for m in case.setting.measurements) and "Solved" not in shown
    for id in best:
        assert main(["incident", "7", "--buy", id]) == 0
    assert main(["incident", "7", "--buy", "profil"]) == 2
    assert main(["incident", "7", "--cause", cause]) == 2, "without a fix"
    assert main(["incident", "7", "--cause", cause, "--fix", "99"]) == 2
    fix = 1 + [c.id for c in case.setting.fixes].index(cause)
    assert main(["incident", "7", "--cause", cause, "--fix", str(fix)]) == 0
    assert "100 of 100" in capsys.readouterr().out
    assert session.state(case).bought == tuple(best)


FULL = """
import resource, signal, sys
from lightspeed_cli import main
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))
sys.exit(main(sys.argv[1:]))
"""


def test_what_a_full_disk_does_not_keep_is_an_error(tmp_path):
    store.record("guess", "roofline.ridge", {"value": 1.0})
    (tmp_path / "taken").write_text(store.dumps())
    best, _ = policy.solve(incident_of(7))
    for words in ("incident", "7", "--buy", best[0]), ("progress", "--take", tmp_path / "taken"):
        done = finished(
            [sys.executable, "-c", FULL, *words],
            timeout=60,
            env=os.environ | {"LIGHTSPEED_DATA": str(tmp_path / "full")},
        )
        assert done.returncode == 2 and "not being saved in" in done.stderr, done.stderr
        assert done.stderr.endswith("Nothing of this was kept.\n") and "goes on" not in done.stderr
        assert "taken in" not in done.stdout


def test_step_by_step_by_hand_a_slip_costs_nothing(capsys, monkeypatch):
    case = incident_of(7)
    best, cause = policy.solve(case)
    fix = 1 + [c.id for c in case.setting.fixes].index(cause)
    said = ["buy nothing", "sell", "name what 1", f"name {cause} 99"]
    said += [*(f"buy {id}" for id in best), f"name {cause} {fix}"]
    monkeypatch.setattr("builtins.input", lambda _: said.pop(0))
    monkeypatch.setattr("sys.stdin.isatty", lambda: True)
    assert main(["incident", "7"]) == 0 and not said
    assert session.state(case).bought == tuple(best)
    assert "100 of 100" in capsys.readouterr().out


def test_a_bare_python_runs_it():
    code = (
        "import sys\n"
        "for n in ('numpy', 'pint', 'sqlite3', 'ipywidgets', 'scipy'): sys.modules[n] = None\n"
        "from lightspeed_course.incidents import policy\n"
        "from lightspeed_course.incidents.incident import incident_of\n"
        "case = incident_of(7); print(policy.solve(case)[1] == case.cause.id)"
    )
    run = finished([sys.executable, "-c", code])
    assert run.stdout.strip() == "True", run.stderr[-2000:]


def test_an_engine_misses_its_promise_by_the_simulator_of_lesson_9():
    """Each cause breaks the promise that it should: a chunk too large and a slow GPU make tokens
    late, full memory and prompts without prefixes the first one.
    """
    late = {}
    for cause in engine.CAUSES:
        job = incident_of("late", engine.ENGINE, cause).job
        done, arrivals, _ = engine.run(job)
        waits = sorted(b - a for a, b in zip(arrivals, done.first, strict=True))
        late[cause.id] = waits[len(waits) * 9 // 10] > engine.FIRST
        assert engine.kept(engine.sound(job)) > 0.97 > engine.kept(job)
    assert late["few_blocks"] and late["no_prefixes"] and not late["large_chunk"]

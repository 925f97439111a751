"""The planner's speed: plans a second on one core, beside calls of mlsysim and, where a checkout of
it is named, of calculon; seconds and memory of Llama 3 405B on 16,384 and on 15,120 GPUs; the
command's first answer.

    python benchmarks/plan.py [--calculon PATH]

Fails under three million plans a second, over a second or 200 MB for 405B, or 1.5 s for the
command.
"""

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path

import _beside

RATE, SEARCH, MEMORY, FIRST = 3e6, 1.0, 200e6, 1.5
ROUNDS = 5

OURS = """
import json, resource, time
from lightspeed_tools.plan.inputs import cluster_of, given_stack, model_of
from lightspeed_tools.plan.search import search
from lightspeed_tools.plan.space import space

def once():  # processor time, of the one core that it runs on: others may share the machine
    start = time.process_time()
    plans = space(model, cluster.gpus, 8, BATCH, SEQUENCE, setting.able)
    found = search(model, SEQUENCE, plans, machine, setting)
    return time.process_time() - start, found, plans

_, model, _ = model_of("MODEL")
cluster = cluster_of("h100_sxm:GPUS")
setting, machine = given_stack("megatron_h100", cluster, model)
runs = [once() for _ in range(ROUNDS)]
found, plans = runs[0][1:]
print(json.dumps({
    "first": runs[0][0], "best": min(run[0] for run in runs), "plans": found.total,
    "by_law": int(plans.allowed.sum()), "passing": len(found),
    "memory": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
}))
"""

# One layout a call of its law for tensor x pipeline x data: Llama 3 70B on 512 H100.
MLSYSIM = """
import json, time
from mlsysim import Models, Q_
from mlsysim.engine.solvers.parallelism import ParallelLayoutModel

solver, model = ParallelLayoutModel(), Models.Language.Llama3_70B
peak, link = Q_(990, "TFLOP/s"), Q_(50, "GB/s")
def once(tp):
    return solver.solve(
        model, tp_size=tp, pp_size=4, dp_size=128 // tp, microbatches=32, batch_tokens=4194304,
        flops_per_param_token=6, peak_flops=peak, local_efficiency=0.5, link_bandwidth=link,
        overlap_fraction=0.5, device_memory=Q_(80, "GB"),
    )
once(8)
start = time.perf_counter()
for i in range(200):
    once(2 ** (1 + i % 3))
print(json.dumps(200 / (time.perf_counter() - start)))
"""

CALCULON = """
import json, logging, sys, time, types
sys.modules["pandas"] = types.ModuleType("pandas")  # for its tables of results alone
sys.path.insert(0, PATH)
from calculon.llm import Llm
from calculon import System
app = Llm.Application(json.load(open(PATH + "/models/megatron-40B.json")))
system = System(json.load(open(PATH + "/systems/a100_80g.json")))
run = json.load(open(PATH + "/examples/3072_t4_p64_d12_mbs4_full.json"))
log = logging.Logger("quiet")
def once():
    model = Llm(app, log)
    model.compile(system, Llm.Execution.from_json(run))
    model.run(system)
once()
start = time.perf_counter()
for _ in range(200):
    once()
print(json.dumps(200 / (time.perf_counter() - start)))
"""


def ours(model, gpus, batch, sequence):
    """What our search says of itself in a process of its own."""
    code = OURS
    for word, value in (
        ("MODEL", model), ("GPUS", gpus), ("BATCH", batch), ("SEQUENCE", sequence),
        ("ROUNDS", ROUNDS),
    ):  # fmt: skip
        code = code.replace(word, str(value))
    return json.loads(_beside.run(sys.executable, code))


def peer(program, code):
    """Calls a second of another library, or why there are none."""
    try:
        return json.loads(_beside.run(program, code)), ""
    except (subprocess.SubprocessError, OSError, ValueError) as error:
        last = (getattr(error, "stderr", "") or str(error)).strip().splitlines()
        return None, last[-1] if last else "failed"


def command():
    """Seconds of the first answer of the command, all of it."""
    lightspeed = Path(sys.executable).with_name("lightspeed")
    words = ["plan", "llama3_405b", "--cluster", "h100_sxm:16384", "--batch", "16M"]
    times = []
    for _ in range(3):
        start = time.perf_counter()
        subprocess.run([lightspeed, *words], check=True, capture_output=True)
        times.append(time.perf_counter() - start)
    return min(times)


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("--calculon", type=Path, metavar="PATH", help="a checkout of calculon")
    options = parser.parse_args()
    rows, failed = [], []
    runs = {
        "Llama 3 405B on 16,384 H100": ours("llama3_405b", 16384, 2048, 8192),
        "Llama 3 405B on 15,120 H100": ours("llama3_405b", 15120, 2160, 8192),
        "DeepSeek-V3 on 2,048 H100": ours("deepseek_v3", 2048, 4096, 4096),
    }
    for name, run in runs.items():
        rate, by_law = run["plans"] / run["best"], run["by_law"] / run["best"]
        rows += [
            (f"{name}: plans", f"{run['plans']:,}"),
            ("  of them by the law, none broken by a rule", f"{run['by_law']:,}"),
            ("  first search, s", f"{run['first']:.2f}"),
            ("  plans a second", f"{rate:,.0f}"),
            ("  by the law a second", f"{by_law:,.0f}"),
            ("  memory of the process, MB", f"{run['memory'] / 1e6:.0f}"),
        ]
        if rate < RATE:
            failed.append(f"{name}: under {RATE:,.0f} plans a second")
        if "405B" in name and (run["first"] > SEARCH or run["memory"] > MEMORY):
            failed.append(f"{name}: over {SEARCH} s or {MEMORY / 1e6:.0f} MB")
    fastest = max(run["by_law"] / run["best"] for run in runs.values())
    first = command()
    rows.append(("first answer of the command, s", f"{first:.2f}"))
    if first > FIRST:
        failed.append(f"the command's first answer: over {FIRST} s")
    peers = {"mlsysim": (_beside.python(), MLSYSIM)}
    if options.calculon:
        path = repr(str(options.calculon.resolve()))
        peers["calculon"] = (sys.executable, CALCULON.replace("PATH", path))
    else:
        print("calculon is left out: name a checkout of it with --calculon PATH")
    for name, (program, code) in peers.items():
        calls, why = peer(program, code)
        if calls is None:
            print(f"{name} did not answer: {why}")
            continue
        rows += [
            (f"{name}, calls a second", f"{calls:,.0f}"),
            ("  ours by the law over it", f"{fastest / calls:,.0f}"),
        ]
    _beside.show(f"Plans, best of {ROUNDS}", rows)
    print("\n".join(failed))
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())

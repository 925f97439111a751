"""Record what chapter 11 shows of torch.profiler on a CPU. It needs torch:

    python benchmarks/cpu_profile.py FILE.json.gz

The same small steps run without the profiler and with it, so that its own time is known.
"""

import gzip
import json
import platform
import statistics
import sys
import tempfile
import time
from pathlib import Path

import torch
from torch.profiler import ProfilerActivity, profile

LAYERS, WIDTH, BATCH, STEPS = 12, 64, 32, 20
KEPT = 2  # steps of the recording, whose events are all kept


def main(path):
    torch.set_num_threads(1)
    torch.manual_seed(0)
    layers = [torch.nn.Linear(WIDTH, WIDTH) for _ in range(LAYERS)]
    model = torch.nn.Sequential(*(each for layer in layers for each in (layer, torch.nn.ReLU())))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    x = torch.randn(BATCH, WIDTH)

    def step():
        optimizer.zero_grad()
        model(x).square().mean().backward()
        optimizer.step()

    def seconds():
        began = time.perf_counter()
        step()
        return time.perf_counter() - began

    for _ in range(STEPS):
        step()
    plain = [seconds() for _ in range(STEPS)]
    with profile(activities=[ProfilerActivity.CPU], record_shapes=True):
        seconds()
        profiled = [seconds() for _ in range(STEPS)]
    with profile(activities=[ProfilerActivity.CPU], record_shapes=True) as recorded:
        for n in range(KEPT):
            with torch.profiler.record_function(f"ProfilerStep#{n}"):
                step()
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "trace.json"
        recorded.export_chrome_trace(str(file))
        trace = json.loads(file.read_text())
    events = [e for e in trace["traceEvents"] if e.get("ph") == "X" and e.get("cat") in
              ("cpu_op", "user_annotation")]  # fmt: skip
    of_file = {
        "schemaVersion": trace.get("schemaVersion"),
        "recorded": {
            "torch": torch.__version__.partition("+")[0], "python": platform.python_version(),
            "machine": platform.machine(), "threads": 1, "layers": LAYERS, "width": WIDTH,
            "batch": BATCH, "plain": statistics.median(plain),
            "profiled": statistics.median(profiled), "day": time.strftime("%Y-%m-%d"),
        },
        "traceEvents": events,
    }  # fmt: skip
    Path(path).write_bytes(gzip.compress(json.dumps(of_file).encode(), mtime=0))
    print(of_file["recorded"], len(events), "events")


if __name__ == "__main__":
    main(sys.argv[1])

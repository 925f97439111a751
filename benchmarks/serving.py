"""Requests a second of processor time that the serving simulator takes, on five named loads, and
simpy beside it on a small one.

    python benchmarks/serving.py [REQUESTS]

Loads are drawn before the clock starts. simpy runs a server of the same rules without blocks and
chunks, one event a step, and has to end each request at the same time. Fails below 100,000 requests
a second on any load, or above 1 GB.
"""

import resource
import sys
import time

import numpy as np
import simpy

from lightspeed_models.simulators.serving import Cost, Scheduler, simulate

REQUESTS, LEAST, MOST_MEMORY = 100_000, 1e5, 1e9
COST = Cost(5e-3, 1e-5, 3e-5, 2e-8)


def lognormal(rng, median, sigma, n):
    drawn = rng.lognormal(np.log(median), sigma, n)
    return np.clip(drawn, 1, 16_000).astype(np.intp).tolist()


def load(prompt, output, rate, scheduler, sigma=0.8, burst=1.0):
    """An open loop of lognormal lengths; gaps are gamma, `burst` their variance over Poisson's."""

    def draw(n):
        rng = np.random.default_rng(7)
        gaps = rng.gamma(1 / burst, burst / rate, n)
        lengths = lognormal(rng, prompt, sigma, n), lognormal(rng, output, sigma, n)
        return *lengths, COST, scheduler, np.cumsum(gaps).tolist()

    return draw


def closed(n):
    rng = np.random.default_rng(7)
    lengths = rng.integers(820, 1025, n).tolist(), rng.integers(820, 1025, n).tolist()
    return *lengths, COST, Scheduler(), None, 64


LOADS = {
    "chat": load(1020, 129, 20, Scheduler()),
    "code": load(1469, 13, 30, Scheduler()),
    "agents, in bursts": load(4000, 200, 5, Scheduler(ahead=True), burst=10),
    "closed, 64 in flight": closed,
    "few blocks": load(1020, 129, 20, Scheduler(blocks=4_000)),
}


def by_simpy(prompts, outputs, cost, scheduler, arrivals):
    """When each request ends, by a process of simpy that takes each step as an event."""
    env, queue, last = simpy.Environment(), [], [0.0] * len(prompts)

    def come():
        for who, at in enumerate(arrivals):
            yield env.timeout(at - env.now)
            queue.append(who)
            if not server.is_alive or waiting[0]:
                waiting[0].succeed()
                waiting[0] = None

    def serve():
        left, held, done = {}, {}, 0
        while done < len(prompts):
            if not (left or queue):
                waiting[0] = env.event()
                yield waiting[0]
            room, new = scheduler.budget - len(left), []
            while queue and len(left) + len(new) < scheduler.slots and prompts[queue[0]] <= room:
                new.append(queue.pop(0))
                room -= prompts[new[-1]]
            read = sum(prompts[who] for who in new)
            rows = cost.row * len(left) + cost.held * sum(held.values())
            yield env.timeout(cost.base + cost.token * read + rows)
            for who in list(left):
                left[who] -= 1
                held[who] += 1
            left |= {who: outputs[who] - 1 for who in new}
            held |= {who: prompts[who] for who in new}
            for who in [who for who, tokens in left.items() if not tokens]:
                last[who] = env.now
                del left[who], held[who]
                done += 1

    waiting = [None]
    server = env.process(serve())
    env.process(come())
    env.run(until=server)
    return last


def timed(run):
    start = time.process_time()
    found = run()
    return found, time.process_time() - start


def main(n=REQUESTS):
    slow = []
    for name, draw in LOADS.items():
        given = draw(n)
        found, spent = timed(lambda given=given: simulate(*given))
        rate = n / spent
        print(f"{name:<22}{rate:>12,.0f} requests/s, {sum(found.put_off):,} put off")
        slow += [name] if rate < LEAST else []
    prompts, outputs, cost, _, arrivals = LOADS["chat"](2000)
    prompts = [min(p, 8000) for p in prompts]
    small = prompts, outputs, cost, Scheduler(16_384, 256, chunked=False), arrivals
    ours, fast = timed(lambda: simulate(*small))
    theirs, late = timed(lambda: by_simpy(*small))
    assert np.allclose(ours.last, theirs, rtol=1e-9), "simpy ends requests at other times"
    print(f"simpy, 2,000 of chat  {2000 / late:>12,.0f} requests/s; ours {2000 / fast:,.0f}")
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(f"memory, at most       {memory / 1e9:>12.2f} GB")
    return 1 if slow or memory > MOST_MEMORY else 0


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))

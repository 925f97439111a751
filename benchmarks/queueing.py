"""Simulated requests per second of one server, as a ratio to simpy and ciw run beside it.

    python benchmarks/queueing.py

The same Poisson arrivals and exponential service times at 90 % load for `simulate` (arrays, and its
event loop) and for simpy; ciw draws its own. Drawing the random numbers is counted in every case.
Runs alternate, so that a busy machine slows all alike; the best of the rounds counts. Fails below a
million requests per second on arrays.
"""

import time

import ciw
import numpy as np
import simpy

from lightspeed.queueing import mm1
from lightspeed_models.simulators.queue_simulation import poisson_arrivals, simulate

RATE, SERVICE_RATE, ROUNDS, LEAST = 9.0, 10.0, 5, 1e6


def draw(n, seed):
    rng = np.random.default_rng(seed)
    return poisson_arrivals(RATE, n, rng), rng.exponential(1 / SERVICE_RATE, n)


def on_arrays(n, seed):
    return simulate(*draw(n, seed)).waiting.mean()


def event_loop(n, seed):
    return simulate(*draw(n, seed), capacity=n).waiting.mean()


def with_simpy(n, seed):
    env, waits = simpy.Environment(), []
    server = simpy.Resource(env, 1)

    def request(service):
        arrived = env.now
        with server.request() as turn:
            yield turn
            waits.append(env.now - arrived)
            yield env.timeout(service)

    def source(arrivals, services):
        for gap, service in zip(
            np.diff(arrivals, prepend=0).tolist(), services.tolist(), strict=True
        ):
            yield env.timeout(gap)
            env.process(request(service))

    env.process(source(*draw(n, seed)))
    env.run()
    return np.mean(waits)


def with_ciw(n, seed):
    ciw.seed(seed)
    network = ciw.create_network(
        arrival_distributions=[ciw.dists.Exponential(RATE)],
        service_distributions=[ciw.dists.Exponential(SERVICE_RATE)],
        number_of_servers=[1],
    )
    simulation = ciw.Simulation(network)
    simulation.simulate_until_max_customers(n, method="Finish")
    return np.mean([record.waiting_time for record in simulation.get_all_records()])


CASES = {
    "simulate, arrays": (on_arrays, 2_000_000),
    "simulate, event loop": (event_loop, 200_000),
    "simpy": (with_simpy, 40_000),
    "ciw": (with_ciw, 20_000),
}


def main():
    best, waits = dict.fromkeys(CASES, 0.0), {name: [] for name in CASES}
    for seed in range(ROUNDS):
        for name, (run, n) in CASES.items():
            start = time.perf_counter()
            waits[name].append(run(n, seed))
            best[name] = max(best[name], n / (time.perf_counter() - start))
    print(
        f"{'':22}{'requests/s':>12}{'over simpy':>12}{'over ciw':>12}{'mean wait':>12}   (M/M/1:"
        f" {mm1(RATE, SERVICE_RATE).Wq:.2f} s)"
    )
    for name, rate in best.items():
        print(
            f"{name:22}{rate:12,.0f}{rate / best['simpy']:12.1f}{rate / best['ciw']:12.1f}"
            f"{np.mean(waits[name]):11.2f} s"
        )
    assert best["simulate, arrays"] > LEAST, f"below {LEAST:,.0f} requests per second"


if __name__ == "__main__":
    main()

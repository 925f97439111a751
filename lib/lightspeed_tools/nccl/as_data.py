"""A judged run as plain data, for `--json`."""

from lightspeed_tools.nccl.advice import checks_of
from lightspeed_tools.nccl.published import public_near, standing
from lightspeed_tools.nccl.sentences import contradictions, sentences
from lightspeed_tools.nccl.summary import headline, summary


def as_data(run):
    """Return a dict of numbers, strings and None: rates in byte/s, times in s, sizes in bytes."""
    machine = run.machine
    public = public_near(run) if run.main else None
    peers, _ = (run.main and standing(run)) or (None, None)
    return {
        "headline": headline(run),
        "verdict": run.level,
        "confidence": run.confidence,
        "summary": summary(run),
        "share_of_line": run.main.share if run.main else None,
        "facts": {
            name: {"value": fact.value, "how": fact.how, "ground": fact.ground}
            for name, fact in vars(run.facts).items()
        },
        "machine": machine
        and {
            "name": machine.name,
            "how": machine.how,
            "ground": machine.ground,
            "scale_up": machine.inside and float(machine.inside),
            "network": machine.network and float(machine.network),
        },
        "if_it_ran_on": [
            {
                "machine": case.where,
                "nodes": case.nodes,
                "sold_as": list(case.sold),
                "verdict": case.level,
                "share_of_line": float(case.share),
            }
            for case in run.cases
        ],
        "normal_if_a_node_has": run.span and [float(run.span.low), float(run.span.high)],
        "peers": peers
        and {"percentile": peers.percentile, "sweeps": peers.peers, "at": peers.size},
        "public_runs": public
        and {"slower": public.slower, "of": len(public.busbw), "nodes": list(public.nodes)},
        "asks": list(run.facts.asks),
        "sentences": list(sentences(run)),
        "checks": list(checks_of(run)),
        "about_the_file": list(contradictions(run, most=1000)),
        "sizes": [
            {
                "size": v.size,
                "time": v.time,
                "algbw": float(v.algbw),
                "busbw": float(v.busbw),
                "share_of_line": v.share and float(v.share),
                "expected_time": v.model.time if v.model else None,
                "verdict": v.level,
            }
            for v in run.verdicts
        ],
        "in_place": [
            {"size": v.size, "time": v.time, "busbw": float(v.busbw), "verdict": v.level}
            for v in run.in_place
        ],
        "stalls": [
            {"size": s.size, "in_place": s.in_place, "time": s.time, "times_as_long": s.factor}
            for s in run.stalls
        ],
        "as_a_ring": bool(run.main and run.main.ring),
        "versions": list(run.report.versions),
    }

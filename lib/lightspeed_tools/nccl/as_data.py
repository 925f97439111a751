"""A judged run as plain data, for `--json`."""

from lightspeed_tools.nccl.advice import checks_of
from lightspeed_tools.nccl.published import public_near, standing
from lightspeed_tools.nccl.sentences import contradictions, sentences
from lightspeed_tools.nccl.summary import headline, summary


def as_data(judged):
    """A dict of numbers, strings and None: rates in byte/s, times in s, sizes in bytes."""
    machine = judged.machine
    public = public_near(judged) if judged.main else None
    peers, _ = (judged.main and standing(judged)) or (None, None)
    return {
        "headline": headline(judged),
        "verdict": judged.level,
        "confidence": judged.confidence,
        "summary": summary(judged),
        "share_of_line": judged.main.share if judged.main else None,
        "facts": {
            name: {"value": fact.value, "how": fact.how, "ground": fact.ground}
            for name, fact in vars(judged.facts).items()
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
            for case in judged.cases
        ],
        "normal_if_a_node_has": judged.span and [float(judged.span.low), float(judged.span.high)],
        "peers": peers
        and {"percentile": peers.percentile, "sweeps": peers.peers, "at": peers.size},
        "public_runs": public
        and {"slower": public.slower, "of": len(public.busbw), "nodes": list(public.nodes)},
        "asks": list(judged.facts.asks),
        "sentences": list(sentences(judged)),
        "checks": list(checks_of(judged)),
        "about_the_file": list(contradictions(judged, most=1000)),
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
            for v in judged.verdicts
        ],
        "in_place": [
            {"size": v.size, "time": v.time, "busbw": float(v.busbw), "verdict": v.level}
            for v in judged.in_place
        ],
        "stalls": [
            {"size": s.size, "in_place": s.in_place, "time": s.time, "times_as_long": s.factor}
            for s in judged.stalls
        ],
        "as_a_ring": bool(judged.main and judged.main.ring),
        "versions": list(judged.report.versions),
    }

"""What `lightspeed model` says: a model, counted."""

import json

from lightspeed.errors import BadArgument
from lightspeed.values import si
from lightspeed_cli import argument_types
from lightspeed_cli.errors import UserError
from lightspeed_models.cards import cards
from lightspeed_models.llm import ConfigRefused
from lightspeed_models.llm.checkpoint import read_checkpoint

FORMATS = {"bf16": 2.0, "fp8": 1.0, "fp4": 0.5}  # bytes an element, without scales


def add(parser):
    """Put the arguments of the verb on its parser."""
    parser.add_argument(
        "config",
        metavar="model",
        help="a model, such as Qwen3-32B, or a config.json or its folder",
    )
    parser.add_argument(
        "--context", type=argument_types.tokens, default=4096, help="tokens of a request: 4096, 32k"
    )
    parser.add_argument("--batch", type=argument_types.count, default=1, help="requests at once")
    parser.add_argument("--json", action="store_true", help="as JSON")


def run(options):
    """Print the count, or why there is none; status 1 for a config that is refused."""
    reasons = []
    try:
        checkpoint = read_checkpoint(options.config)
    except ConfigRefused as error:
        reasons = error.refused
    except (BadArgument, OSError, ValueError) as error:
        raise UserError(str(error)) from error
    if reasons:
        if options.json:
            # The keys of a count, so that a script finds them all.
            keys = ("parameters", "active_parameters", "flops_per_token", "kv_bytes_per_token")
            none = dict.fromkeys((*keys, "state_bytes"))
            print(json.dumps({**none, "assumed": [], "refused": reasons}, indent=1))
        else:
            print("Not counted, since a guess could be wrong by any factor:")
            print("\n".join(f"  {reason}" for reason in reasons))
        return 1
    decoder = checkpoint.model
    counts = counted(decoder, options.context, options.batch) | on_disk(checkpoint)
    print(json.dumps(counts, indent=1) if options.json else told(counts, decoder))
    return 0


def counted(decoder, context, batch):
    """Return the facts of a decoder in plain numbers: bytes in 2-byte elements, FLOPs a token."""
    request, parameters = decoder.request_bytes(context), int(decoder.parameters + decoder.tower)
    return {
        "name": decoder.name,
        "parameters": parameters,
        "text_parameters": int(decoder.parameters),
        "tower_parameters": int(decoder.tower),
        "active_parameters": int(decoder.active_parameters),
        "embeddings": int(decoder.embeddings),
        "weight_bytes": {name: parameters * each for name, each in FORMATS.items()},
        "context": context,
        "batch": batch,
        "flops_per_token": float(decoder.flops_per_token(context, "decode")),
        "prefill_flops_per_token": float(decoder.flops_per_token(context, "prefill")),
        "training_flops_per_token": float(decoder.flops_per_token(context, "training")),
        "kv_bytes_per_token": float(decoder.kv_cache_bytes_per_token()),
        "state_bytes": float(decoder.state_bytes()),
        "request_bytes": float(request),
        "batch_bytes": float(batch * request),
        "read_bytes_per_step": float(batch * decoder.read_bytes(context)),
        "assumed": list(decoder.assumed),
        "refused": [],
    }


FIT = 0.9  # of a card's memory that weights may take: the rest is for caches and the engine
SHOWN = ("rtx_4090", "rtx_5090", "l40s", "a100_80gb", "h100_sxm", "h200_sxm", "b200", "mi300x")


def on_disk(checkpoint):
    """Return the bytes of the weights in the checkpoint's own formats, and on how many of which
    cards they fit with a tenth of the memory to spare.
    """
    size = checkpoint.stored or checkpoint.formats.bytes(checkpoint.model)
    fits = {
        key: next((n for n in (1, 2, 4, 8) if size <= FIT * n * cards()[key].hbm_capacity), None)
        for key in SHOWN
    }
    formats = checkpoint.formats
    return {
        "formats": formats.words(), "formats_source": formats.source, "bytes_on_disk": float(size),
        "context_limit": checkpoint.context, "fits_on": fits,
    }  # fmt: skip


def told(count, decoder):
    """Format the count in words."""
    flops = [
        f"{si(count[key], 'FLOP')} {words}"
        for key, words in (
            ("flops_per_token", f"to decode at {count['context']:,} tokens"),
            ("prefill_flops_per_token", "to read a prompt of that length"),
            ("training_flops_per_token", "to train on sequences of it"),
        )
    ]
    weights = ", ".join(f"{si(b, 'byte')} in {f}" for f, b in count["weight_bytes"].items())
    cache = f"{si(count['kv_bytes_per_token'], 'byte')} for each token"
    if count["state_bytes"]:
        cache += f", and {si(count['state_bytes'], 'byte')} however long it is"
    rows = [
        ("parameters", f"{count['parameters']:,}, {count['active_parameters']:,} used by a token"),
        ("", f"{count['embeddings']:,} of them in the tables of tokens"),
        *(("", f"{n:,} of them in the tower that sees") for n in [count["tower_parameters"]] if n),
        ("on disk", f"{si(count['bytes_on_disk'], 'byte')}: {count['formats']}"),
        ("", f"({count['formats_source']})"),
        ("fits on", fitting(count["fits_on"])),
        ("weights", f"{weights} (without scales)"),
        ("FLOPs a token", flops[0]),
        *(("", line) for line in flops[1:]),
        ("a request", cache),
        ("", f"{si(count['request_bytes'], 'byte')} at {count['context']:,} tokens, bf16"),
    ]
    if count["batch"] > 1:
        rows.append(("", f"{si(count['batch_bytes'], 'byte')} for {count['batch']:,} of them"))
    rows.append(("a decode step", f"reads {si(count['read_bytes_per_step'], 'byte')} of requests"))
    for layer in decoder.layers:
        parts = " + ".join(type(p).__name__ for p in (layer.mixer, layer.mlp) if p)
        window = getattr(layer.mixer, "window", 0)
        reach = f", a window of {window:,} tokens" if window else ""
        rows.append(
            ("layers" if layer is decoder.layers[0] else "", f"{layer.repeat} × {parts}{reach}")
        )
    rows += [("assumed" if not i else "", words) for i, words in enumerate(count["assumed"])]
    rows.append(("why", "lesson 4.2 counts what a request keeps, lesson 6.1 what training holds"))
    return "\n".join([count["name"], *(f"  {label:<15}{text}" for label, text in rows)])


def fitting(fits):
    """Cards that hold the weights, with how many of each."""
    return (
        ", ".join(f"{many} × {key}" for key, many in fits.items() if many) or "no eight of a kind"
    )

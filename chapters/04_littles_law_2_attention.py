# %% [markdown]
# # 4.2. Little's law: what a step reads
#
# Your users have begun to paste in whole repositories. Each request now holds a hundred thousand
# tokens, and the eight GPUs that had room for two hundred shorter ones are full after about a
# dozen. A colleague shows you a model with more than five times the parameters. With one byte for
# each of them it serves several times as many of these requests on the same machine. Did somebody
# find more memory?
#
# In the last lesson each step read the weights once and everyone's cache. That is still so, but
# models differ in what they keep of a text, and in how much of it a
# step reads. Twenty minutes; you need chapter 2 and [lesson 4](04_littles_law.ipynb). The evidence
# is on the [proof page](04_littles_law_proof.ipynb#What-a-step-reads,-against-public-steps).

# %% tags=["setup"]
from lightspeed.attention import *
from lightspeed.experts import copies_sent, rows_per_expert
from lightspeed.inference import experts_read
from lightspeed_course import Axis, Chart, Line, Points, ask, figure, job, predict, reveal, si, weigh
from lightspeed_course.explorers.attention import explore_attention
from lightspeed_models.llm import decoder

# %%
job.sheet(until="04.2")

# %% [markdown]
# **Guess.** A layer may keep something for each token that it has seen, and that grows with the
# text. Or it may keep one table of numbers, a *state*, which each token changes and which never
# grows. From which length on is the table the better deal?

# %%
predict("serving.state_outgrown", ..., seed="chapter")

# %% [markdown]
# ## What does a request keep?
#
# Attention lets a new token look at all that came before, so a key and a value of each earlier
# token have to be kept, and every step reads them. So four numbers decide what a request keeps: how
# many layers do so, with how many heads, how wide these are, and how many tokens they see. Newer
# kinds of attention lower one of the four, all but one, which keeps more so that it may read less.
# Pick two models and move the context:

# %% tags=["holds"]
text = 100_000  # tokens
kinds = {"whole": "Llama-2-7B", "groups": "Llama-3.1-70B", "latent": "DeepSeek-V3",
         "index": "DeepSeek-V3.2", "state": "Qwen3.5-397B-A17B", "window": "gpt-oss-120b"}  # fmt: skip
kept = {kind: decoder(name).request_bytes(text) / decoder(name).depth for kind, name in kinds.items()}
read = {kind: decoder(name).read_bytes(text) / decoder(name).depth for kind, name in kinds.items()}
assert all(kept[kind] < kept["whole"] / 2 for kind in ("groups", "latent", "state", "window")), (
    "Newer kinds of attention lower one of the four"
)
assert kept["index"] > kept["latent"] and read["index"] < read["latent"], (
    "all but one, which keeps more so that it may read less"
)

# %%
explore_attention()

# %% tags=["setup"]
context = job.CONTEXT
llama, hybrid = decoder("Llama-3.1-70B"), decoder("Qwen3.5-397B-A17B")
latent, sparse, old = decoder("DeepSeek-V3"), decoder("DeepSeek-V3.2"), decoder("Llama-2-7B")
mla, pick = latent.layers[0].mixer, sparse.layers[0].mixer.index_top
window = decoder("gpt-oss-120b").layers[0].mixer.window
held, many = job.long_request()

# %% [markdown]
# The smallest Llama 2 gives every head a key and a value of its own. In your Llama 3 eight heads
# **share** one, and although it has ten times the parameters, a token costs it less:
# {{si(llama.kv_cache_bytes_per_token(), "byte")}} in place of
# {{si(old.kv_cache_bytes_per_token(), "byte")}}. The slope of a line in the first chart is what a
# token costs, and its flat part is what does not depend on the text.

# %% tags=["holds"]
assert 10 * old.parameters < 1.05 * llama.parameters and (
    llama.kv_cache_bytes_per_token() < old.kv_cache_bytes_per_token()
), "a token costs it less"

# %% [markdown]
# ## Can a head do without a key of its own?
#
# DeepSeek-V3 has {{mla.heads}} heads and keeps nothing for any of them. A layer keeps *one* vector
# of {{mla.kv_rank}} numbers a token, the **latent** one, and {{mla.rotary}} more that say where the
# token stood. Keys and values are made from it by a matrix: the key is $Wc$, and a head compares it
# with its query $q$. Here is the trick. In place of making a key of each vector you can change the
# query, once:
#
# $$q \cdot (W c) = (W^\top q) \cdot c$$
#
# What stands on the right meets the vectors as they lie. So a step reads
# {{si(attention_bytes(1, 1, 576, 0), "byte")}} a token and layer, where a key and a value for each head would be
# {{si(attention_bytes(1, 128, 192, 128), "byte")}}.
#
# It isn't free. The vectors are wider than the keys were, so the same look at the past takes
# {{attention_flops(1, 128, 576, 512) / attention_flops(1, 128, 192, 128):.1f}} times the
# arithmetic, {{attention_flops(1, 128, 576, 512) / attention_bytes(1, 1, 576, 0):.0f}} FLOP for
# each byte. That is close to an H100's ridge (chapter 2), so not much arithmetic more would fit into
# the time of the reading. And if many new tokens arrive at once, as
# in a prompt, the trick stops paying: beyond {{absorption_break_even(512, 128, 128):.0f}} of them
# it's cheaper to make the keys.

# %% tags=["holds"]
assert attention_flops(1, 128, 576, 512) > 3 * attention_flops(1, 128, 192, 128), (
    "The vectors are wider than the keys were"
)

# %%
ask("serving.latent_cache", seed="long")

# %% [markdown]
# ## Must it read everything?
#
# No. A **window** lets a layer see only the last tokens, {{window}} in half of gpt-oss's layers, so
# what lies further back is neither kept nor read. An **index** keeps everything but reads little: a
# small second attention, narrow and in one byte a number, looks at every token and picks
# {{pick:,}}, and only those are read in full. DeepSeek-V3 got one in its release V3.2: at
# {{context:,}} tokens a step reads {{si(sparse.read_bytes(context), "byte")}} of a request in place
# of {{si(latent.read_bytes(context), "byte")}}. But it *keeps* more than before, because it keeps
# the index as well. Memory and traffic, one number until now, have come apart.

# %% tags=["holds"]
assert sparse.request_bytes(context) > latent.request_bytes(context), "it *keeps* more"

# %%
ask("serving.index_pays", seed="chapter")

# %% [markdown]
# ## Must it keep the text at all?
#
# The last idea drops the cache. A layer keeps a matrix for each head; a new token corrects it a
# little, and a query reads it. Linear attention, gated delta, Mamba-2: the rules differ, the bytes
# don't. The state has a size, and a million tokens later it has the same size. Every step has to
# read it and write it back, from the first token on.

# %%
reveal("serving.state_outgrown", seed="chapter")

# %% [markdown]
# A matrix can't hold every word of a long text, so such models put a layer of plain attention after
# every few of the others: a **hybrid**. Qwen3.5 keeps
# {{si(hybrid.state_bytes(), "byte")}} of states and then
# {{si(hybrid.kv_cache_bytes_per_token(), "byte")}} for each token, a tenth of Llama's.

# %% tags=["holds"]
assert 9.5 < llama.kv_cache_bytes_per_token() / hybrid.kv_cache_bytes_per_token() < 11, (
    "a tenth of Llama's"
)

# %% tags=["setup"]
ffn, batch = latent.layers[-1].mlp, 64
hybrid_held = hybrid.request_bytes(context)
room = job.node_memory() - hybrid.parameters  # its weights in one byte
hybrid_many = room // hybrid_held

# %% [markdown]
# ## And the weights?
#
# There, too, memory and traffic can come apart. In a dense model the whole batch meets every
# weight, which is why batching paid. In one with *experts*, many smaller MLPs side by side, each
# token chooses a few of them. Here each of sixteen tokens chooses two of thirty-two experts, which
# lie on four GPUs:

# %% tags=["figure"]
import random

chosen = [random.Random(i).sample(range(32), 2) for i in range(16)]
read = sorted({expert for pair in chosen for expert in pair})
unread = [expert for expert in range(32) if expert not in read]
gpus = ("blue", "orange", "green", "purple")
paths = [
    Line((0, 1), (-2 * token - 0.5, -expert), color=gpus[expert // 8], width=1)
    for token, pair in enumerate(chosen)
    for expert in pair
]
figure(
    Chart(
        Axis(domain=(-0.25, 1.3)),
        Axis(domain=(-32, 1)),
        [
            *paths,
            Points([0] * 16, [-2 * t - 0.5 for t in range(16)], "tokens", color="black", size=4),
            *(
                Points([1] * len(own), [-e for e in own], f"GPU {gpu + 1}, read", color=gpus[gpu])
                for gpu in range(4)
                if (own := [e for e in read if e // 8 == gpu])
            ),
            Points(
                [1] * len(unread), [-e for e in unread], "not read", color="grey", marker="cross"
            ),
        ],
        bare=True,
        height=420,
    ),
    caption="Each line is a copy of a token on its way to an expert; what comes back goes the same way.",
    alt=(
        "Sixteen tokens on the left, twice as many experts on the right in the colors of four GPUs. Two lines"
        " leave each token. Some experts get none and are crossed out."
    ),
)

# %% tags=["holds"]
assert len(unread) > 0 and len(chosen) == 16, "Some experts get none"

# %% [markdown]
# The {{len(read)}} experts that somebody chose are read, the others are not. With a small batch
# that is a gift: few weights are read. With a larger one it's a bill, since almost all are read and
# each is used for a few rows only. DeepSeek-V3 chooses {{ffn.active}} of {{ffn.experts}}. So a
# token misses an expert with a chance of {{1 - ffn.active / ffn.experts:.1%}}, and a batch misses
# it if every token does: one of {{batch}} reads
# {{experts_read(batch, ffn.experts, ffn.active):.0f}} of them. How many tokens share the reading of
# each? Guess before you count.

# %% tags=["holds"]
assert experts_read(64, 256, 8) > 0.85 * 256, "almost all are read"

# %%
ask("serving.rows_of_an_expert", seed="chapter")

# %% [markdown]
# That is why such models are served in large batches, over many GPUs. But then tokens have to
# travel. One copy to each expert is simplest, and quickest for a few tokens. One to each GPU that
# has any of them is less, on eight GPUs {{copies_sent(8, 8):.1f}} copies in place of 8, and worth
# the sorting when there are many.
#
# ## Does it hold?

# %% tags=["setup"]
steps, exchanges = weigh("attention-kinds"), weigh("expert-exchange")
shares = {
    kind: steps.regime(f"{kind}, h100_sxm").ratios[1]
    for kind in ("latent", "sparse layer", "gated delta")
}

# %% [markdown]
# Nearly. Among {{len(steps.rows):,}} public steps on nine chips, a few found their bytes in the
# chip's own cache; of the rest only one kernel that updates states is faster than its bytes allow.
# How near the others come differs: on an H100 another that updates states reaches
# {{shares["gated delta"]:.0%}} of its bound in the median, one of latent attention
# {{shares["latent"]:.0%}}, and a layer with an index just {{shares["sparse layer"]:.0%}}, because
# picking tokens takes several small kernels that don't run at the speed of memory. The journeys of
# tokens to experts have a surprise, too: in large batches their rate depends on the chips, and not
# on the links between them
# ([proof](04_littles_law_proof.ipynb#What-a-step-reads,-against-public-steps)).

# %% tags=["holds"]
assert all(
    one.beaten == 0 or one.excused == 1 or one.regime.startswith("gated delta, unpacked")
    for one in steps.by_regime
), "is faster than its bytes allow"
assert shares["gated delta"] > shares["latent"] > shares["sparse layer"], "How near the others come"
assert all(
    0.8 < one.ratios[1] < 1.25 for one in exchanges.by_regime if one.regime.startswith("normal")
), "and not on the links"

# %% tags=["setup"]
attending = sum(one.repeat for one in hybrid.layers if getattr(one.mixer, "kv_heads", 0))
state = hybrid.state_bytes() / (hybrid.depth - attending)
turn = state_break_even(state, hybrid.kv_cache_bytes_per_token() / attending)

# %% [markdown]
# ## Did somebody find more memory?
#
# No. A request of {{context:,}} tokens keeps {{si(held, "byte")}} in your model, so beside its
# weights there is room for {{many}}. In the new one it keeps {{si(hybrid_held, "byte")}}, because a
# quarter of its layers look at the text, with two KV heads each, and the others remember it in a
# state. Its weights need more memory, and yet {{hybrid_many:.0f}} fit. With short texts it would be
# otherwise: below {{turn:,.0f}} tokens one of its states is larger than the cache of the layer beside
# it. (The model of your guess has narrower states.)

# %% tags=["holds"]
assert sum(m.repeat for m in hybrid.layers if getattr(m.mixer, "kv_heads", 0) == 2) * 4 == (
    hybrid.depth
), "a quarter of"
assert hybrid_many > 3 * many and 10 <= many <= 14, "need more memory"
assert many < 15, "beside its weights there is room"
assert attending * 4 == hybrid.depth and state_bytes(64, 128, 128) > attention_bytes(
    0.9 * turn, 2, 256, 256
), "is larger than the cache"
assert state_bytes(32, 64, 64) < state_bytes(64, 128, 128), "has narrower states"

# %% [markdown] tags=["takeaway"]
# - What a request keeps and what a step reads of it depend on the kind of attention: ask for both, in
#   bytes a token, and for what never grows.
# - Memory and traffic are two numbers now; in a long text an index saves the second and costs some of
#   the first.
# - Experts turn a large batch into many small ones, and tokens into traffic.

# %% [markdown] tags=["card"]
# | formula | meaning | unit | for the job |
# |---|---|---|---|
# | $h\,(k + v)\,e \cdot \min(L, m)$ | read of $L$ tokens, $m$ at most, by $h$ KV heads: $k$ and $v$ numbers of $e$ bytes | byte | {{si(attention_bytes(context, 8, 128, 128), "byte")}} |
# | $(r + \rho)\,e\,L$ | the same with one latent vector of $r$ numbers, and $\rho$ for the place | byte | {{si(attention_bytes(context, 1, 576, 0), "byte")}} |
# | $h\,k\,v \cdot 4$ | state of a layer, read and written in each step | byte | {{si(state_bytes(64, 128, 128), "byte")}} |
# | $E\,(1 - (1 - k/E)^B)$ | experts of $E$ that a batch of $B$ reads, if a token chooses $k$ | | {{experts_read(batch, ffn.experts, ffn.active):.0f}} of {{ffn.experts}} |
# | $R\,(1 - (1 - 1/R)^k)$ | copies of a token, one for each of $R$ GPUs with an expert of it | | {{copies_sent(8, 8):.1f}} |

# %% [markdown]
# ## Exercises, next
#
# The questions of this page come with other numbers in
# [the exercises](../exercises/04_littles_law.ipynb). Next: [narrower numbers](05_precision.ipynb).

# %% [markdown]
# # 4.2. Attention: what a request keeps, and what a step reads
#
# Your users have begun to paste in whole repositories. Each request now holds a hundred thousand
# tokens, and the eight GPUs that had room for two hundred shorter ones are full after about a
# dozen. A colleague shows you a model with more than five times the parameters. With one byte for
# each of them it has room for several times as many of these requests on the same machine, at least
# if you cut it up in the right way. Did somebody find more memory?
#
# In the last lesson each step read the weights once and everyone's cache. That is still so, but
# models differ in what they keep of a text, and in how much of it a
# step reads. Twenty minutes; you need chapter 2 and [lesson
# 4.1](04_littles_law_1_replica.ipynb). The evidence is on the [proof page](04_littles_law_proof.ipynb#What-a-step-reads,-against-public-steps).

# %% tags=["setup"]
from lightspeed.attention import *
from lightspeed.experts import copies_sent, rows_per_expert
from lightspeed.inference import experts_read
from lightspeed_course import Axis, Boxes, Chart, Line, Points, Text
from lightspeed_course import ask, figure, job, predict, reveal, si, weigh
from lightspeed_models.llm import decoder

# %%
job.sheet(until="04.2")

# %% [markdown]
# **First, one from lesson 4.1.** You'll need it here.

# %%
ask("serving.cache_of_a_request", seed="again")

# %% [markdown]
# **Guess.** A layer may keep something for each token of the text. Or it may keep one table of
# numbers, a *state*, that never grows. From which length on is the table the better deal?

# %%
predict("serving.state_outgrown", ..., seed="chapter")

# %% [markdown]
# ## What does a request keep?
#
# Attention lets a new token look at all that came before, so a key and a value of each earlier
# token have to be kept, and every step reads them. So four numbers decide what a request keeps: how
# many layers do so, with how many heads, how wide these are, and how many tokens they see. Newer
# kinds of attention lower one of the four, all but one, which keeps more so that it may read less.
# Here is one layer of each kind over {{job.LONG:,}} tokens. A box is as wide as the tokens that it
# keeps and as high as the bytes of each, so its area is memory; what is dark is read in a step.

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

# %% tags=["figure"]
tokens, window_of, top = job.LONG, 128, 2048  # assumed
in_state = state_bytes(64, 128, 128)
kinds = {
    "a head each": (attention_bytes(1, 32, 128, 128), tokens, "Llama 2 7B"),
    "shared heads": (attention_bytes(1, 8, 128, 128), tokens, "Llama 3 70B"),
    "one latent": (attention_bytes(1, 1, 576, 0), tokens, "DeepSeek-V3"),
    "an index": (attention_bytes(1, 1, 576, 0) + 128, tokens, "a newer DeepSeek"),
    "a window": (attention_bytes(1, 8, 64, 64), window_of, "gpt-oss"),
    "a state": (attention_bytes(1, 8, 128, 128), in_state / 4096, "Qwen3.5"),
}
areas = {kind: high * wide for kind, (high, wide, _) in kinds.items()}
apart = 1.25 * tokens
left = {kind: i * apart for i, kind in enumerate(kinds)}
whole = [(left[k], left[k] + wide, 0, high) for k, (high, wide, _) in kinds.items()]
at = left["an index"]
narrow = attention_bytes(1, 1, 576, 0)
dark = [box for kind, box in zip(kinds, whole) if kind != "an index"]
dark += [(at, at + top, 0, narrow), (at + top, at + tokens, narrow, narrow + 128)]
titles = [
    Text(left[k] + tokens / 2, high + lift, text, color)
    for k, (high, _, model) in kinds.items()
    for lift, text, color in (
        (2900, k, "black"), (1800, model, "grey"), (700, si(areas[k], "byte"), "grey"))
]  # fmt: skip
figure(
    Chart(
        Axis(domain=(-0.2 * tokens, 6.2 * apart)), Axis(domain=(0, 20_500)),
        [Boxes(*zip(*whole), "kept", color="sky", soft=True), Boxes(*zip(*dark), "read", color="blue"),
         *titles],
        bare=True, height=330,
    ),
    caption=f"One layer, {tokens:,} tokens, to scale. Sharing and a latent vector make the box lower,"
    " a window makes it narrower, an index leaves most of it unread, and the last box stays as it is"
    " however long the text.",
    alt="Six boxes side by side. The first is high; the second a quarter as high; the third and the"
    " fourth are thin strips, the fourth dark at its left end and along its top edge only; the fifth"
    " is a sliver, and the sixth a narrow bar.",
)  # fmt: skip

# %% tags=["holds"]
assert 2 * kinds["shared heads"][0] < kinds["a head each"][0] and kinds["one latent"][0] < (
    kinds["shared heads"][0]
), "Sharing and a latent vector make the box lower"
assert 4 * kinds["shared heads"][0] == kinds["a head each"][0], "the second a quarter as high"
assert narrow * top + 128 * (tokens - top) < areas["an index"] / 2, (
    "an index leaves most of it unread"
)

# %% [markdown]
# Now pick two whole models and move the context:

# %%
from lightspeed_course.explorers.attention import explore_attention

explore_attention()

# %% tags=["setup"]
context = job.CONTEXT
llama, hybrid = decoder("Llama-3.1-70B"), decoder("Qwen3.5-397B-A17B")
latent, sparse, old = decoder("DeepSeek-V3"), decoder("DeepSeek-V3.2"), decoder("Llama-2-7B")
mla, pick = latent.layers[0].mixer, sparse.layers[0].mixer.index_top
window = decoder("gpt-oss-120b").layers[0].mixer.window
held, many = job.long_request()

# %% [markdown]
# The smallest Llama 2 gives every head a key and a value of its own (**MHA**). In your Llama 3
# eight heads
# **share** one (**GQA**; where all share one, **MQA**), and although it has ten times the
# parameters, a token costs it less:
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
# of {{mla.kv_rank}} numbers a token, the **latent** one (**multi-head latent attention**, MLA), and {{mla.rotary}} more that say where the
# token stood. Keys and values are made from it by a matrix: the key is $Wc$, and a head compares it
# with its query $q$. Here is the trick. In place of making a key of each vector you can change the
# query, once:
#
# $$q \cdot (W c) = (W^\top q) \cdot c$$
#
# The right side compares the changed query with the vectors themselves, as they are kept. So a step reads
# {{si(attention_bytes(1, 1, 576, 0), "byte")}} a token and layer, where a key and a value for each head would be
# {{si(attention_bytes(1, 128, 192, 128), "byte")}}.
#
# It isn't free. The vectors are wider than the keys were, so the same look at the past takes
# {{attention_flops(1, 128, 576, 512) / attention_flops(1, 128, 192, 128):.1f}} times the
# arithmetic, {{attention_flops(1, 128, 576, 512) / attention_bytes(1, 1, 576, 0):.0f}} FLOP for
# each byte. That is close to an H100's ridge (chapter 2), so the tensor cores have hardly any time left. And for
# the many new tokens of a prompt the trick stops paying. To make a key and a value takes a head
# {{mla.kv_rank * (mla.plain + mla.value_width):,}} multiplications for each token of the past, but only once for all new ones;
# then each new token saves {{2 * mla.kv_rank - mla.plain - mla.value_width}}. So beyond
# {{absorption_break_even(512, 128, 128):.0f}} of them it's cheaper to make them.

# %% tags=["holds"]
assert attention_flops(1, 128, 576, 512) > 3 * attention_flops(1, 128, 192, 128), (
    "The vectors are wider than the keys were"
)
assert mla.kv_rank * (mla.plain + mla.value_width) / (
    2 * mla.kv_rank - mla.plain - mla.value_width
) == absorption_break_even(512, 128, 128), "it's cheaper to make them"

# %% [markdown]
# ## Must it read everything?
#
# No. A **window** (sliding-window attention) lets a layer see only the last tokens, {{window}} in half of gpt-oss's layers, so
# what lies further back is neither kept nor read. An **index** (**sparse attention**) keeps
# everything but reads little: a
# small second attention, narrow and in one byte a number, looks at every token and picks
# {{pick:,}}, and only those are read in full. DeepSeek-V3 got one in its release V3.2: at
# {{context:,}} tokens a step reads {{si(sparse.read_bytes(context), "byte")}} of a request in place
# of {{si(latent.read_bytes(context), "byte")}}. But it *keeps* more than before, because it keeps
# the index as well. Memory and traffic, one number until now, have come apart.

# %% tags=["holds"]
more = (sparse.request_bytes(context) - latent.request_bytes(context)) / (sparse.depth * context)
assert 0 < abs(more / sparse.layers[0].mixer.index_width - 1) < 0.05 and more > 0, (
    "it *keeps* more than before, because it keeps the index as well"
)

# %% [markdown]
# ## Must it keep the text at all?
#
# The last idea drops the cache. A layer keeps a matrix for each head; a new token corrects it a
# little, and a query reads it. **Linear attention**, gated delta, Mamba-2: the rules differ, the
# bytes
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
cut = kv_copies(2, job.PER_NODE)
hybrid_cut = room // (hybrid.state_bytes() + cut * (hybrid_held - hybrid.state_bytes()))
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

# %% tags=["setup"]
steps = weigh("attention-kinds")
shares = {
    kind: steps.regime(f"{kind}, h100_sxm").ratios[1]
    for kind in ("sparse layer", "gated delta")
}

# %% [markdown]
# That is why such models are served in large batches, over many GPUs. But then tokens have to
# travel. If each of a token's eight experts gets a copy, eight travel. If each *GPU* that has any of
# them gets one, it is {{copies_sent(8, 8):.1f}} on eight GPUs; sorting the tokens for that takes time,
# and pays in a large batch.
#
# On public steps these bytes hold as a bound, and some kernels come near it, others don't
# ([proof](04_littles_law_proof.ipynb#What-a-step-reads,-against-public-steps)): on an H100 one that
# updates states reaches {{shares["gated delta"]:.0%}} of it, a layer with an index
# {{shares["sparse layer"]:.0%}}; it picks its tokens in several small kernels.

# %% tags=["holds"]
assert shares["gated delta"] > shares["sparse layer"], "some kernels come near it, others don't"

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
# state. Its weights need more memory, and yet {{hybrid_many:.0f}} fit, if each cache is kept once.
#
# Is it? Your model has a KV head for each of the eight GPUs. In the new one two heads meet eight GPUs. If
# you split the layer by heads, as **tensor parallelism** does, each GPU needs a whole head, so four
# of them keep the same one, and only {{hybrid_cut:.0f}} requests fit. In general a cache split by $h$ KV
# heads over $n$ GPUs is kept $\max(1, n/h)$ times. An engine avoids that by giving each GPU
# the attention of its own requests (**data-parallel attention**; then each keeps all of attention's
# weights, too), or of its own part of the text (**context parallelism**). A latent vector is one head in this count, so there it matters most.
#
# With short texts it would all be otherwise: below {{turn:,.0f}} tokens one of its states is larger
# than the cache of the layer beside it. (That is more than in your guess, because the heads of that
# model are narrower.)

# %% tags=["holds"]
assert sum(m.repeat for m in hybrid.layers if getattr(m.mixer, "kv_heads", 0) == 2) * 4 == (
    hybrid.depth
), "a quarter of"
assert hybrid_many > 3 * many and 10 <= many <= 14, "need more memory"
assert llama.attention.kv_heads == 8 == job.PER_NODE and kv_copies(8, 8) == 1, (
    "Your model has a KV head for each of the eight GPUs"
)
assert cut == 4 and many < hybrid_cut < hybrid_many / 3, "four of them keep the same one, and only"
assert kv_copies(1, 8) == max(kv_copies(h, 8) for h in (1, 2, 4, 8)), (
    "A latent vector is one head in this count, so there it matters most"
)
assert many < 15, "beside its weights there is room"
assert attending * 4 == hybrid.depth and state_bytes(64, 128, 128) > attention_bytes(
    0.9 * turn, 2, 256, 256
), "is larger than the cache"
assert state_bytes(32, 64, 64) < state_bytes(64, 128, 128), "the heads of that model are narrower"

# %% [markdown]
# ## Decide

# %%
ask("serving.latent_cache", seed="long")

# %%
ask("serving.index_pays", seed="chapter")

# %% [markdown]
# ## Remember

# %% [markdown] tags=["takeaway"]
# - What a request keeps and what a step reads of it depend on the kind of attention: ask for both, in
#   bytes a token, and for what never grows.
# - Memory and traffic are two numbers now; in a long text an index saves the second and costs some of
#   the first.
# - Experts turn a large batch into many small ones, and tokens into traffic.

# %% [markdown] tags=["card"]
# | formula | meaning | unit | for the job |
# |---|---|---|---|
# | $h\,(d_k + d_v)\,e \cdot \min(L, m)$ | read of $L$ tokens, $m$ at most, by $h$ KV heads: a key of $d_k$ and a value of $d_v$ numbers of $e$ bytes | byte | {{si(attention_bytes(context, 8, 128, 128), "byte")}} |
# | $(r + p)\,e\,L$ | the same with one latent vector of $r$ numbers, and $p$ for the place | byte | {{si(attention_bytes(context, 1, 576, 0), "byte")}} |
# | $\max(1, n / h)$ | copies of a cache with $h$ KV heads that a tensor group of $n$ GPUs keeps | | {{kv_copies(8, 8):.0f}}; {{cut:.0f}} with two heads |
# | $4\,h\,d_k\,d_v$ | state of a layer, read and written back in each step | byte | {{si(state_bytes(64, 128, 128), "byte")}} |
# | $E\,(1 - (1 - a/E)^B)$ | experts of $E$ that a batch of $B$ reads, if a token chooses $a$ | | {{experts_read(batch, ffn.experts, ffn.active):.0f}} of {{ffn.experts}} |
# | $R\,(1 - (1 - 1/R)^a)$ | copies of a token, one for each of $R$ GPUs with an expert of it | | {{copies_sent(8, 8):.1f}} |

# %% [markdown]
# ## Exercises, next
#
# The questions of this page come with other numbers in
# [the exercises](../exercises/04_littles_law.ipynb). Next: [narrower numbers](05_precision.ipynb).

# %% [markdown]
# # Exercises of the sample

# %%
peak, bandwidth = 312e12, 2.039e12


def ask(identifier):
    """Stands for the course's own `ask`."""
    print(f"Question {identifier}: what is the ridge of a chip of {peak:.3g} FLOP/s?")


# %%
ask("ridge")

# %%
# BEGIN SOLUTION
# STUB: answer = ...  # FLOP/byte
canary_answer = peak / bandwidth
answer = canary_answer
# END SOLUTION
print("checked", answer)

# %% [markdown]
# ## Write a function
# At {{bandwidth:.3g}} byte/s.


# %%
def attainable(intensity):
    """What a kernel of this intensity reaches."""
    # BEGIN SOLUTION
    # STUB: raise NotImplementedError
    canary_slope = intensity * bandwidth
    return min(peak, canary_slope)
    # END SOLUTION


# %%
print(f"{attainable(1):.4g}")

# %%
# BEGIN SOLUTION
canary_without_stub = 0
# END SOLUTION

# %% [markdown] tags=["solution"]
# canary_explanation: the ridge is {{answer:.0f}}, where the slope meets the roof.

# %% tags=["solution"]
print("canary_figure", answer)

# %% [markdown]
# # A sample page
#
# The tests of the build work on it: it has each thing that the build treats in its own way.

# %%
import time

from IPython.display import HTML, display
from ipywidgets import IntSlider

from lightspeed.catalog import accelerator
from lightspeed.roofline import ridge_point

a100 = accelerator("a100_80gb")

# %% [markdown]
# The ridge of the {{a100.name}} is {{ridge_point(a100.bf16, a100.hbm_bandwidth):.0f}} FLOP/byte, in LaTeX
# $I = \frac{ {{a100.bf16 / 1e12:.0f}} }{ {{a100.hbm_bandwidth / 1e12:.3f}} }$.

# %%
ridge = ridge_point(a100.bf16, a100.hbm_bandwidth)
print(f"ridge {ridge:.1f} FLOP/byte")

# %%
print("before")
display(HTML(f'<img alt="A bar as wide as the ridge is far." src="data:image/svg+xml,<svg><rect width={ridge:.0f}/></svg>">'))
print("after")
f"{ridge:.2f}"

# %% [markdown]
# The same cell twice has two ids.

# %%
print(ridge > 1)

# %%
print(ridge > 1)

# %% tags=["raises-exception"]
raise ValueError(f"expected FLOP/byte above {ridge:.0f}")

# %% tags=["timed"]
time.perf_counter()

# %%
slider = IntSlider(value=3, description="batch")
display({**slider._repr_mimebundle_(), "text/plain": f"batch = {slider.value}"}, raw=True)

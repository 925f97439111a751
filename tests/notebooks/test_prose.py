"""Numbers in prose: expressions are filled in, typed numbers refused, names not."""

import pytest

from lightspeed_authoring.prose import typed_in_code, typed_numbers
from lightspeed_show.bound import expressions, fill

REFUSED = [
    # text, how many numbers are typed in it
    ("The ridge is 153.", 1),
    ("The ridge is 153.02 FLOP/byte.", 1),
    ("about 0.5 of it", 1),
    ("about .5 of it", 1),
    ("an intensity of ½ FLOP/byte", 1),
    ("1/2 FLOP per byte moved, 1/2 FLOP", 2),
    ("takes 8 GB", 1),
    ("takes 8GB", 1),
    ("takes **8** GB", 1),
    ("takes `8` GB", 1),
    ("takes 8\u202fGB", 1),
    ("takes 8\nGB", 1),
    ("an 8-bit weight", 1),
    ("a 7B model", 1),
    ("2 B a parameter", 1),
    ("5 ms, 5 µs, 5 ns, 5 s", 4),
    ("only 5 % of peak", 1),
    ("only 5% of peak", 1),
    ("only 5 percent of peak", 1),
    (r"only $5\,\%$ of peak", 1),
    ("2× faster", 1),
    ("2 × faster", 1),
    ("2x faster", 1),
    ("x2 faster", 1),
    ("x100", 1),
    ("×8 bits a byte", 1),
    ("a 2×2 tile", 2),
    ("2-fold, 3 times, 3 orders of magnitude", 3),
    ("10⁹ and 2³⁰", 2),
    ("2 GPUs, 4 chips, 3 layers, 9 cycles", 4),
    ("8,192 tokens", 1),
    ("8192 wide", 1),
    ("1e12 FLOP", 1),
    ("3e8 m/s", 1),
    ("costs $3 an hour and €2 more", 2),
    (r"costs \$3 an hour", 1),
    ("~5 ns", 1),
    ("2–3 GB", 1),
    ("B = 1024, 2000, 4096", 3),
    ("a batch of 2000", 1),
    ("2000 tokens in 2024 steps", 2),
    ("1979 TFLOP/s and 2039 GB/s", 2),
    ("in 2000 tokens", 1),
    ("(2000 GB/s)", 1),
    ("![A bar of 3.35 TB/s](figure.svg)", 1),
    ('<img src="a12.png" alt="the ridge at 153">', 1),
    ('<a title="at 240" href="https://example.org/240">here</a>', 1),
    ('[here](https://example.org/240 "at 240")', 1),
    ("[240 FLOP/byte](https://example.org/)", 1),
    ("`critical_batch(240)`", 1),
    ("```python\nridge = 3.35e12\n```", 1),
    ("| GPU | ridge |\n|---|---|\n| H100 | 295 |", 1),
    ("| chip | GB |\n|---|---|\n| A | 8 |", 1),
    ("| rank | GB | s |\n|---|---|---|\n| 1 | 8 | 2 |", 2),
    ("$B > 240$", 1),
    (r"$$T = \frac{2BDF}{1.97 \cdot 10^{14}}$$", 3),
    (r"$2\,\text{ms}$ and $3\ \mathrm{GB/s}$", 2),
    (r"$2 \times$ faster", 1),
    (r"$1{,}024$", 1),
    ("$12Lh^2$", 1),
    ("...240", 1),
    ("from about (240) up", 1),
    ("Sub-100 ns", 1),
    ("NVLink 450 GB/s", 1),
    ("HBM 3 TB/s", 1),
    ("section 3 and 240 tokens", 1),
    ("chapter 2 has 8 GB", 1),
    ("B<D and 240 > F", 1),
    ("11th", 1),
    ("HBM 5 h, NVLink 8 h, PCIe 1 d", 2),
    (r"~2$\times$ faster", 1),
    ("on 8 H100s, on 1 A100", 2),
    ("within a factor of 2", 1),
    ("GB = 10^9", 1),
    ("{{240:.0f}} FLOP/byte", 1),
    ('{{si(240e9, "byte")}}', 1),
    ('{{"240 GB"}}', 1),
    ("{{float(240)}}", 1),
    ("{{round(3.35e12 / 1e9)}} GB/s", 1),
    ("{{f(x, '3.35 TB/s')}}", 1),
    ("{{x}} of 16 GB", 1),
]

ALLOWED = [
    "H100, A100, V100, B200, MI300X, bf16, int8, fp32, float64, v5e, L2, M/M/1, 2D, 3D, 1F1B",
    (
        "PCIe 5, PCIe 5.0, PCIe 5 x16, NVLink 4, NVLink4, Gen 5, HBM3e, DDR5-6400, GPT-3, Llama 3,"
        " Llama 3.1, Python 3.11"
    ),
    (
        "chapter 12, Chapters 1 and 2, section 3.5, sections 3.3, 3.4 and 3.5, question 12, Figure"
        " 2.1, §3.2, step 10, pp. 12–15"
    ),
    "## 2.1 The roof",
    "1. first\n12. twelfth",
    "12) twelfth",
    "(2009), (Williams et al., 2009), (Williams 2009; Ofenbeck 2014)",
    (
        "Horowitz, Computing's energy problem, ISSCC 2014. In 2009 the roofline was drawn; since"
        " 2017, too."
    ),
    "read on 2026-03-12, on 12 March 2024, in March 2024",
    (
        "[the paper](https://example.org/2014/12/240) and https://example.org/240?x=16 and"
        " doi:10.1145/1498765.1498785"
    ),
    "![A roof](figures/240.svg)",
    "<https://example.org/240>",
    "arXiv:2411.13055",
    '<img src="a.svg" width="640" alt="A roof with a ridge">',
    '<div style="width: 60%">text</div>',
    "<!-- 240 GB -->",
    "[^12]",
    "`time_bounds`, `h100_sxm.hbm_bandwidth`, `x1 + x2`, `np.float64`, `02_roofline`",
    "2BDF FLOPs, 6ND, 2P, 1/2, 2:4 sparse, 0 or 1, rank 0, GPU 0, the 3rd, one of 3 ways",
    "2 × B, B × 2, 2·B·D·F",
    (
        r"$2BDF$, $\frac{1}{2}$, $2 \times B \times D$, $2\cdot B$, $x^2$, $2s + 3m$, $3x$, $2B$,"
        r" $s_1$"
    ),
    r"$$T_\text{math} = \frac{2BDF}{\text{peak}} \le 2 \max(a, b)$$",
    "sixteen bytes, twice, half, three times",
    "{{ridge:.0f}} FLOP/byte, {{100 * share:.0f}} %, {{gain:.1f}}×, {{size / 1e9:.1f}} GB",
    '{{accelerator("h100_sxm").bf16 / 1e12:.0f}} TFLOP/s',
    r"$\frac{ {{peak:.0f}} }{2}$",
    "{{amdahl_speedup(8, serial=0.05):.1f}} times",
    "{{format}}",
    "| question | topic |\n|---|---|\n| 1 | roof |\n| 2 | {{n}} |",
    "chapter 01",
    "the 99th percentile, p99",
    "v1.2, utf-8",
    "B, D and F; 1, 2, 3",
    "M4 Max, A100-80GB",
    "&#8212; &nbsp;",
]


@pytest.mark.parametrize(("text", "count"), REFUSED)
def test_refuses_typed_numbers(text, count):
    assert len(list(typed_numbers(text))) == count, list(typed_numbers(text))


@pytest.mark.parametrize("text", ALLOWED)
def test_allows_what_is_no_typed_number(text):
    assert list(typed_numbers(text)) == []


def test_names_where_the_number_is():
    assert list(typed_numbers("one\ntwo 240 FLOP/byte\nthree")) == [(8, "240 FLOP/byte")]


CODE_REFUSED = [
    ('figure(chart, caption="The ridge at 153 FLOP/byte")', "153 FLOP/byte"),
    ('x = f"the ridge {ridge:.0f} of 240"', "240"),
    ('x = f"{gain:.1f} of 2× at most"', "2× at most"),
    ('table(["GPU", "8 GB"])', "8 GB"),
    ("x = 1  # 80 GB part", "80 GB part"),
    ('def f():\n    """At 3.35 TB/s."""', "3.35 TB/s."),
    ('x = "{:.1f} of 16"', "16"),
    ('x = "in bytes: " "12"', "12"),
    ('x = f"{value:.1f}" f" 99"', "99"),
    ('ask("q", note=r"$B > 240$")', "240$"),
]
CODE_ALLOWED = [
    "batch = 240",
    'x = f"{ridge:.2f} FLOP/byte, {share:.0%}"',
    'format(ridge, ",.0f"), "{:.2f} of {n}".format(x, n=3), "%.1f" % x',
    'ask("roofline.q12"); gallery("01"); accelerator("h100_sxm"); open("02_roofline.ipynb")',
    'figure(chart, color="#1f77b4", width="640px")',
    'models["gpt3-175b"]',
    "x = 240e9  # bytes a second, one way",
    'x = f"{share:{width}.1f}"',
    'x = f"the bits 0x{bits:04x}, or 0b1011"',
]


@pytest.mark.parametrize(("source", "typed"), CODE_REFUSED)
def test_refuses_typed_numbers_in_strings_and_comments(source, typed):
    assert [text for _, text in typed_in_code(source)] == [typed]


@pytest.mark.parametrize("source", CODE_ALLOWED)
def test_allows_code(source):
    assert list(typed_in_code(source)) == []


def test_library_code_is_read_without_its_comments_and_docstrings():
    source = '"""About 80 GB."""\nx = "80 GB"  # 80 GB\n'
    assert list(typed_in_code(source, comments=False, docstrings=False)) == [(2, "80 GB")]


@pytest.mark.parametrize(
    ("text", "code", "spec"),
    [
        ("{{x}}", "x", ""),
        ("{{ x : .1f }}", "x", ".1f"),
        ("{{x[1:2]}}", "x[1:2]", ""),
        ("{{x[1:2]:>8}}", "x[1:2]", ">8"),
        ("{{d['a:b']:.0%}}", "d['a:b']", ".0%"),
        ("{{f({1: 2}[1]):,.0f}}", "f({1: 2}[1])", ",.0f"),
        ("{{q:.1f~P}}", "q", ".1f~P"),
        ("{{a if b\n else c}}", "a if b\n else c", ""),
    ],
)
def test_finds_expression_and_format(text, code, spec):
    (found,) = expressions(f"before {text} after")
    assert (found.code, found.spec) == (code, spec)


@pytest.mark.parametrize(
    "text", ["{{x", "x}}", r"$\frac{{a}}{{b$", "{{x y}}", "{{}} }}", "{{:.1f}}"]
)
def test_refuses_braces_that_hold_no_expression(text):
    with pytest.raises(ValueError, match=r"partner|expression"):
        expressions(text)


def test_fills_values_in_order():
    text = "a {{x:.1f}} b\n{{y}} c"
    values = [eval(found.python, {"x": 1.25, "y": "{{z}}"}) for found in expressions(text)]
    assert fill(text, values) == "a 1.2 b\n{{z}} c"

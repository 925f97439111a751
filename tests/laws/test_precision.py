"""Number formats against ml_dtypes and numpy; accumulation; quantization against brute force."""

import itertools

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lightspeed import precision, quantization
from lightspeed.errors import BadArgument
from lightspeed.precision import ALIASES, FORMATS, Format, Integer, number_format
from lightspeed.quantization import (
    BLOCK_FORMATS,
    GGML_BLOCKS,
    bits_per_weight,
    crest_factor,
    quantize_asymmetric,
    quantize_symmetric,
    quantized_matmul,
    questions_to_see,
    score_error,
    sqnr,
    sqnr_law,
)
from lightspeed_models import accuracy
from lightspeed_models.simulators.sums import accumulate

# Everything of at most 16 bits that another library also has.
TWINS = {ours: np.dtype(getattr(ml_dtypes, theirs, theirs)) for theirs, ours in ALIASES.items()}
SMALL = sorted(name for name in TWINS if FORMATS[name].bits <= 16)
RAW = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}
# ml_dtypes casts NaN to -0 where a format has no NaN; ours refuses it.
NO_NAN_CODE = {"fp6_e2m3", "fp6_e3m2", "fp4_e2m1"}


def twin_decode(name, codes):
    raw = codes.astype(RAW[TWINS[name].itemsize])
    with np.errstate(invalid="ignore"):
        return raw.view(TWINS[name]).astype(np.float64)


def twin_encode(name, values):
    """Codes by the other library, of values that are exact in float32 (theirs go through it)."""
    assert np.array_equal(values.astype(np.float32).astype(np.float64), values, equal_nan=True)
    with np.errstate(all="ignore"):
        cast = values.astype(np.float32).astype(TWINS[name])
    return cast.view(RAW[TWINS[name].itemsize]).astype(np.uint64)


def assert_same_codes(name, values, ours, theirs):
    """Equal codes, signed zeros included; of a NaN only that it is one."""
    if name == "e8m0":  # ml_dtypes 0.6 rounds a subnormal float32 up, whatever is nearer
        keep = ~((values > 0) & (values < 2.0**-126))
        values, ours, theirs = values[keep], ours[keep], theirs[keep]
    nan = np.isnan(FORMATS[name].decode(ours)), np.isnan(FORMATS[name].decode(theirs))
    assert np.array_equal(*nan), values[nan[0] != nan[1]][:5]
    differ = (ours != theirs) & ~nan[0]
    assert not differ.any(), (values[differ][:5], ours[differ][:5], theirs[differ][:5])


def boundaries(name):
    """Each value, each midpoint, and the float32 on either side of both; both signs; the top."""
    values = FORMATS[name].values()
    top = FORMATS[name].max + FORMATS[name].spacing(FORMATS[name].max) * np.array(
        [0.25, 0.5, 0.75, 1.0, 2.0]
    )
    points = np.concatenate([values, (values[1:] + values[:-1]) / 2, top, -top])
    points = points[np.abs(points) <= np.finfo(np.float32).max].astype(np.float32)
    points = np.concatenate(
        [
            points,
            np.nextafter(points, np.float32(-np.inf)),
            np.nextafter(points, np.float32(np.inf)),
        ]
    )
    return points[np.isfinite(points)].astype(np.float64)


@pytest.mark.parametrize("name", SMALL)
def test_decodes_every_code(name):
    codes = np.arange(2 ** FORMATS[name].bits)
    ours, theirs = FORMATS[name].decode(codes), twin_decode(name, codes)
    assert np.array_equal(ours, theirs, equal_nan=True)
    assert np.array_equal(np.signbit(ours[ours == 0]), np.signbit(theirs[theirs == 0]))


@pytest.mark.parametrize("name", SMALL)
def test_encodes_every_value_back_to_its_code(name):
    codes = np.arange(2 ** FORMATS[name].bits)
    values = FORMATS[name].decode(codes)
    keep = ~np.isnan(values)
    assert np.array_equal(FORMATS[name].encode(values)[keep], codes[keep])


@pytest.mark.parametrize("name", SMALL)
def test_encodes_ties_and_their_surroundings(name):
    values = boundaries(name)
    assert_same_codes(name, values, FORMATS[name].encode(values), twin_encode(name, values))


@pytest.mark.parametrize("name", SMALL)
def test_encodes_random_float32_patterns(name):
    pattern = np.random.default_rng(5).integers(0, 2**32, 100_000, dtype=np.uint32)
    with np.errstate(invalid="ignore"):
        values = pattern.view(np.float32).astype(np.float64)
    values = values[~np.isnan(values)] if name in NO_NAN_CODE else values
    assert_same_codes(name, values, FORMATS[name].encode(values), twin_encode(name, values))


@pytest.mark.parametrize("name", SMALL)
def test_encodes_random_values_in_its_own_range(name):
    rng = np.random.default_rng(6)
    low, high = np.log2(FORMATS[name].smallest_subnormal) - 2, np.log2(FORMATS[name].max) + 1
    values = np.exp2(rng.uniform(max(low, -125), min(high, 127.9), 100_000)) * rng.choice(
        [-1, 1], 100_000
    )
    values = values.astype(np.float32).astype(np.float64)
    assert_same_codes(name, values, FORMATS[name].encode(values), twin_encode(name, values))


def float64_inputs(size):
    """Random bit patterns, values near the fp32 range, ties of fp32, and the special values."""
    rng = np.random.default_rng(7)
    pattern = rng.integers(0, 2**64, size, dtype=np.uint64).view(np.float64)
    spread = np.ldexp(rng.uniform(1, 2, size), rng.integers(-160, 130, size)) * rng.choice(
        [-1, 1], size
    )
    f32 = rng.integers(0, 0x7F7FFFFF, size, dtype=np.uint32)
    ties = (
        f32.view(np.float32).astype(np.float64) + (f32 + 1).view(np.float32).astype(np.float64)
    ) / 2
    top = np.float64(np.finfo(np.float32).max)
    half = np.float64(2.0**127 * 2.0**-24)
    special = np.array(
        [
            0.0,
            -0.0,
            np.inf,
            -np.inf,
            np.nan,
            top,
            top + half,
            np.nextafter(top + half, 0),
            2.0**128,
            5e-324,
            2.0**-150,
            2.0**-149 * 1.5,
        ]
    )
    near = np.concatenate([ties, np.nextafter(ties, 0), np.nextafter(ties, np.inf)])
    return np.concatenate([pattern, spread, near, special, -special])


def test_fp32_encodes_like_the_hardware():
    values = float64_inputs(250_000)
    assert values.size > 10**6
    with np.errstate(over="ignore", invalid="ignore"):
        theirs = values.astype(np.float32).view(np.uint32).astype(np.uint64)
    assert_same_codes("fp32", values, FORMATS["fp32"].encode(values), theirs)


def test_fp32_and_fp64_decode_like_the_hardware():
    rng = np.random.default_rng(8)
    narrow = rng.integers(0, 2**32, 10**6, dtype=np.uint32)
    wide = rng.integers(0, 2**64, 10**6, dtype=np.uint64)
    with np.errstate(invalid="ignore"):
        single = narrow.view(np.float32).astype(np.float64)
    assert np.array_equal(FORMATS["fp32"].decode(narrow), single, equal_nan=True)
    assert np.array_equal(FORMATS["fp64"].decode(wide), wide.view(np.float64), equal_nan=True)


def test_fp64_encodes_to_its_own_bits():
    values = float64_inputs(250_000)
    assert_same_codes("fp64", values, FORMATS["fp64"].encode(values), values.view(np.uint64))


def test_tf32_is_fp32_rounded_to_ten_bits():
    """On a float32's bits, by integers: add half of the dropped 13, ties to even."""
    rng = np.random.default_rng(9)
    bits = rng.integers(0, 2**32, 10**6, dtype=np.uint32)
    ties = (bits & ~np.uint32(0x1FFF)) | np.uint32(0x1000)
    bits = np.concatenate([bits, ties, ties - 1, ties + 1])
    with np.errstate(invalid="ignore"):
        values = bits.view(np.float32).astype(np.float64)
    bits, values = bits[np.isfinite(values)], values[np.isfinite(values)]
    theirs = (bits.astype(np.uint64) + 0xFFF + ((bits.astype(np.uint64) >> 13) & 1)) >> 13
    assert np.array_equal(FORMATS["tf32"].encode(values), theirs)
    assert FORMATS["tf32"].encode(np.inf) == FORMATS["fp32"].encode(np.inf) >> 13


@pytest.mark.parametrize("name", sorted(TWINS))
def test_limits_are_those_of_finfo(name):
    info = (np.finfo if name in ("fp16", "fp32", "fp64") else ml_dtypes.finfo)(TWINS[name])
    ours = FORMATS[name]
    assert ours.max == float(info.max) and ours.eps == float(info.eps) and ours.bits == info.bits
    assert ours.smallest_normal == float(info.smallest_normal)
    assert ours.smallest_subnormal == float(info.smallest_subnormal)
    assert ours.min == (2.0**-127 if name == "e8m0" else float(info.min))


@pytest.mark.parametrize("name", ["int8", "int4", "uint8", "uint4"])
def test_integers_are_those_of_numpy_and_ml_dtypes(name):
    fmt, dtype = FORMATS[name], np.dtype(getattr(ml_dtypes, name, name))
    codes = np.arange(2**fmt.bits)
    theirs = codes.astype(np.uint8).view(dtype).astype(np.float64)
    assert np.array_equal(fmt.decode(codes), theirs)
    assert np.array_equal(fmt.encode(theirs), codes)
    assert np.array_equal(fmt.values(), np.sort(theirs))
    assert fmt.round(np.array([-1e9, 0.5, 1.5, 2.5, 1e9])).tolist() == [
        fmt.min,
        0.0,
        2.0,
        2.0,
        fmt.max,
    ]


@pytest.mark.parametrize("name", SMALL)
def test_saturation_holds_at_the_ends_and_nan_stays(name):
    fmt = FORMATS[name]
    assert fmt.round(np.inf, saturate=True) == fmt.round(1e300, saturate=True) == fmt.max
    if not fmt.scale:
        assert fmt.round(-np.inf, saturate=True) == -fmt.max
    if fmt.has_nan:
        assert np.isnan(fmt.round(np.nan, saturate=True))
    assert np.array_equal(
        fmt.round(fmt.max * 4),
        {"ieee": np.inf, "finite": fmt.max}.get(fmt.specials, np.nan),
        equal_nan=True,
    )


@pytest.mark.parametrize("name", SMALL)
def test_rounding_is_decoding_the_code(name):
    """Both ways of `round`: everything inside the range, and something outside."""
    fmt = FORMATS[name]
    inside = (
        np.linspace(-1, 1, 1001) * fmt.max
        if not fmt.scale
        else np.geomspace(fmt.min, fmt.max, 1001)
    )
    inside = np.concatenate(
        [inside, inside * 1e-3 if not fmt.scale else inside, [1.0 if fmt.scale else -0.0]]
    )
    for values in (inside, np.append(inside, fmt.max * 8)):
        ours, codes = fmt.round(values), fmt.decode(fmt.encode(values))
        assert np.array_equal(ours, codes, equal_nan=True)
        assert np.array_equal(np.signbit(ours), np.signbit(codes))


def test_e8m0_below_the_float32_normals_is_the_nearest_power():
    ratio = np.array([1e-9, 0.4, 0.99, 1.0, 1.49, 1.51, 1.99])
    assert FORMATS["e8m0"].encode(ratio * 2.0**-127).tolist() == [0, 0, 0, 0, 0, 1, 1]


def test_specials_of_the_small_formats():
    assert np.isnan(FORMATS["fp8_e4m3"].round(500.0)), (
        "E4M3 has no infinity: a cast past 448 is NaN"
    )
    assert FORMATS["fp8_e5m2"].round(1e6) == np.inf
    assert FORMATS["fp4_e2m1"].values()[7:].tolist() == [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0]
    for name in ("fp8_e4m3fnuz", "fp8_e5m2fnuz"):
        assert FORMATS[name].encode(-0.0) == 0 and np.isnan(FORMATS[name].decode(0x80))
    assert np.isnan(FORMATS["e8m0"].round(np.array([0.0, -1.0]))).all()


@pytest.mark.parametrize("name", [n for n in FORMATS if FORMATS[n].bits <= 16])
def test_neighbours_and_spacing_agree_with_the_list_of_values(name):
    fmt, values = FORMATS[name], FORMATS[name].values()
    for i in np.unique(np.linspace(1, values.size - 2, 300).astype(int)):
        assert fmt.neighbours(values[i]) == (values[i - 1], values[i + 1])
        middle = (values[i] + values[i + 1]) / 2
        assert fmt.neighbours(middle) == (values[i], values[i + 1])
        if values[i] > 0:
            assert fmt.spacing(values[i]) == values[i + 1] - values[i]
    above, below = fmt.neighbours(fmt.max)[1], fmt.neighbours(fmt.min)[0]
    has_infinity = isinstance(fmt, Format) and fmt.specials == "ieee"
    assert (
        (above, below) == (np.inf, -np.inf) if has_infinity else np.isnan(above) and np.isnan(below)
    )


@settings(max_examples=200, deadline=None)
@given(
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from([n for n in FORMATS if n not in ("e8m0",)]),
)
def test_rounding_picks_the_nearer_neighbour(x, name):
    fmt = FORMATS[name]
    if fmt.min <= x <= fmt.max:
        rounded = fmt.round(x)
        low, high = (rounded, rounded) if rounded == x else fmt.neighbours(x)
        assert low <= x <= high
        assert abs(rounded - x) <= min(x - low, high - x) * (1 + 1e-15)
        assert fmt.round(rounded) == rounded
        assert fmt.round(-x) == -rounded or isinstance(fmt, Integer)


def test_bit_fields():
    assert FORMATS["bf16"].fields(FORMATS["bf16"].encode(-1.5)) == ("1", "01111111", "1000000")
    assert FORMATS["e8m0"].fields(127) == ("", "01111111", "")
    assert FORMATS["int8"].fields(FORMATS["int8"].encode(-128.0)) == ("1", "", "0000000")
    for fmt in FORMATS.values():
        assert len("".join(fmt.fields(0))) == fmt.bits


def test_stochastic_rounding_keeps_the_mean_and_picks_a_neighbour():
    rng, bf16 = np.random.default_rng(1), FORMATS["bf16"]
    rounded = bf16.round(np.full(200_000, 256.5), rng=rng)
    assert set(np.unique(rounded)) == {256.0, 258.0}
    # A quarter go up; five standard errors of the mean.
    assert abs(rounded.mean() - 256.5) < 5 * 2 * (0.25 * 0.75 / 200_000) ** 0.5
    assert bf16.round(np.full(100, -1.5), rng=rng).tolist() == [-1.5] * 100
    assert set(FORMATS["int8"].round(np.full(1000, 2.5), rng=rng)) == {2.0, 3.0}


def test_a_running_sum_of_ones_stalls_where_the_spacing_is_two():
    ones = np.ones(5000)
    for name, stall in (("bf16", 2**8), ("fp16", 2**11), ("fp8_e4m3", 2**4), ("fp8_e5m2", 2**3)):
        fmt = FORMATS[name]
        assert accumulate(ones, fmt) == stall
        assert fmt.spacing(stall) == 2 and fmt.spacing(stall - 1) == 1
    assert accumulate(ones, FORMATS["fp32"]) == 5000
    assert accumulate(np.ones(4096), FORMATS["bf16"], order="pairwise") == 4096
    assert accumulate(np.ones(4096), FORMATS["bf16"], accumulator=FORMATS["fp32"]) == 4096


def test_accumulation_orders_on_ten_thousand_uniforms():
    x, bf16 = np.random.default_rng(0).random(10_000), FORMATS["bf16"]
    exact = bf16.round(x).sum()
    assert accumulate(x, bf16) == 256
    ulp = bf16.spacing(exact)
    assert abs(accumulate(x, bf16, accumulator=FORMATS["fp32"]) - exact) <= ulp / 2 + 0.01
    assert abs(accumulate(x, bf16, order="pairwise") - exact) < 2 * ulp
    runs = accumulate(np.tile(x, (100, 1)), bf16, rng=np.random.default_rng(2))
    assert abs(runs.mean() - exact) < 5 * runs.std() / 10, "stochastic rounding has no drift"


def test_accumulation_is_that_of_the_hardware():
    x = np.random.default_rng(3).standard_normal(3000)
    for name, dtype in (("fp16", np.float16), ("fp32", np.float32), ("bf16", ml_dtypes.bfloat16)):
        total = dtype(0)
        for term in x.astype(dtype):
            total = dtype(total + term)
        assert accumulate(x, FORMATS[name]) == float(total)
    pairs = x[:1024].astype(np.float32)
    while pairs.size > 1:
        pairs = pairs[0::2] + pairs[1::2]
    assert accumulate(x[:1024], FORMATS["fp32"], order="pairwise") == float(pairs[0])


# --- Quantization ------------------------------------------------------------------------------


def test_symmetric_and_asymmetric_codes_are_the_nearest():
    """Brute force: of all codes, none stands for a nearer value."""
    x = np.random.default_rng(4).normal(0.3, 1.0, 500)
    for bits in (2, 3, 4, 8):
        q = quantize_symmetric(x, bits)
        top = 2 ** (bits - 1) - 1
        assert q.scale == np.abs(x).max() / top and abs(q.codes).max() == top
        every = np.arange(-top, top + 1) * q.scale
        assert np.allclose(
            np.abs(q.values - x), np.abs(every[:, None] - x).min(axis=0), rtol=0, atol=1e-12
        )
        a = quantize_asymmetric(x, bits)
        assert a.codes.min() >= 0 and a.codes.max() <= 2**bits - 1
        every = (np.arange(2**bits) - a.zero_point) * a.scale
        assert np.allclose(
            np.abs(a.values - x), np.abs(every[:, None] - x).min(axis=0), rtol=0, atol=1e-12
        )
        assert 0.0 in every


def test_asymmetric_wins_a_bit_on_one_sided_data():
    x = np.maximum(np.random.default_rng(5).standard_normal(100_000), 0)
    gain = sqnr(x, quantize_asymmetric(x).values) - sqnr(x, quantize_symmetric(x).values)
    assert gain == pytest.approx(20 * np.log10(255 / 127), abs=0.2)
    assert (quantize_asymmetric(x).values[x == 0] == 0).all()


def test_groups_are_quantized_as_if_alone():
    x = np.random.default_rng(6).standard_normal((6, 64)) * np.geomspace(1, 100, 6)[:, None]
    for quantize in (quantize_symmetric, quantize_asymmetric):
        rows = quantize(x, axis=0).values
        blocks = quantize(x, block=16).values
        for i, j in itertools.product(range(6), range(4)):
            assert np.array_equal(rows[i], quantize(x[i]).values)
            part = slice(16 * j, 16 * j + 16)
            assert np.array_equal(blocks[i, part], quantize(x[i, part]).values)
        tensor = quantize(x).values
        assert sqnr(x[0], tensor[0]) < sqnr(x[0], rows[0]) < sqnr(x[0], blocks[0])


def test_clipping_by_amax():
    q = quantize_symmetric(np.array([0.5, -9.0, 3.0]), amax=1.27)
    assert q.codes.tolist() == [50, -127, 127] and q.scale == pytest.approx(0.01)


def test_zeros_and_tiny_groups_survive():
    assert quantize_symmetric(np.zeros(4)).values.tolist() == [0.0] * 4
    assert quantize_asymmetric(np.zeros(4)).values.tolist() == [0.0] * 4
    assert quantize_symmetric(np.full(2, 5e-324)).values.tolist() == [0.0, 0.0]
    for fmt in BLOCK_FORMATS.values():
        assert fmt.round(np.zeros(64)).tolist() == [0.0] * 64


def test_sqnr_law_on_a_sine_and_on_uniform_noise():
    t = np.arange(200_000) * 0.6180339887
    sine, uniform = np.sin(t), np.random.default_rng(7).uniform(-1, 1, 200_000)
    for bits in range(6, 15):
        # symmetric codes leave one unused
        levels = 20 * np.log10(2 ** (bits - 1) / (2 ** (bits - 1) - 1))
        assert sqnr(sine, quantize_symmetric(sine, bits).values) == pytest.approx(
            sqnr_law(bits) - levels, abs=0.35
        )
        measured = sqnr(uniform, quantize_symmetric(uniform, bits).values)
        assert measured == pytest.approx(sqnr_law(bits, crest_factor(uniform)) - levels, abs=0.1)
    assert sqnr_law(8) == pytest.approx(6.02 * 8 + 1.76, abs=0.02)
    assert sqnr_law(8, crest=3**0.5) == pytest.approx(6.02 * 8, abs=0.01)


def test_one_outlier_costs_its_crest_factor():
    x = np.random.default_rng(8).standard_normal(100_000)
    y = x.copy()
    y[0] = 100.0
    loss = sqnr(x, quantize_symmetric(x).values) - sqnr(y, quantize_symmetric(y).values)
    assert loss == pytest.approx(
        sqnr_law(8, crest_factor(x)) - sqnr_law(8, crest_factor(y)), abs=0.5
    )


def test_floats_keep_their_sqnr_at_any_scale_and_integers_with_a_scale_do():
    x = np.random.default_rng(9).standard_normal(20_000)
    for name in ("bf16", "fp16"):
        fmt = FORMATS[name]
        assert sqnr(x, fmt.round(x)) == pytest.approx(sqnr(x / 8, fmt.round(x / 8)), abs=0.01)
    assert sqnr(x, quantize_symmetric(x).values) == pytest.approx(
        sqnr(7 * x, quantize_symmetric(7 * x).values), abs=0.01
    )


def test_integer_matmul_is_the_product_of_the_dequantized():
    rng = np.random.default_rng(10)
    x, w = rng.standard_normal((8, 256)), rng.standard_normal((256, 16))
    for quantize in (quantize_symmetric, quantize_asymmetric):
        qx, qw = quantize(x, axis=0), quantize(w, axis=1)
        product = quantized_matmul(qx, qw)
        assert np.allclose(product, qx.values @ qw.values, rtol=1e-12, atol=1e-12)
        integers = (qx.codes - qx.zero_point) @ (qw.codes - qw.zero_point)
        assert np.array_equal(product, integers * qx.scale * qw.scale), "no rounding but the last"
    with pytest.raises(BadArgument, match="contraction"):
        quantized_matmul(quantize_symmetric(x, axis=1), quantize_symmetric(w, axis=1))
    with pytest.raises(BadArgument, match="contraction"):
        quantized_matmul(quantize_symmetric(x, block=32), quantize_symmetric(w))
    long = quantize_symmetric(np.ones((1, 200_000)))
    with pytest.raises(BadArgument, match="2\\^31"):
        quantized_matmul(long, quantize_symmetric(np.ones((200_000, 1))))


@pytest.mark.parametrize("name", sorted(BLOCK_FORMATS))
def test_block_formats_against_a_loop(name):
    fmt = BLOCK_FORMATS[name]
    x = np.random.default_rng(11).standard_t(3, 1024) * 3e-4
    whole = np.float32(np.abs(x).max() / (fmt.element.max * fmt.scale.max))
    for i in range(0, x.size, fmt.block):
        block = x[i : i + fmt.block]
        amax = np.abs(block).max()
        if fmt.scale.scale:
            scale = 2.0 ** (np.floor(np.log2(amax)) - np.floor(np.log2(fmt.element.max)))
        else:
            scale = float(
                np.float64(amax / fmt.element.max / whole)
                .astype(np.float32)
                .astype(ml_dtypes.float8_e4m3fn)
            ) * float(whole)
        values = fmt.element.values()
        nearest = values[np.abs(block[:, None] / scale - values).argmin(axis=1)] * scale
        got = fmt.round(x)[i : i + fmt.block]
        assert np.allclose(np.abs(got - block), np.abs(nearest - block), rtol=1e-9)
        assert np.array_equal(fmt.scales(x)[i : i + fmt.block], np.full(fmt.block, scale))


def test_block_formats_ignore_the_scale_of_the_tensor_and_outliers_stay_in_their_block():
    x = np.random.default_rng(12).standard_normal(4096)
    for fmt in BLOCK_FORMATS.values():
        assert sqnr(x, fmt.round(x)) == pytest.approx(
            sqnr(x * 2.0**-40, fmt.round(x * 2.0**-40)), abs=1e-9
        )
        y = x.copy()
        y[0] = 1000.0
        assert (
            np.array_equal(fmt.round(y)[fmt.block :], fmt.round(x)[fmt.block :])
            or fmt.name == "nvfp4"
        )


def test_true_bits_per_weight():
    assert {n: f.bits_per_weight for n, f in BLOCK_FORMATS.items()} == {
        "mxfp8_e4m3": 8.25, "mxfp8_e5m2": 8.25, "mxfp6_e2m3": 6.25, "mxfp6_e3m2": 6.25,
        "mxfp4": 4.25, "nvfp4": 4.5,
    }  # fmt: skip
    published = {
        "Q4_0": (18, 32),
        "Q4_1": (20, 32),
        "Q5_0": (22, 32),
        "Q8_0": (34, 32),
        "Q2_K": (84, 256),
        "Q3_K": (110, 256),
        "Q4_K": (144, 256),
        "Q6_K": (210, 256),
    }
    for name, (size, elements) in published.items():
        block, bits, scales = GGML_BLOCKS[name]
        assert block == elements and bits_per_weight(bits, scales, block) == 8 * size / elements


# --- Bad input ---------------------------------------------------------------------------------

GOOD = np.array([1.0, 2.0])
Q8 = quantize_symmetric(np.ones((2, 2)))
BAD = [
    (lambda: number_format("fp17"), "name"),
    (lambda: number_format("float8"), "name"),
    (lambda: Format("x", 5, 2, 15, specials="none"), "specials"),
    (lambda: Format("x", 0, 7, 0), "bits"),
    (lambda: Format("x", 15, 64, 1), "bits"),
    (lambda: accumulate(GOOD, FORMATS["bf16"], order="tree"), "order"),
    (lambda: accumulate([], FORMATS["bf16"]), "values"),
    (lambda: accumulate(np.zeros((2, 0)), FORMATS["bf16"]), "values"),
    (lambda: FORMATS["fp32"].values(), "bits"),
    (lambda: FORMATS["fp4_e2m1"].encode(np.nan), "values"),
    (lambda: FORMATS["int8"].encode(np.nan), "values"),
    (lambda: FORMATS["bf16"].spacing(np.inf), "values"),
    (lambda: FORMATS["fp16"].spacing(70000.0), "values"),
    (lambda: FORMATS["bf16"].neighbours(np.nan), "value"),
    (lambda: FORMATS["bf16"].neighbours(np.inf), "value"),
    (lambda: FORMATS["e8m0"].neighbours(-1.0), "value"),
    (lambda: quantize_symmetric(GOOD, bits=1), "bits"),
    (lambda: quantize_symmetric(GOOD, bits=8.5), "bits"),
    (lambda: quantize_symmetric(GOOD, bits=32), "bits"),
    (lambda: quantize_symmetric(GOOD, amax=0.0), "amax"),
    (lambda: quantize_symmetric(GOOD, axis=2), "axis"),
    (lambda: quantize_symmetric(GOOD, axis=True), "axis"),
    (lambda: quantize_symmetric(GOOD, block=3), "block"),
    (lambda: quantize_symmetric(GOOD, block=0), "block"),
    (lambda: quantize_symmetric(GOOD, axis=0, block=2), "block"),
    (lambda: quantize_asymmetric(np.array([1.0, np.nan])), "x"),
    (lambda: quantize_asymmetric(np.array([1.0, np.inf])), "x"),
    (lambda: BLOCK_FORMATS["mxfp4"].round(np.ones(33)), "block"),
    (lambda: BLOCK_FORMATS["nvfp4"].round(np.array([np.nan] * 16)), "x"),
    (lambda: sqnr(GOOD, np.array([1.0, np.nan])), "stored"),
    (lambda: sqnr(np.array([]), GOOD), "x"),
    (lambda: crest_factor(np.array(["a"])), "x"),
    (lambda: sqnr_law(0), "bits"),
    (lambda: sqnr_law(8, crest=0.5), "crest"),
    (lambda: bits_per_weight(4, -8, 32), "scale_bits"),
    (lambda: bits_per_weight(4, 8, 0), "block"),
    (lambda: bits_per_weight(128, 8, 32), "element_bits"),
    (lambda: quantization.weight_bytes(-1, 8), "parameters"),
    (lambda: quantized_matmul(quantize_symmetric(np.ones((2, 2)), axis=1), Q8), "scale"),
]
NOT_NUMBERS = ["1", None, True, [1.0], 1j, np.array([]), np.array(["a"]), np.array([True]), {}]
NOT_CODES = [-1, 256, 1.5, "1", None, True, np.array([]), np.array([1.0]), np.array([300])]


@pytest.mark.parametrize("case", range(len(BAD)))
def test_bad_arguments_are_named(case):
    call, argument = BAD[case]
    with pytest.raises(BadArgument) as error:
        call()
    assert error.value.argument == argument and "expected" in str(error.value)


@pytest.mark.parametrize("value", NOT_NUMBERS, ids=repr)
@pytest.mark.parametrize("name", ["bf16", "e8m0", "int8"])
def test_values_that_are_no_numbers(name, value):
    for method in (FORMATS[name].encode, FORMATS[name].round, FORMATS[name].spacing):
        with pytest.raises(BadArgument):
            method(value)
    with pytest.raises(BadArgument):
        quantize_symmetric(value)


@pytest.mark.parametrize("value", NOT_CODES, ids=repr)
@pytest.mark.parametrize("name", ["fp8_e4m3", "int8"])
def test_codes_out_of_range(name, value):
    with pytest.raises(BadArgument):
        FORMATS[name].decode(value)


def test_quantities_are_refused():
    from lightspeed.units import Q

    with pytest.raises(BadArgument, match="magnitude"):
        FORMATS["bf16"].round(Q(1.0, "byte"))


def test_names_of_both_worlds():
    assert number_format("bfloat16") is number_format("bf16") is precision.FORMATS["bf16"]
    assert set(ALIASES.values()) <= set(FORMATS)


def test_a_loss_is_seen_with_as_many_questions_as_the_law_says():
    """Of draws whose changed answers favour one side, the spread is the law's, and turned round."""
    changed, loss, draws = 0.08, 0.02, np.random.default_rng(2)
    questions = round(questions_to_see(loss, changed))
    sides = [(changed - loss) / 2, (changed + loss) / 2, 1 - changed]
    won, lost, _ = draws.multinomial(questions, sides, 4000).T
    error = float(np.std((won - lost) / questions))
    assert error == pytest.approx(score_error(changed, questions), rel=0.05)
    assert questions_to_see(loss, changed, errors=2) * (score_error(changed, 1) ** -2) == (
        pytest.approx((2 / loss) ** 2)
    )


def test_published_scores_have_their_origin_and_are_what_they_say():
    rows = [s for kind in ("accuracy", "ppl", "kld", "agreement") for s in accuracy.scores(kind)]
    assert len(rows) > 250 and all(s.source and s.licence for s in rows)
    assert {s.licence.split()[0] for s in rows} == {"Apache-2.0", "MIT", "BSD-3-Clause"}
    assert all(0 < s.value < 100 and 0.3 < s.left < 1.1 for s in accuracy.scores())
    one = next(s for s in accuracy.scores() if (s.model, s.test) == ("Qwen3-0.6B", "GSM8K"))
    p, n = one.baseline / 100, one.questions
    assert one.noise == pytest.approx((2 * p * (1 - p) / n) ** 0.5 / p)

"""The shipped measurements: complete in origin, small, and without rows that cannot be true."""

import csv
import gzip
import importlib
from pathlib import Path

import numpy as np
import pytest

from lightspeed.errors import BadArgument
from lightspeed_models.evidence import sets
from lightspeed_models.evidence.samplers.draw import packed
from lightspeed_models.evidence.samplers.mlperf import trained
from lightspeed_models.evidence.sets import checked, dataset, read_csv, records
from lightspeed_models.evidence.word_column import Words

DATA = Path(sets.__file__).parent / "data"


def test_every_set_has_its_origin_its_file_and_its_reader():
    files = {path.name.removesuffix(".csv.gz") for path in DATA.iterdir()}
    assert files == {key for key, record in records().items() if record.ships}
    for key, record in records().items():
        told = (record.title, record.repository, record.commit, record.place, record.licence)
        assert all((*told, record.attribution, record.row, record.sample)), key
        module, _, function = record.sampler.partition(".")
        module = importlib.import_module(f"lightspeed_models.evidence.samplers.{module}")
        assert callable(getattr(module, function)), key
    derived = {key for key, record in records().items() if "mlcommons" in record.repository}
    assert derived == {key for key, record in records().items() if record.unverified}


def test_the_samples_are_many_rows_and_few_bytes():
    assert sum(path.stat().st_size for path in DATA.iterdir()) <= 5e6
    shipped = {name: record for name, record in records().items() if record.ships}
    assert sum(len(dataset(name)) for name in shipped) >= 30_000
    for name, record in shipped.items():
        found = dataset(name)
        assert len(found) + len(found.refused) <= record.full_rows, name


def test_what_is_kept_is_above_zero_and_known():
    rows = dataset("gemm")
    assert all((rows[name] > 0).all() for name in ("m", "n", "k", "latency"))
    assert len(rows["chip"].present()) == 10
    assert rows["latency"].min() > 1e-7  # seconds: milliseconds as printed would be 1,000 times


def gemm(**changes):
    """Three sound products, the middle one changed."""
    row = {"chip": "h100_sxm", "library": "any 1", "format": "bfloat16"}
    row |= {"m": 4096, "n": 4096, "k": 4096, "latency": 0.3}
    lines = [row, row | changes, row]
    text = "\n".join([",".join(row), *(",".join(map(str, r.values())) for r in lines)])
    return checked(records()["gemm"], read_csv(records()["gemm"], text))


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"latency": 0}, "not above zero"),
        ({"latency": ""}, "missing"),
        ({"latency": -1}, "not above zero"),
        ({"latency": "nan"}, "missing"),
        ({"m": 0.5}, "whole number"),
        ({"chip": "NVIDIA Z9"}, "chip is not in the catalog"),
        ({"format": "fp3"}, "format is not known"),
        ({"format": "nvfp4"}, "no units for this format"),
        ({"latency": 0.1}, "faster than the peak"),  # 0.139 ms at 989 TFLOP/s
        ({"m": 1, "n": 65536, "k": 65536, "latency": 1}, "faster than memory"),
    ],
)
def test_an_impossible_row_is_refused_by_name_and_reason(change, reason):
    found = gemm(**change)
    assert len(found) == 2
    assert [(r.row, reason in r.reason) for r in found.refused] == [(1, True)]
    assert str(change.get("format", change.get("chip", "h100"))) in found.refused[0].name


def test_a_slow_row_is_evidence_and_stays():
    assert len(gemm(latency=3e4)) == 3


def test_a_set_read_from_a_folder_is_the_shipped_one(tmp_path):
    """The reader of checkouts and the sample agree, and a checkout may be CSV as well."""
    shipped = gzip.decompress((DATA / "gemm.csv.gz").read_bytes()).decode().splitlines()
    rows = list(csv.DictReader(shipped))[::40]
    (tmp_path / "any_gemm_perf.csv").write_text(
        "\n".join(
            ["framework,version,device,gemm_dtype,m,n,k,latency"]
            + [
                ",".join(
                    [
                        *r["library"].split(" ", 1),
                        r["chip"],
                        r["format"],
                        *(r[c] for c in ("m", "n", "k", "latency")),
                    ]
                )
                for r in rows
            ]
        )
    )
    full, record = dataset("gemm", tmp_path), records()["gemm"]
    sample = checked(record, read_csv(record, "\n".join([shipped[0], *shipped[1::40]])))
    assert full.full and len(full) == len(sample) > 900
    for name in full.columns:
        assert list(full[name]) == list(sample[name]), name
    assert packed(record, full.columns) == packed(record, full.columns)


def test_what_is_not_there_is_said():
    with pytest.raises(BadArgument, match="Did you mean 'gemm'"):
        dataset("gem")
    with pytest.raises(FileNotFoundError, match="no folder"):
        dataset("gemm", "/nowhere")
    with pytest.raises(FileNotFoundError, match="does not ship"):
        dataset("attention_kinds")
    with pytest.raises(BadArgument, match="column"):
        dataset("gemm")["latencies"]


def test_a_folder_without_the_set_says_what_it_lacks(tmp_path):
    for name in records():
        with pytest.raises(FileNotFoundError, match=r"has no|has 0 files"):
            dataset(name, tmp_path)


def test_words_are_what_numpy_says():
    texts = np.array(["b", "a", "b", "c", "a"])
    words = Words.of(texts)
    assert list(words) == texts.tolist() and words[3] == "c"
    assert ((words == "b") == (texts == "b")).all()
    assert (words.lookup({"a": 1, "b": 2, "c": 3}) == [2, 1, 2, 3, 1]).all()
    both = Words.joined([words, Words.of(["d", "a"])])
    assert list(both) == [*texts, "d", "a"]
    assert words[words == "a"].present() == ["a"]


def test_a_log_counts_in_its_own_unit_and_the_set_in_samples():
    """What logs of MLPerf say at their end, of which the same job in another log says the rest."""
    for benchmark, said, samples in (
        ("bert", {"of": 3_151_872, "epoch_num": 3_151_872}, 3_151_872),  # samples, twice
        ("bert", {"of": 2_850_176, "epoch_num": 1, "batch": 448}, 2_850_176),  # one pass
        ("bert", {"of": 3_505_152, "epoch_num": 978, "batch": 3072}, 978 * 3072),  # steps
        ("bert", {"of": 156_725_653, "epoch_num": 1, "train_samples_since_beginning": 1.3e8}, ""),
        ("ssd", {"of": 4572, "epoch_num": 4, "batch": 256}, 4 * 1_170_301),  # steps an epoch
        ("ssd", {"of": 117_266, "epoch_num": 60, "batch": 1536}, 60 * 117_266),  # COCO, samples
        ("maskrcnn", {"of": 40_000, "epoch_num": 14}, 14 * 117_266),  # no unit at all
        ("unet3d", {"of": 168, "epoch_num": 1840}, 1840 * 168),
        ("unet3d", {"of": 168, "epoch_num": 396_480}, 396_480),  # samples
        ("gpt3", {"of": 1_207_959_552, "epoch_num": 1_207_959_552}, 589_824),  # tokens
        ("dlrm", {"of": 1, "first": 1.05, "epoch_num": 1.9}, 0.9 * 4_195_197_692),  # from one
        ("dlrm", {"of": 1, "first": 1, "epoch_num": 18}, 0.9 * 4_195_197_692),  # evaluations
        ("stable_diffusion", {"of": 1, "epoch_num": 5, "step_num": 5000, "batch": 512}, 2_560_000),
        ("transformer", {"of": 566_340, "epoch_num": 3, "batch": 512}, ""),  # packed sequences
        ("resnet", {"of": 1_281_167, "epoch_num": 35}, 35 * 1_281_167),
        ("resnet", {}, ""),
    ):
        assert trained(benchmark, said) == pytest.approx(samples), (benchmark, said)
    rows = dataset("mlperf_training")
    told = rows.where((rows["samples"] > 0) & (rows["batch"] > 0))
    for benchmark in told["benchmark"].present():
        own = told["benchmark"] == benchmark
        middle = [
            np.median(told["samples"][own & (told["batch"] == b)])
            for b in np.unique(told["batch"][own])
        ]
        # Targets need some times the samples at the largest batch; a wrong unit is 168 times off.
        assert max(middle) < 5 * min(middle), benchmark

"""METEOR and BERTScore: what they lack is said, and what BERTScore gives with an encoder."""

import sys
from pathlib import Path

import pytest
from small_cohort import make_cohort, reader, sweep_spec, swept, values

from cardiolens.base.errors import InputError
from cardiolens.config.sweep import StatisticsSpec
from cardiolens.score.verdicts.text_metrics import open_text_metrics

WORDS = ["the", "lateral", "septal", "wall", "enhances", "no", "effusion", "in"]


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A BERT of two layers with random weights."""
    import torch
    from transformers import BertConfig, BertModel, BertTokenizerFast

    folder = tmp_path_factory.mktemp("encoder")
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS]
    (folder / "vocab.txt").write_text("\n".join(words))
    torch.manual_seed(0)
    sizes = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32}
    BertModel(BertConfig(vocab_size=len(words), max_position_embeddings=64, **sizes)).save_pretrained(folder)
    BertTokenizerFast(str(folder / "vocab.txt")).save_pretrained(folder)
    return folder


def test_a_missing_package_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "nltk", None)  # as where it is not installed
    monkeypatch.setitem(sys.modules, "nltk.corpus", None)
    with pytest.raises(InputError, match=r"pip install 'cardiolens\[text-metrics\]'"):
        open_text_metrics(StatisticsSpec(report_metrics=("meteor",)))


@pytest.mark.parametrize("layer", [None, 1])
def test_bertscore_without_an_encoder_is_refused(tmp_path: Path, layer: int | None) -> None:
    folder = tmp_path / "nothing" if layer else None
    given = StatisticsSpec(report_metrics=("bertscore",), bertscore_model=folder, bertscore_layer=layer)
    with pytest.raises(InputError, match=rf"bertscore_model={folder}.*bertscore_layer={layer}.*give both"):
        open_text_metrics(given)


def test_a_layer_that_the_encoder_lacks_is_named(encoder: Path) -> None:
    given = StatisticsSpec(report_metrics=("bertscore",), bertscore_model=encoder, bertscore_layer=3)
    with pytest.raises(InputError, match=r"3 is no layer of .*one of 0\.\.\.2"):
        open_text_metrics(given)


def test_bertscore_of_pairs(encoder: Path) -> None:
    given = StatisticsSpec(report_metrics=("bertscore",), bertscore_model=encoder, bertscore_layer=2)
    (metric,) = open_text_metrics(given)
    one, other = "the lateral wall enhances", "no effusion in the septal wall"
    same, there, back, silent, long = metric(
        [(one, one), (one, other), (other, one), (one, ""), (one, "wall " * 500)]
    )
    assert list(same.values()) == pytest.approx([1, 1, 1])
    assert there["bertscore_precision"] == pytest.approx(back["bertscore_recall"])
    assert there["bertscore_f1"] == pytest.approx(back["bertscore_f1"])
    assert -1 < there["bertscore_f1"] < 0.99
    assert set(silent.values()) == {0}
    assert long["bertscore_f1"] < 1


def test_a_run_with_bertscore_has_it_beside_its_intervals(encoder: Path, tmp_path: Path) -> None:
    statistics = {"min_n": 1, "resamples": 50, "seed": 7}
    statistics |= {"report_metrics": ["bertscore"], "bertscore_model": encoder, "bertscore_layer": 1}
    spec = sweep_spec(make_cohort(tmp_path, 3), reader("oracle"), subtask=["R-T2"], statistics=statistics)
    planned, judged = swept(spec)
    (arm,) = [arm.arm_id for arm in planned.arms]
    found = values(judged, arm, ("bertscore_f1", "rouge_l", "meteor"))
    assert found["bertscore_f1", "tier:2"] == pytest.approx(found["rouge_l", "tier:2"]) == pytest.approx(100)
    assert ("meteor", "tier:2") not in found

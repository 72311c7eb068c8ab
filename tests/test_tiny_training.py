"""The training script: its gradients by finite differences, its loss by the decoder, its text."""

from __future__ import annotations

import csv
import importlib.util
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from lantern_lib import tiny

TRAINING = Path(__file__).resolve().parents[1] / "training"


def script(name):
    spec = importlib.util.spec_from_file_location(f"training_{name}", TRAINING / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


SMALL = replace(
    tiny.TARGET,
    num_layers=2,
    hidden_size=12,
    intermediate_size=10,
    num_heads=4,
    num_kv_heads=2,
    head_dim=4,
    vocab_size=9,
)


@pytest.fixture
def case():
    rng = np.random.default_rng(1)
    weights = {
        name: rng.normal(size=shape) * 0.4 + (len(shape) == 1) for name, shape in tiny.tensor_shapes(SMALL).items()
    }
    return weights, rng.integers(0, 9, size=(2, 7)), script("gradients").loss_and_gradients


@pytest.mark.parametrize("dropped", [False, True])
def test_every_gradient_is_the_slope_of_the_loss(case, dropped):
    weights, tokens, gradients = case

    def loss_and_gradients(weights, config, tokens, with_gradients=True):
        # The same places are dropped in every call, or the loss would have no slope.
        rng = np.random.default_rng(3)
        new_mask = (lambda shape: (rng.random(shape) < 0.7) / 0.7) if dropped else None
        return gradients(weights, config, tokens, with_gradients, new_mask)

    _, grads = loss_and_gradients(weights, SMALL, tokens)
    assert grads.keys() == weights.keys()
    rng, step = np.random.default_rng(2), 1e-5
    for name, tensor in weights.items():
        for _ in range(2):
            place = tuple(int(rng.integers(0, size)) for size in tensor.shape)
            before = tensor[place]
            losses = []
            for moved in (before + step, before - step):
                tensor[place] = moved
                losses.append(loss_and_gradients(weights, SMALL, tokens, False)[0])
            tensor[place] = before
            assert grads[name][place] == pytest.approx((losses[0] - losses[1]) / (2 * step), abs=1e-7), name


def test_the_loss_is_that_of_the_decoder(case):
    weights, tokens, loss_and_gradients = case
    model = tiny.Decoder(SMALL, weights, np.float64)
    scores = model.extend(model.new_cache(2, 6), tokens[:, :-1])
    right = [-np.log(tiny.softmax(scores[b, t])[tokens[b, t + 1]]) for b in range(2) for t in range(6)]
    assert loss_and_gradients(weights, SMALL, tokens)[0] == pytest.approx(np.mean(right), rel=1e-12)


def test_the_corpus_is_prose_without_code():
    corpus = script("corpus")
    text = "---\nkernel: x\n---\n# Title\n\n*One **bold** {claim}`14.3 ms <a3-x>` line\nthat goes on.*\n\n"
    text += "```{code-cell} ipython3\nx = 1\n```\n:::{note}\nSee [B5](b5.md) – 2 × 3.\n:::\n"
    assert corpus.prose(text) == "# Title\n\n*One bold 14.3 ms line that goes on.*\n\nSee B5 - 2 x 3.\n\n"
    learnt, held_out = corpus.split()
    assert len(learnt) > 20 * len(held_out) > 0
    assert set(learnt + held_out) <= set(tiny.ALPHABET)
    assert "claim(" not in learnt


@pytest.mark.parametrize("name", ["target", "draft"])
def test_the_curve_and_the_card_are_of_one_run(name):
    with (TRAINING / f"loss_{name}.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    card = json.loads(Path(tiny.__file__).with_name("weights").joinpath(f"{name}.json").read_text("utf-8"))
    assert 0 <= card["steps"] - int(rows[-1]["step"]) < 100  # the curve has every hundredth step
    last = float(rows[-1]["held_out_bits_per_character"])
    # The card's model is the one stored at 16 bits.
    assert last == pytest.approx(card["held_out_bits_per_character"], abs=0.005)
    assert last < float(rows[0]["held_out_bits_per_character"]) - 3

"""Train the two tiny models of :mod:`lantern_lib.tiny` on the prose of the book. Needs numpy and nothing else.

    OPENBLAS_NUM_THREADS=1 python training/train.py target     # about a quarter of an hour on one core
    OPENBLAS_NUM_THREADS=1 python training/train.py draft      # about five minutes

Writes the weights at 16 bits, the loss curve and a card with what was done. Another machine's arithmetic rounds
otherwise, so the weights of a second run are as good but not the same to the last bit.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import time
from pathlib import Path

import corpus
import numpy as np
from gradients import loss_and_gradients

from lantern_lib.tiny.shapes import DRAFT, TARGET, tensor_shapes
from lantern_lib.tiny.text import encode

OUT = corpus.ROOT / "lantern_lib" / "tiny" / "weights"
CURVES = Path(__file__).parent

# Steps, pieces a step, characters a piece, largest learning rate, share dropped from what a block adds. The book is
# small for a million weights: after 1,200 steps the model knows it by heart and predicts others worse than after 750.
PLANS = {"target": (TARGET, 750, 16, 128, 2e-3, 0.0), "draft": (DRAFT, 4000, 16, 128, 4e-3, 0.0)}
WARM_UP, DECAY, CLIP, SEED = 100, 0.1, 1.0, 4


def initial(config, rng):
    """Draw weights: gains of one, matrices small enough that a layer changes its input little at first."""
    weights = {}
    for name, shape in tensor_shapes(config).items():
        if len(shape) == 1:
            weights[name] = np.ones(shape, np.float32)
            continue
        spread = 0.02 if name == "embedding" else shape[1] ** -0.5
        if name.endswith((".output", ".down")):
            spread /= (2 * config.num_layers) ** 0.5
        weights[name] = rng.normal(0, spread, shape).astype(np.float32)
    return weights


class Adam:
    """Adam with decoupled weight decay on matrices and a limit on the gradient's length."""

    def __init__(self, weights):
        self.weights, self.step = weights, 0
        self.mean = {name: np.zeros_like(array) for name, array in weights.items()}
        self.square = {name: np.zeros_like(array) for name, array in weights.items()}

    def update(self, grads, rate):
        """Move all weights one step down the gradient."""
        self.step += 1
        length = sum(float(np.vdot(grad, grad)) for grad in grads.values()) ** 0.5
        shrink = np.float32(min(1.0, CLIP / (length + 1e-9)))
        for name, weight in self.weights.items():
            grad, mean, square = grads[name] * shrink, self.mean[name], self.square[name]
            mean += np.float32(0.1) * (grad - mean)
            square += np.float32(0.05) * (grad * grad - square)
            rise = (mean / (1 - 0.9**self.step)) / (np.sqrt(square / (1 - 0.95**self.step)) + 1e-8)
            if weight.ndim == 2:
                weight *= np.float32(1 - rate * DECAY)
            weight -= (rate * rise).astype(np.float32)


def held_out_bits(weights, config, tokens, length=128):
    """Return bits per character on the held-out text, cut into pieces."""
    pieces = np.stack([tokens[start : start + length + 1] for start in range(0, len(tokens) - length, length)])
    return loss_and_gradients(weights, config, pieces, False)[0] / np.log(2)


def train(which):
    """Train one model and write what came of it."""
    config, steps, batch, length, peak, dropped = PLANS[which]
    text, held_out = corpus.split()
    tokens, unseen = encode(text), encode(held_out)
    rng = np.random.default_rng(SEED)
    weights = initial(config, rng)
    optimizer, curve, started = Adam(weights), [], time.perf_counter()
    running = None

    def new_mask(shape):
        kept = rng.random(shape, dtype=np.float32) >= dropped
        return kept.astype(np.float32) / np.float32(1 - dropped)

    for step in range(1, steps + 1):
        starts = rng.integers(0, len(tokens) - length, batch)
        pieces = tokens[starts[:, None] + np.arange(length + 1)]
        loss, grads = loss_and_gradients(weights, config, pieces, new_mask=new_mask if dropped else None)
        ramp = min(1.0, step / WARM_UP)
        optimizer.update(grads, peak * ramp * (0.05 + 0.95 * 0.5 * (1 + np.cos(np.pi * step / steps))))
        running = loss if running is None else 0.98 * running + 0.02 * loss
        if step % 100 == 0 or step == 1:
            unseen_bits = held_out_bits(weights, config, unseen)
            curve.append(f"{step},{running / np.log(2):.4f},{unseen_bits:.4f}")
            print(which, curve[-1], f"{time.perf_counter() - started:.0f} s", flush=True)
    stored = {name: array.astype(np.float16) for name, array in weights.items()}
    OUT.mkdir(exist_ok=True)
    np.savez(OUT / f"{which}.npz", **stored)
    (OUT / "held_out.txt").write_text(held_out, encoding="utf-8")
    header = "step,training_bits_per_character,held_out_bits_per_character"
    (CURVES / f"loss_{which}.csv").write_text("\n".join([header, *curve]) + "\n", encoding="utf-8")
    card = {
        "model": config.name,
        "parameters": sum(array.size for array in stored.values()),
        "seed": SEED,
        "steps": steps,
        "characters_a_step": batch * length,
        "dropout": dropped,
        "corpus_characters": len(text),
        "corpus_sha256": hashlib.sha256(text.encode()).hexdigest(),
        "held_out_pages": list(corpus.HELD_OUT),
        "held_out_bits_per_character": round(
            held_out_bits({n: a.astype(np.float32) for n, a in stored.items()}, config, unseen), 4
        ),
        "seconds": round(time.perf_counter() - started),
    }
    (OUT / f"{which}.json").write_text(json.dumps(card, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("which", choices=PLANS)
    train(parser.parse_args().which)

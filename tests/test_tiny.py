"""The tiny models: a decoder held to a loop that is written otherwise, its cache, its stored weights."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from lantern_lib import kv_cache, tiny, transformer
from lantern_lib.tiny import measure, quality, rounds, speculation, storage

ROOT = Path(__file__).resolve().parents[1]
SMALL = replace(
    tiny.TARGET,
    num_layers=2,
    hidden_size=12,
    intermediate_size=10,
    num_heads=6,
    num_kv_heads=2,
    head_dim=4,
    vocab_size=9,
)


def model_of(config, seed=1):
    rng = np.random.default_rng(seed)
    weights = {
        name: rng.normal(size=shape) * 0.5 + (len(shape) == 1) for name, shape in tiny.tensor_shapes(config).items()
    }
    return tiny.Decoder(config, weights, np.float64)


def slowly(model, tokens):
    """The whole text at once, without a cache, number by number: the oracle."""
    c, w = model.config, model.weights

    def norm(vector, gain):
        root = (sum(float(x) ** 2 for x in vector) / len(vector) + 1e-5) ** 0.5
        return np.array([x / root * g for x, g in zip(vector, gain, strict=True)])

    def turned(head, position):
        half, out = c.head_dim // 2, np.zeros(c.head_dim)
        for i in range(half):
            # A pair is a complex number, and a rotation its product with e^(i angle).
            pair = complex(head[i], head[half + i]) * np.exp(1j * position * 10_000.0 ** (-2 * i / c.head_dim))
            out[i], out[half + i] = pair.real, pair.imag
        return out

    x = [w["embedding"][token].copy() for token in tokens]
    for layer in range(c.num_layers):
        name = f"layers.{layer}."
        h = [norm(vector, w[name + "attention_norm"]) for vector in x]
        for t in reversed(range(len(tokens))):
            mixed = []
            for head in range(c.num_heads):
                shared = head // (c.num_heads // c.num_kv_heads)
                mine = slice(head * c.head_dim, (head + 1) * c.head_dim)
                theirs = slice(shared * c.head_dim, (shared + 1) * c.head_dim)
                q = turned(w[name + "query"][mine] @ h[t], t)
                scores = [q @ turned(w[name + "key"][theirs] @ h[s], s) / c.head_dim**0.5 for s in range(t + 1)]
                chances = np.exp(scores) / np.exp(scores).sum()
                mixed.append(sum(a * (w[name + "value"][theirs] @ h[s]) for s, a in enumerate(chances)))
            x[t] = x[t] + w[name + "output"] @ np.concatenate(mixed)
        for t in range(len(tokens)):
            inner = norm(x[t], w[name + "feed_forward_norm"])
            gate = w[name + "gate"] @ inner
            x[t] = x[t] + w[name + "down"] @ (gate / (1 + np.exp(-gate)) * (w[name + "up"] @ inner))
    return np.array([w["head"] @ norm(vector, w["final_norm"]) for vector in x])


@pytest.mark.parametrize(("heads", "kv_heads"), [(6, 2), (4, 4), (4, 1)])
def test_a_prefill_equals_the_loop(heads, kv_heads):
    model = model_of(replace(SMALL, num_heads=heads, num_kv_heads=kv_heads))
    tokens = np.random.default_rng(2).integers(0, 9, 7)
    scores = model.extend(model.new_cache(1, 7), tokens[None])[0]
    np.testing.assert_allclose(scores, slowly(model, tokens), rtol=0, atol=1e-12)


def test_decoding_with_the_cache_equals_the_whole_text():
    model = model_of(SMALL)
    tokens = np.random.default_rng(3).integers(0, 9, (1, 12))
    whole = model.extend(model.new_cache(1, 12), tokens)
    cache = model.new_cache(1, 12)
    pieces = [model.extend(cache, tokens[:, start:stop]) for start, stop in ((0, 5), (5, 6), (6, 7), (7, 11), (11, 12))]
    np.testing.assert_allclose(np.concatenate(pieces, axis=1), whole, rtol=0, atol=1e-12)


def test_a_batch_of_different_lengths_equals_each_alone():
    model = model_of(SMALL)
    rng = np.random.default_rng(4)
    prompts = [rng.integers(0, 9, n) for n in (3, 8, 5)]
    batch = model.new_cache(3, 12)
    alone = []
    for row, prompt in enumerate(prompts):
        one = model.new_cache(1, 12)
        model.extend(one, prompt[None])
        batch.keys[:, row], batch.values[:, row] = one.keys[:, 0], one.values[:, 0]
        alone.append(one)
    batch.lengths = np.array([3, 8, 5])
    for _ in range(3):
        new = rng.integers(0, 9, (3, 1))
        together = model.extend(batch, new)
        for row, one in enumerate(alone):
            np.testing.assert_allclose(together[row], model.extend(one, new[row : row + 1])[0], rtol=0, atol=1e-12)


def test_rejected_tokens_leave_no_trace():
    model = model_of(SMALL)
    text = np.arange(8)[None]
    cache = model.new_cache(1, 20)
    model.extend(cache, text[:, :5])
    model.extend(cache, np.array([[8, 8, 8]]))
    cache.truncate([5])
    after = model.extend(cache, text[:, 5:])
    np.testing.assert_allclose(after, model.extend(model.new_cache(1, 8), text)[:, 5:], rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    ("tokens", "says"),
    [
        (np.zeros((2, 1), int), r"shape \(1, new\)"),
        (np.zeros(3, int), r"shape \(1, new\)"),
        (np.array([[9]]), "tokens must be in 0 … 8"),
        (np.array([[-1]]), "tokens must be in 0 … 8"),
        (np.zeros((1, 5), int), "capacity must be above 4"),
    ],
)
def test_what_does_not_fit_is_refused(tokens, says):
    model = model_of(SMALL)
    with pytest.raises(ValueError, match=says):
        model.extend(model.new_cache(1, 4), tokens)


def test_other_tensors_are_refused():
    weights = dict(model_of(SMALL).weights)
    with pytest.raises(ValueError, match="final_norm must have the shape"):
        tiny.Decoder(SMALL, weights | {"final_norm": np.ones(3)})
    weights.pop("head")
    with pytest.raises(ValueError, match="weights must have the tensors"):
        tiny.Decoder(SMALL, weights)
    with pytest.raises(ValueError, match="lengths must be in"):
        model_of(SMALL).new_cache(1, 4).truncate([1])
    with pytest.raises(ValueError, match="name must be 'target' or 'draft'"):
        tiny.load("large")


@pytest.mark.parametrize(("name", "config"), [("target", tiny.TARGET), ("draft", tiny.DRAFT)])
def test_the_library_counts_what_is_stored(name, config):
    weights = tiny.load_weights(name)
    assert sum(tensor.size for tensor in weights.values()) == transformer.parameters(config).total
    assert sum(tensor.nbytes for tensor in weights.values()) == transformer.weight_bytes(config)
    assert all(np.isfinite(tensor).all() for tensor in weights.values())
    cache = tiny.load(name).new_cache(3, 10)
    assert cache.nbytes == 3 * 10 * kv_cache.bytes_per_token(replace(config, kv_bytes=4.0))


def test_the_files_are_small():
    sizes = [path.stat().st_size for path in (ROOT / "lantern_lib" / "tiny" / "weights").iterdir()]
    assert sum(sizes) < 6_000_000


def test_the_alphabet_is_its_own_inverse():
    assert tiny.decode(np.arange(96)) == tiny.ALPHABET
    assert tiny.encode(tiny.ALPHABET).tolist() == list(range(96))
    with pytest.raises(ValueError, match="got 'é'"):
        tiny.encode("café")
    with pytest.raises(ValueError, match=r"tokens must be in 0 … 95"):
        tiny.decode(np.array([96]))
    assert tiny.encode(tiny.plain("café, 2 × 3")).size == 11


def test_bits_are_those_of_a_uniform_guess_for_a_model_that_knows_nothing():
    model = model_of(SMALL)
    model.weights["head"][:] = 0
    assert quality.bits_per_character(model, np.arange(9), length=3) == pytest.approx(np.log2(9), rel=1e-12)
    with pytest.raises(ValueError, match="tokens must be at least 20 long"):
        quality.bits_per_character(model, np.arange(9), length=20)


def test_counted_bits_equal_a_loop():
    rng = np.random.default_rng(5)
    learnt, text = rng.integers(0, 4, 300), rng.integers(0, 4, 50)
    alone = [np.log2((300 + 4) / (1 + sum(learnt == token))) for token in text[1:]]
    assert quality.counted_bits(learnt, text, 4) == pytest.approx(np.mean(alone), rel=1e-12)
    pairs = list(pairwise(learnt))
    after = []
    for before, token in pairwise(text):
        both = sum(pair == (before, token) for pair in pairs)
        after.append(np.log2((sum(first == before for first, _ in pairs) + 4) / (1 + both)))
    assert quality.counted_bits(learnt, text, 4, order=2) == pytest.approx(np.mean(after), rel=1e-12)
    with pytest.raises(ValueError, match="order must be 1 or 2"):
        quality.counted_bits(learnt, text, 4, order=3)


def test_the_models_predict_better_than_counts_and_the_large_one_better_than_its_draft():
    unseen = tiny.encode(tiny.held_out_text())
    bits = {name: quality.bits_per_character(tiny.load(name), unseen) for name in ("target", "draft")}
    # Even counts of the very text that is predicted know less.
    assert bits["target"] < bits["draft"] < quality.counted_bits(unseen, unseen, 96, order=2) - 0.5
    for name, value in bits.items():
        card = json.loads((ROOT / f"lantern_lib/tiny/weights/{name}.json").read_text(encoding="utf-8"))
        assert value == pytest.approx(card["held_out_bits_per_character"], abs=0.02)
        assert card["parameters"] == sum(tensor.size for tensor in tiny.load_weights(name).values())


@pytest.mark.parametrize("bits", [2, 4, 8])
def test_a_stored_number_is_off_by_half_a_scale_at_most(bits):
    matrix = tiny.load_weights("draft")["layers.0.down"].astype(float)
    codes, scales = storage.quantize(matrix, bits)
    assert np.abs(codes).max() == 2 ** (bits - 1) - 1
    assert (np.abs(storage.restore(codes, scales) - matrix) <= scales / 2 + 1e-12).all()
    codes, scales, offsets = storage.quantize_groups(matrix, bits, 16)
    assert codes.min() == 0
    assert codes.max() == 2**bits - 1
    off = np.abs(storage.restore_groups(codes, scales, offsets) - matrix)
    assert (off <= np.repeat(scales, 16, axis=1) / 2 + 1e-12).all()


def test_storage_refuses_what_it_cannot_store():
    for bits in (1, 9, 4.0):
        with pytest.raises(ValueError, match="bits must be"):
            storage.quantize(np.eye(4), bits)
    with pytest.raises(ValueError, match="per must be"):
        storage.quantize(np.eye(4), 4, "column")
    with pytest.raises(ValueError, match="group_size must divide the 4 columns"):
        storage.quantize_groups(np.eye(4), 4, 3)


def test_fewer_bits_lose_more_and_cost_the_model_more():
    unseen = tiny.encode(tiny.held_out_text())[:2048]
    weights = {name: tensor.astype(float) for name, tensor in tiny.load_weights("target").items()}
    lost = [
        quality.bits_per_character(tiny.Decoder(tiny.TARGET, storage.quantize_model(weights, bits, 32)), unseen)
        for bits in (8, 4, 3, 2)
    ]
    assert lost == sorted(lost)
    assert lost[0] == pytest.approx(quality.bits_per_character(tiny.load("target"), unseen), abs=0.01)


def test_kept_or_replaced_a_token_comes_with_the_targets_chance():
    text = tiny.encode(tiny.held_out_text())[:120]
    targets, drafts = (rounds.next_chances(tiny.load(name), text) for name in ("target", "draft"))
    for p, q in zip(targets, drafts, strict=True):
        kept = q * speculation.keep_chance(p, q)
        np.testing.assert_allclose(kept + (1 - kept.sum()) * speculation.residual(p, q), p, rtol=0, atol=1e-12)
        assert speculation.acceptance(p, q) == pytest.approx(kept.sum(), abs=1e-12)


def test_rounds_with_greedy_checking_write_what_greedy_decoding_writes():
    target, draft = tiny.load("target", np.float64), tiny.load("draft", np.float64)
    prompt = tiny.encode("The weights ")

    def most_likely(p_rows, q_rows, drafts, rng):
        """Keep what the target would have written: no chance in it."""
        tokens = []
        for row, token in zip(p_rows, drafts, strict=False):
            tokens.append(int(row.argmax()))
            if tokens[-1] != token:
                return tokens
        return [*tokens, int(p_rows[-1].argmax())]

    made = rounds.speculate(target, draft, prompt, 40, 3, np.random.default_rng(6), most_likely)
    plain = list(prompt)
    for _ in made.tokens:
        plain.append(int(rounds.next_chances(target, np.array(plain))[-1].argmax()))
    assert tuple(plain[len(prompt) :]) == made.tokens
    assert sum(made.per_round) == len(made.tokens) >= 40
    assert max(made.per_round) > 1


def test_a_rule_that_returns_nothing_is_refused():
    model = tiny.load("draft")
    with pytest.raises(ValueError, match="check must return 1 to 3 tokens, got 0"):
        rounds.speculate(model, model, tiny.encode("a"), 4, 2, np.random.default_rng(1), lambda *_: [])


def test_the_measured_machine_prices_a_step():
    machine = measure.this_machine(1_000_000)
    timing = measure.decode_against_batch(tiny.load("draft"), machine, (3,), 8, repeats=2)[0]
    assert timing.measured_seconds > 0
    moved = 4 * (transformer.parameters(tiny.DRAFT).total - 96 * 64) + 3 * 8 * 2 * 2 * 32 * 4
    # The input table is looked up, three rows of it.
    assert timing.floor.moved_bytes == pytest.approx(moved, rel=0.01)
    assert timing.share == timing.floor.total_seconds / timing.measured_seconds

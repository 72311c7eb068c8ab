"""Bytes between grader and sandbox: data comes back the same, anything else is refused, and noise harms nobody."""

import dataclasses
import math
import random
import struct
from collections import Counter, OrderedDict, defaultdict, deque, namedtuple
from fractions import Fraction

import numpy as np
import pytest

from lantern_grading.checker.codec import CodecError, Reference
from lantern_grading.checker.decode import Reader
from lantern_grading.checker.encode import Writer
from lantern_grading.checker.generators import follow, steps_between


@dataclasses.dataclass(frozen=True)
class Visit:
    start: float
    name: str = "x"

    def __post_init__(self):
        raise AssertionError("no code of a class runs")


def visit(start, name="x"):
    made = object.__new__(Visit)
    object.__setattr__(made, "start", start)
    object.__setattr__(made, "name", name)
    return made


def refuse(_):
    raise CodecError("no data.")


WRITER = Writer({Visit: "Visit"}, refuse)
READER = Reader({"Visit": Visit}, refuse)
Pair = namedtuple("Pair", "first second")


def same(a, b):
    """Equal, of the same types all the way down."""
    if type(a) is not type(b):
        return False
    if isinstance(a, np.ndarray):
        return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
    if isinstance(a, (list, tuple, deque)):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict):
        return (
            list(map(type, a)) == list(map(type, b)) and all(map(same, a.values(), b.values())) and a.keys() == b.keys()
        )
    if isinstance(a, float) and math.isnan(a):
        return struct.pack("<d", a) == struct.pack("<d", b)
    return a == b


VALUES = [
    None, True, False, 0, -1, 2**63 - 1, 2**63, -(2**63), -(2**63) - 1, 10**300, 0.0, -0.0, math.inf, math.nan, 1j,
    "", "ü\udc80\0", b"\0x", bytearray(b"ab"), range(3, 9, 2), Fraction(-3, 7), [], (), set(), {}, frozenset({1}),
    [1, 2, 3, 4, 5], [1, 2, 3, 4, 2**70], [0.1] * 9, [1, 2.0, True, None], [True] * 5, (1.5,) * 6, deque([1, 2], ),
    {1: "a", "b": [2], (3, 4): {5}, 1.5: None}, {"a": 1.0, "b": 2.0}, [[0.5] * 4] * 4, np.float64(0.1), np.int8(-3),
    np.bool_(True), np.float32(1e30), [np.float64(1)] * 5, [np.int64(1), 1, 2, 3], np.zeros((2, 0, 3)),
    np.arange(6).reshape(2, 3).T,
    np.array(3.0), np.array([True, False]), np.array([1 + 2j]), np.arange(4, dtype=">i2"), visit(1.0), [visit(1.0)] * 2,
    ["", "ü\udc80\0", "a" * 300, "b"], {"a": "b", "c": "d"}, [np.arange(3.0)] * 4,
    [np.array([[True]])] * 5, [np.zeros((0, 2))] * 4, [np.array(3.0)] * 4, [np.zeros(2), np.zeros(3)] * 2,
    [np.zeros(2), np.zeros(2, int)] * 2, [np.arange(6).reshape(2, 3).T] * 4, [np.arange(3, dtype=">i2")] * 4,
    [[1, "a"]] * 6, [{}, {"a": {}}] * 3,
    [visit(float(n), str(n)) for n in range(5)], (visit(2.0), visit(3.0), visit(4.0), visit(5.0)), [visit([1, 2])] * 4,
]  # fmt: skip


@pytest.mark.parametrize("value", VALUES, ids=lambda value: repr(value)[:40])
def test_data_comes_back_the_same_and_of_the_same_type(value):
    assert same(READER.decode(WRITER.encode(value)), value)


def test_one_object_stays_one_object():
    row, entry = [1, "a"], {"b": [2]}
    back = READER.decode(WRITER.encode([row, (row, entry), {"c": entry, "d": [1, "a"]}]))
    assert same(back, [row, (row, entry), {"c": entry, "d": row}])
    assert back[0] is back[1][0]
    assert back[1][1] is back[2]["c"]
    assert back[2]["d"] is not row
    # A column of a record is a list of the writer's own, whose id the next one may get.
    visits = [visit([n], [str(n)]) for n in range(500)]
    assert same([v.start for v in READER.decode(WRITER.encode(visits))], [v.start for v in visits])
    # A history in each of whose states all that went before is told again, grows by what is new.
    told = [{"text": "x" * 50, "turn": n} for n in range(400)]
    assert len(WRITER.encode([told[:n] for n in range(400)])) < 1_000_000
    # What one message shares, another does not know.
    assert same(READER.decode(WRITER.encode([row, row])), READER.decode(WRITER.encode([[1, "a"]] * 2)))


def test_what_is_told_once_counts_each_time():
    doubled = [None]
    for _ in range(40):
        doubled = [doubled, doubled]
    deep = []
    for _ in range(50):
        deep = [deep]
    deeper = [deep, 0]
    for _ in range(50):
        deeper = [deeper]
    for value in (doubled, [deep, deeper]):
        with pytest.raises(CodecError):
            WRITER.encode(value)


def test_containers_of_the_standard_library_become_plain_ones():
    for value in (Counter("aab"), OrderedDict(a=2, b=1), defaultdict(int, a=2, b=1)):
        assert same(READER.decode(WRITER.encode(value)), dict(value))
    back = READER.decode(WRITER.encode(Pair(1, [2])))
    assert isinstance(back, tuple)
    assert (back, back.first, type(back).__name__) == ((1, [2]), 1, "Pair")


def test_a_generator_goes_on_where_it_was():
    generator = np.random.default_rng(7)
    generator.integers(5, size=3, dtype=np.uint32)
    copy = READER.decode(WRITER.encode(generator))
    assert (
        copy.integers(9, size=20, dtype=np.uint32).tolist() == generator.integers(9, size=20, dtype=np.uint32).tolist()
    )


class Integer(int):
    pass


class Text(str):
    pass


class Row(list):
    pass


class Point(tuple):
    pass


@pytest.mark.parametrize(
    "value",
    [Integer(1), Text("a"), Row([1]), Point((1,)), object(), len, int, np.array([object()]), np.array(["a"]),
     np.zeros(2).view(np.matrix), np.ma.array([1]), open, (x for x in ()), [Integer(1)] * 5, np.datetime64("2020")],
    ids=lambda value: type(value).__name__,
)  # fmt: skip
def test_what_is_no_data_goes_by_reference_or_not_at_all(value):
    with pytest.raises(CodecError):
        WRITER.encode(value)
    keep = Writer({}, lambda value: Reference(False, 3, ("thing",)))
    back = Reader({}, lambda reference: reference).decode(keep.encode(value))
    assert back in (Reference(False, 3, ("thing",)), [Reference(False, 3, ("thing",))] * 5)


def test_what_is_too_large_or_too_deep_is_refused():
    deep = []
    for _ in range(100):
        deep = [deep]
    loop = []
    loop.append(loop)
    for value in (deep, loop, [None] * 2_000_001, 1 << 40_000, "x" * 64_000_001, np.zeros(8_000_001)):
        with pytest.raises(CodecError):
            WRITER.encode(value)


def hostile():
    u4 = lambda number: struct.pack("<I", number)  # noqa: E731
    yield b"l*" + u4(2**32 - 1)
    yield b"lf" + u4(2**31) + b"x"
    yield b"lK" + u4(2**31) + u4(5) + b"Visit" + u4(0)
    yield b"ln" + u4(3) + b"<V0" + u4(9)
    yield b"l*" + u4(1) * 1000
    yield b"l*\1\0\0\0" * 100_000
    yield b"d*" + u4(3) + b"000"
    yield b"d*" + u4(2) + b"l*" + u4(0) + b"0"  # a list as a key
    yield b"s" + u4(2) + b"\xff\xff"
    yield b"i" + u4(5000) + b"\0" * 5000
    yield b"r" + u4(1) + b"\0" + u4(9) + b"\xff" * 8 + b"\x7f" + u4(1) + b"\1"
    yield b"q" + u4(1) + b"\1" + u4(1) + b"\0"  # a division by zero
    yield b"a" + u4(3) + b"|O8" + b"\1" + struct.pack("<Q", 1) + u4(8) + b"\0" * 8
    yield b"a" + u4(3) + b"<f8" + b"\1" + struct.pack("<Q", 2**62) + u4(8) + b"\0" * 8
    yield b"a" + u4(3) + b"<f8" + b"\x40" + b"\xff" * 512 + u4(0)
    yield b"n" + u4(1) + b"O" + b"\0" * 8
    yield b"C" + u4(7) + b"Unknown" + u4(0)
    yield b"C" + u4(5) + b"Visit" + u4(1) + u4(9) + b"__class__" + b"0"
    yield b"C" + u4(5) + b"Visit" + u4(1) + u4(5) + b"start" + b"0"
    yield b"G" + u4(7) + b"MT19937" + b"\0" * 37
    yield b"N" + u4(3) + b"a b" + b"l*" + u4(0) + b"l*" + u4(0)
    yield b"N" + u4(1) + b"P" + b"l*" + u4(1) + b"s" + u4(9) + b"__class__" + b"l*" + u4(1) + b"0"
    yield b"H\0" + b"\xff" * 8 + b"t*" + u4(0)
    yield b"ls" + u4(2) + u4(1) + u4(9) + b"abc"
    yield b"ls" + u4(2**30) + b"abc"
    yield b"la" + u4(3) + b"<f8" + b"\0" + u4(8) + b"\0" * 8  # an array without an axis
    yield b"m" + u4(0)  # what was not told
    yield b"=l*" + u4(1) + b"m" + u4(0)  # itself
    yield b"=s" + u4(0)
    yield b"l*" + u4(41) + b"=l*" + u4(0) + b"".join(b"=l*" + u4(2) + 2 * (b"m" + u4(n)) for n in range(40))
    yield b"l*" + u4(2) + b"=l*\1\0\0\0" * 50 + b"=l*" + u4(0) + b"=l*\1\0\0\0" * 50 + b"m" + u4(50)
    yield b"\x80\x04\x95"  # a pickle
    yield b""
    yield b"00"


@pytest.mark.parametrize("data", list(hostile()), ids=lambda data: repr(data[:24]))
def test_hostile_bytes_are_no_value(data):
    with pytest.raises(CodecError):
        READER.decode(data)


def test_noise_is_a_value_or_an_error_and_nothing_else():
    chance = random.Random(8)
    whole = [WRITER.encode(value) for value in VALUES]
    failed = 0
    for _ in range(20_000):
        data = bytearray(chance.choice(whole))
        for _ in range(chance.randint(1, 3)):
            if data:
                data[chance.randrange(len(data))] = chance.randrange(256)
        try:
            READER.decode(bytes(data))
        except CodecError:
            failed += 1
    assert failed > 5_000


def test_a_lent_generator_is_advanced_by_what_was_drawn_only():
    lent = np.random.default_rng(1)
    drawn = np.random.default_rng(1)
    drawn.normal(size=100)
    follow(lent, drawn)
    assert lent.random() == drawn.random()
    for other in (np.random.default_rng(2), "no generator", np.random.Generator(np.random.MT19937(1))):
        before = lent.bit_generator.state
        follow(lent, other)
        assert lent.bit_generator.state == before
    back = np.random.default_rng(1)  # behind the lent one
    follow(lent, back)
    assert lent.bit_generator.state != back.bit_generator.state
    state = np.random.PCG64(3).state["state"]
    assert steps_between(state["state"], state["state"], state["inc"]) == 0

"""What a student's code changed in Python and its libraries is put back, and nothing else is touched."""

import math
import sys
import types

from lantern_grading.checker.pristine import Pristine
from lantern_lib import hardware


def test_functions_constants_modules_and_methods_are_put_back():
    before, real = Pristine(), math
    assert before.put_back() == 0
    math.isclose = lambda *args: True
    math.pi = 3.0
    sys.modules["math"] = types.ModuleType("math")
    hardware.Link.__eq__ = lambda a, b: True
    hardware.Link.__bool__ = lambda a: False
    hardware.Link.__hash__.__code__ = (lambda self: 0).__code__
    assert before.put_back() == 6
    assert sys.modules["math"] is real
    assert not real.isclose(1.0, 2.0)
    assert real.pi > 3.14
    one, other = hardware.Link("a", 1e9, 0.0), hardware.Link("b", 2e9, 0.0)
    assert one != other
    assert one
    assert hash(one) != 0


def test_a_trace_is_ended():
    before, traced = Pristine(), sys.gettrace()
    try:
        sys.settrace(lambda *_: None)
        sys.setprofile(lambda *_: None)
        before.put_back()
        assert (sys.gettrace(), sys.getprofile()) == (None, None)
    finally:
        sys.settrace(traced)


def test_the_state_of_a_module_is_its_own():
    hardware.LAST_SEEN = [1]
    try:
        before = Pristine()
        hardware.LAST_SEEN = [1, 2]
        assert before.put_back() == 0
        assert hardware.LAST_SEEN == [1, 2]
    finally:
        del hardware.LAST_SEEN

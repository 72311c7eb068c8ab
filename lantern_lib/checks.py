"""What a lab's test cells say: got, expected, unit, and the slip that gives exactly this value.

A test cell makes one :class:`Task` and asks it to call the student's functions by name, so that a
missing function, an unfinished stub, an exception or a wrong type all end in one or two sentences
instead of a stack of frames.
"""

from __future__ import annotations

import contextlib
import io
import math
import textwrap
import warnings
from collections.abc import Callable, Iterator, Mapping, MutableMapping, Sequence
from numbers import Integral, Real
from typing import Any

from lantern_lib.check_arrays import array_problem
from lantern_lib.check_place import place_of
from lantern_lib.check_random import estimate_problem
from lantern_lib.check_samples import sample_problem
from lantern_lib.check_sequences import not_numbers, sequence_problem
from lantern_lib.check_text import shown, shown_call, shown_pair, slip
from lantern_lib.check_time import TimeUp
from lantern_lib.labs import stand_ins


class CheckFailed(AssertionError):  # noqa: N818 (the name is what a student reads)
    """An answer that is not right yet. IPython shows its sentences and no frames."""

    def _render_traceback_(self) -> list[str]:
        return textwrap.wrap(f"{type(self).__name__}: {self}", 100)


class NotWritten(CheckFailed, NotImplementedError):  # noqa: N818
    """A stub that still has to be written."""


class Task:
    """The tests of one task of a lab.

    Parameters
    ----------
    number : int
        The task's number in the lab [count].
    namespace : mutable mapping
        The notebook's ``globals()``, where the student's functions are looked up by name.
    week : int
        The lab's week: it decides what stands in for earlier tasks, and what may be used [count].

    Examples
    --------
    >>> def double(x):
    ...     return x + x
    >>> task = Task(1, {"double": double})
    >>> task.compare("twice 3", task.call("double", 3), 6)
    """

    def __init__(self, number: int, namespace: MutableMapping[str, Any], week: int = 1) -> None:
        self.number = number
        self.week = week
        self._names = namespace
        self._place = place_of(namespace)

    def call(self, name: str, *args: Any, hint: str = "", **kwargs: Any) -> Any:
        """Call a function of the student; what it prints or warns about is dropped.

        Parameters
        ----------
        name : str
            The function's name, or ``"Class.method"`` with the object as first argument [text].
        *args, **kwargs
            Its arguments.
        hint : str
            What to say if it raises although it should not [text].

        Returns
        -------
        Any
            What it returns.

        Raises
        ------
        CheckFailed
            If it is missing, unfinished or raises: with the call, the error and the student's line.
        """
        try:
            return self._run(name, args, kwargs)
        except CheckFailed:
            raise
        except Exception as error:
            where = self._line_of(name, error)
            message = f"{self._title()}: {shown_call(name, args, kwargs)} raised {type(error).__name__}: {error}"
            # `from None` keeps the frames of the test cell out of what the student sees.
            tail = f" Mind: {hint}." if hint else ""
            raise CheckFailed(f"{message.rstrip('.')}.{where}{tail}") from None

    def compare(
        self,
        quantity: str,
        got: Any,
        expected: float,
        unit: str = "",
        *,
        slips: Sequence[tuple[float, str]] = (),
        rel: float = 1e-9,
        whole: bool = False,
    ) -> None:
        """Fail unless two numbers agree, and name the slip that leads to the one that was given.

        Parameters
        ----------
        quantity : str
            What is compared, in words [text].
        got : Any
            The student's value [`unit`].
        expected : float
            The right value [`unit`].
        unit : str
            Unit of both [text].
        slips : sequence of (float, str)
            What each misconception gives, and the sentence that says so. A slip that happens to give
            the right value is passed over.
        rel : float
            Allowed relative difference [ratio].
        whole : bool
            Whether the value must be an ``int``, as a count is.

        Raises
        ------
        CheckFailed
            If they do not agree.

        Examples
        --------
        >>> Task(4, {}).compare("conversations", 6, 54, slips=[(6, "Did you use the query heads?")])
        Traceback (most recent call last):
        ...
        lantern_lib.checks.CheckFailed: Task 4, conversations: got 6, expected 54. Did you use the query heads?
        """
        self._require_number(quantity, got, unit)
        # Huge whole numbers are compared as such: a float holds only 53 bits.
        if got != expected and not math.isclose(float(got), float(expected), rel_tol=rel):
            given, right = shown_pair(got, expected)
            hint = slip(float(got), float(expected), slips, max(rel, 1e-6))
            tail = f"{right} {unit}".strip() + "."
            raise CheckFailed(f"{self._title()}, {quantity}: got {given}, expected {tail} {hint}".strip())
        if whole and not isinstance(got, Integral):
            raise CheckFailed(
                f"{self._title()}, {quantity}: got {got!r}, expected the whole number {expected}. A count is an int."
            )

    def compare_sequence(
        self,
        quantity: str,
        got: Any,
        expected: Sequence[float],
        unit: str = "",
        *,
        slips: Sequence[tuple[Sequence[float], str]] = (),
        rel: float = 1e-9,
    ) -> None:
        """Fail unless two sequences of numbers agree: with the first difference, and the slip behind all of them.

        Parameters
        ----------
        quantity : str
            What is compared, in words [text].
        got : Any
            The student's list, tuple or one-dimensional array [`unit`].
        expected : sequence of float
            The right values [`unit`].
        unit : str
            Unit of both [text].
        slips : sequence of (sequence of float, str)
            What each misconception gives, and the sentence that says so.
        rel : float
            Allowed relative difference of each value [ratio].

        Raises
        ------
        CheckFailed
            If they do not agree.

        Examples
        --------
        >>> Task(4, {}).compare_sequence("steps", [4, 9], [4, 8], slips=[([4, 9], "One too late.")])
        Traceback (most recent call last):
        ...
        lantern_lib.checks.CheckFailed: Task 4, steps: value 2 of 2 is 9, expected 8. One too late.
        """
        problem = not_numbers(got) or sequence_problem(list(got), list(expected), unit, slips, rel)
        if problem:
            raise CheckFailed(f"{self._title()}, {quantity}: {problem}")

    def compare_estimate(
        self,
        quantity: str,
        runs: Sequence[float],
        expected: float,
        unit: str = "",
        *,
        slips: Sequence[tuple[float, str]] = (),
        errors: float = 5.0,
    ) -> None:
        """Fail unless the mean of independent random runs agrees with its expectation, within its own interval.

        Parameters
        ----------
        quantity : str
            What is compared, in words [text].
        runs : sequence of float
            One value from each run, made with a seed of its own [`unit`].
        expected : float
            What a closed form says of the mean [`unit`].
        unit : str
            Unit of both [text].
        slips : sequence of (float, str)
            What each misconception would give in expectation, and the sentence that says so.
        errors : float
            Half width of the interval [standard errors of the mean].

        Raises
        ------
        CheckFailed
            If they do not agree.

        Examples
        --------
        >>> Task(5, {}).compare_estimate("time", [1.9, 2.1, 2.0, 2.0], 3.0, "s", slips=[(2.0, "One is missing.")])
        Traceback (most recent call last):
        ...
        lantern_lib.checks.CheckFailed: Task 5, time: the mean of 4 runs is 2 ± 0.204, expected 3 s. One is missing.
        """
        problem = not_numbers(runs) or estimate_problem(runs, expected, unit, slips, errors)
        if problem:
            raise CheckFailed(f"{self._title()}, {quantity}: {problem}")

    def compare_truth(self, quantity: str, got: Any, expected: bool, why: str = "") -> None:
        """Fail unless a yes-or-no answer is the right one.

        Parameters
        ----------
        quantity : str
            What is asked, in words [text].
        got : Any
            The student's answer, True or False.
        expected : bool
            The right one.
        why : str
            What to say if it is wrong [text].

        Raises
        ------
        CheckFailed
            If it is the other one, or neither.
        """
        # numpy's own truth values are no bool, and as good.
        if not isinstance(got, bool) and type(got).__name__ not in ("bool_", "bool"):
            raise CheckFailed(f"{self._title()}, {quantity}: got {shown(got)}, expected True or False.")
        if bool(got) != expected:
            raise CheckFailed(f"{self._title()}, {quantity}: got {bool(got)}, expected {expected}. {why}".strip())

    def compare_array(
        self,
        quantity: str,
        got: Any,
        expected: Any,
        unit: str = "",
        *,
        slips: Sequence[tuple[Any, str]] = (),
        rel: float = 1e-9,
        absolute: float = 0.0,
        whole: bool = False,
    ) -> None:
        """Fail unless two arrays agree in shape and in every value, and name the slip that leads to the given one.

        Parameters
        ----------
        quantity : str
            What is compared, in words [text].
        got : Any
            The student's array, or nested lists [`unit`].
        expected : array
            The right array [`unit`].
        unit : str
            Unit of both [text].
        slips : sequence of (array, str)
            What each misconception gives, and the sentence that says so.
        rel, absolute : float
            Allowed difference of each value, ``rel · |expected| + absolute`` [ratio], [`unit`].
        whole : bool
            Whether the values must be of an integer type.

        Raises
        ------
        CheckFailed
            If they do not agree: with the place of the largest difference.

        Examples
        --------
        >>> Task(1, {}).compare_array("scales", [0.5, 2.0], [0.5, 1.0])
        Traceback (most recent call last):
        ...
        lantern_lib.checks.CheckFailed: Task 1, scales: at [1]: got 2, expected 1, the largest of 1 difference.
        """
        problem = array_problem(got, expected, unit, slips, rel=rel, absolute=absolute, whole=whole)
        if problem:
            raise CheckFailed(f"{self._title()}, {quantity}: {problem}")

    def compare_samples(
        self,
        quantity: str,
        counts: Any,
        chances: Any,
        names: Sequence[str],
        *,
        slips: Sequence[tuple[Any, str]] = (),
    ) -> None:
        """Fail unless random outcomes follow a distribution, by a chi-square test that errs once in a million.

        Parameters
        ----------
        quantity : str
            What was drawn, in words [text].
        counts : array of int
            How often each outcome came up [count].
        chances : array
            The right probabilities [ratio].
        names : sequence of str
            What the outcomes are called [text].
        slips : sequence of (array, str)
            The probabilities that each misconception gives, and the sentence that says so.

        Raises
        ------
        CheckFailed
            If they do not: with the outcome that is furthest off.

        Examples
        --------
        >>> Task(6, {}).compare_samples("coin", [505, 495], [0.5, 0.5], ["head", "tail"])
        """
        problem = sample_problem(counts, chances, names, slips)
        if problem:
            raise CheckFailed(f"{self._title()}, {quantity}: {problem}")

    def parts(self, name: str, got: Any, names: Sequence[str]) -> tuple[Any, ...]:
        """Return the parts of a returned tuple; fail unless it has as many as were asked for.

        Parameters
        ----------
        name : str
            The function that returned it [text].
        got : Any
            What it returned.
        names : sequence of str
            What the parts are called, in order [text].

        Returns
        -------
        tuple
            The parts.

        Raises
        ------
        CheckFailed
            If it is no tuple or list of that length.

        Examples
        --------
        >>> Task(1, {}).parts("divmod", divmod(7, 2), ["quotient", "rest"])
        (3, 1)
        """
        if not isinstance(got, (tuple, list)) or len(got) != len(names):
            raise CheckFailed(f"{self._title()}: {name} returned {shown(got)}, expected ({', '.join(names)}).")
        return tuple(got)

    def demand(self, quantity: str, holds: object, otherwise: str) -> None:
        """Fail with a sentence of the test's own unless a property holds.

        Parameters
        ----------
        quantity : str
            What is looked at, in words [text].
        holds : object
            Whether the property holds: anything with a truth value.
        otherwise : str
            What to say if it does not [text].

        Raises
        ------
        CheckFailed
            With that sentence.

        Examples
        --------
        >>> Task(1, {}).demand("codes", True, "They leave the range.")
        """
        if not holds:
            raise CheckFailed(f"{self._title()}, {quantity}: {otherwise}")

    def columns(self, name: str, got: Any, fields: Sequence[str]) -> dict[str, list[Any]]:
        """Take the fields out of a list of records, sorted by the first of them.

        Parameters
        ----------
        name : str
            Where the records come from, in words [text].
        got : Any
            The student's list or tuple of records.
        fields : sequence of str
            Attributes that each must have [text].

        Returns
        -------
        dict of str to list
            The values, by field.

        Raises
        ------
        CheckFailed
            If it is no list, or a record has no such field.

        Examples
        --------
        >>> Task(1, {}).columns("numbers", [3 + 1j, 2j], ["real", "imag"])
        {'real': [0.0, 3.0], 'imag': [2.0, 1.0]}
        """
        if not isinstance(got, (list, tuple)):
            wanted = "expected a list or a tuple of records. Does the function return what its docstring says?"
            raise CheckFailed(f"{self._title()}, {name}: got {shown(got)}, {wanted}")
        for record in got:
            missing = [field for field in fields if not hasattr(record, field)]
            if missing:
                raise CheckFailed(f"{self._title()}, {name}: {shown(record)} has no field {missing[0]}.")
        rows = sorted(([getattr(record, field) for field in fields] for record in got), key=lambda row: row[0])
        return {field: [row[index] for row in rows] for index, field in enumerate(fields)}

    def has_entries(self, name: str, got: Any, entries: Sequence[str]) -> None:
        """Fail unless a returned value is a dict with exactly these entries.

        Parameters
        ----------
        name : str
            The function that returned it [text].
        got : Any
            What it returned.
        entries : sequence of str
            The keys it must have [text].

        Raises
        ------
        CheckFailed
            If it is no dict, or an entry is missing or unknown.
        """
        if not isinstance(got, Mapping):
            raise CheckFailed(
                f"{self._title()}: {name} returned {shown(got)}, expected a dict with the entries {', '.join(entries)}."
            )
        for problem, keys in (("has no", set(entries) - set(got)), ("has an unknown", set(got) - set(entries))):
            if keys:
                listed = ", ".join(sorted(repr(key) for key in keys))
                raise CheckFailed(f"{self._title()}: the dict of {name} {problem} entry {listed}.")

    def refuses(
        self,
        name: str,
        *args: Any,
        field: str,
        values: Sequence[Any],
        says: str = "",
        error: type[Exception] = ValueError,
        **others: Any,
    ) -> None:
        """Fail unless the function raises an error that names what is wrong, for each bad value.

        Parameters
        ----------
        name : str
            The student's function [text].
        *args, **others
            Its other arguments.
        field : str
            The argument that is bad, passed by name [text].
        values : sequence
            Bad values to try.
        says : str
            What the message must contain instead of field and value [text].
        error : type
            The error it must raise.

        Raises
        ------
        CheckFailed
            For the first value that is accepted, raises something else, or gives a message that does
            not say it.
        """
        for value in values:
            given = {field: value, **others}
            call = f"{self._title()}: {shown_call(name, args, given)}"
            article = "an" if error.__name__[0] in "AEIOU" else "a"
            wanted = f"expected {article} {error.__name__} that names {says or f'{field} and the value'}"
            try:
                got = self._run(name, args, given)
            except error as raised:
                message = str(raised)
                named = says in message if says else field in message and str(value) in message
                if not named:
                    raise CheckFailed(f"{call} raised {type(raised).__name__}({message!r}), {wanted}.") from None
            except CheckFailed:
                raise
            except Exception as other:
                raise CheckFailed(f"{call} raised {type(other).__name__}: {other}; {wanted}.") from None
            else:
                raise CheckFailed(f"{call} returned {shown(got)}, {wanted}.")

    @contextlib.contextmanager
    def given(self, *names: str) -> Iterator[None]:
        """Put correct versions of earlier tasks in place of the student's while the tests run.

        A mistake in an earlier task then costs nothing in this one.

        Parameters
        ----------
        *names : str
            Functions of earlier tasks, keys of :func:`stand_ins` [text].
        """
        with self._place.given(self._names, self.week, names):
            yield

    @contextlib.contextmanager
    def ends_within(self, seconds: float, hint: str) -> Iterator[None]:
        """Stop what the tests call when it does not come to an end.

        Parameters
        ----------
        seconds : float
            Processor time that is far more than enough [seconds].
        hint : str
            What probably keeps it going [text].

        Raises
        ------
        CheckFailed
            If the time is up.
        """
        try:
            with self._place.time_limit(seconds):
                yield
        except TimeUp:
            raise CheckFailed(
                f"{self._title()}: no answer after {seconds:g} seconds, so it was stopped. {hint}"
            ) from None

    def own_work(self, *names: str) -> None:
        """Fail if a function leans on a library module that holds the answer.

        Parameters
        ----------
        *names : str
            Functions of the student [text].

        Raises
        ------
        CheckFailed
            Naming the function and what it leans on.
        """
        others = set(stand_ins(self.week)) - set(names)
        for name in names:
            found = self._place.leans_on(self._function(name), others, self.week)
            if found:
                raise CheckFailed(
                    f"{self._title()}: {name} leans on {found}, which holds the answer."
                    " Write the formula yourself and compare with the library afterwards."
                )

    def passed(self) -> None:
        """Say that the visible tests of the task pass."""
        print(f"{self._title()}: the tests you can see pass.")

    def _title(self) -> str:
        return f"Task {self.number}"

    def _function(self, name: str) -> Callable[..., Any]:
        function: Any = self._names
        for part in name.split("."):
            function = function.get(part) if function is self._names else getattr(function, part, None)
        if not callable(function):
            raise CheckFailed(
                f"{self._title()}: there is no function {name}. Run its cell first; if that cell fails, mend it first."
            )
        return function  # type: ignore[no-any-return]

    def _run(self, name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        function = self._function(name)
        # A debug print or a warning inside a right answer is no mistake, and nbgrader takes
        # anything on stderr for a failed test.
        sink = io.StringIO()
        with contextlib.redirect_stdout(sink), contextlib.redirect_stderr(sink), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                return function(*args, **kwargs)
            except NotImplementedError:
                raise NotWritten(f"{self._title()}: {name} is not written yet.") from None

    def _line_of(self, name: str, error: BaseException) -> str:
        line = self._place.line_of(self._function(name), error)
        return f" It happened in your line: {line}" if line else ""

    def _require_number(self, quantity: str, got: Any, unit: str) -> None:
        start = f"{self._title()}, {quantity}: got {shown(got)}"
        if got is None:
            raise CheckFailed(f"{start}. Does the function return its result on every path?")
        if isinstance(got, bool) or not isinstance(got, Real):
            kind = f"an array of shape {got.shape}" if hasattr(got, "shape") else f"a {type(got).__name__}"
            raise CheckFailed(f"{start}, {kind}; expected one number{f' in {unit}' if unit else ''}.")
        if not math.isfinite(float(got)):
            raise CheckFailed(f"{start}, which is not a finite number.")

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
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping, MutableMapping, Sequence
from numbers import Integral, Real
from typing import Any

from lantern_lib.check_arrays import array_problem
from lantern_lib.check_samples import sample_problem
from lantern_lib.check_text import shown, shown_call, shown_pair, slip
from lantern_lib.labs import leans_on, stand_ins


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

    def call(self, name: str, *args: Any, hint: str = "", **kwargs: Any) -> Any:
        """Call a function of the student; what it prints or warns about is dropped.

        Parameters
        ----------
        name : str
            The function's name [text].
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

    def refuses(self, name: str, *args: Any, field: str, values: Sequence[Any], says: str = "", **others: Any) -> None:
        """Fail unless the function raises a ValueError that names what is wrong, for each bad value.

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

        Raises
        ------
        CheckFailed
            For the first value that is accepted, raises something else, or gives a message that does
            not say it.
        """
        for value in values:
            given = {field: value, **others}
            call = f"{self._title()}: {shown_call(name, args, given)}"
            wanted = f"expected a ValueError that names {says or f'{field} and the value'}"
            try:
                got = self._run(name, args, given)
            except ValueError as error:
                message = str(error)
                named = says in message if says else field in message and str(value) in message
                if not named:
                    raise CheckFailed(f"{call} raised ValueError({message!r}), {wanted}.") from None
            except CheckFailed:
                raise
            except Exception as error:
                raise CheckFailed(f"{call} raised {type(error).__name__}: {error}; {wanted}.") from None
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
        right = stand_ins(self.week)
        before = {name: self._names[name] for name in names if name in self._names}
        self._names.update({name: right[name] for name in names})
        try:
            yield
        finally:
            for name in names:
                self._names.pop(name, None)
            self._names.update(before)

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
            found = leans_on(self._function(name), others, self.week)
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
        function = self._names.get(name)
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
        code = getattr(self._names.get(name), "__code__", None)
        frames = traceback.extract_tb(error.__traceback__)
        lines = [frame.line for frame in frames if code is not None and frame.filename == code.co_filename]
        return f" It happened in your line: {lines[-1]}" if lines and lines[-1] else ""

    def _require_number(self, quantity: str, got: Any, unit: str) -> None:
        start = f"{self._title()}, {quantity}: got {shown(got)}"
        if got is None:
            raise CheckFailed(f"{start}. Does the function return its result on every path?")
        if isinstance(got, bool) or not isinstance(got, Real):
            kind = f"an array of shape {got.shape}" if hasattr(got, "shape") else f"a {type(got).__name__}"
            raise CheckFailed(f"{start}, {kind}; expected one number{f' in {unit}' if unit else ''}.")
        if not math.isfinite(float(got)):
            raise CheckFailed(f"{start}, which is not a finite number.")

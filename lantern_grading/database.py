"""One database for a class: nbgrader's tables, and beside them what nbgrader has no place for.

Scores and the state of a submission change in the same transaction. That is why our tables lie in nbgrader's
own database: a process that is killed leaves both as they were, or both changed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import nbgrader
from alembic.script import ScriptDirectory
from nbgrader import api
from sqlalchemy import (
    Boolean,
    Column,
    Connection,
    DateTime,
    Engine,
    Float,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    create_engine,
    event,
    text,
)
from sqlalchemy.exc import OperationalError

_tables = MetaData()

#: One row for each time a submission was looked at; the newest row of a student says how things stand.
ATTEMPTS = Table(
    "lantern_attempt",
    _tables,
    Column("id", Integer, primary_key=True, autoincrement=True),
    Column("assignment", String(128), nullable=False),
    Column("student", String(128), nullable=False),
    Column("content_hash", String(64), nullable=False),
    Column("exam_hash", String(64), nullable=False),
    Column("state", String(32), nullable=False),
    Column("scores", String(8), nullable=False),  # which scores stand: this attempt's (new), older (kept), none
    Column("auto_score", Float),
    Column("max_score", Float),
    Column("reason", Text, nullable=False),
    Column("notes", Text, nullable=False),
    Column("tests", Text, nullable=False),
    Column("answers", Text, nullable=False),
    Column("seconds", Float, nullable=False),
    Column("recorded", DateTime, nullable=False),
    Index("lantern_attempt_whose", "assignment", "student"),
)

#: What came in, and when the platform says it came; never what a submission says of itself.
RECEIPTS = Table(
    "lantern_receipt",
    _tables,
    Column("id", Integer, primary_key=True, autoincrement=True),
    Column("assignment", String(128), nullable=False),
    Column("student", String(128), nullable=False),
    Column("content_hash", String(64), nullable=False),
    Column("received", DateTime),  # UTC; empty if the platform did not say
    Column("late", Boolean, nullable=False),
    Column("kept", Boolean, nullable=False),
    Column("platform", String(32), nullable=False),
    Column("note", Text, nullable=False),
    Index("lantern_receipt_whose", "assignment", "student"),
)

#: What the platforms call a student.
IDENTITIES = Table(
    "lantern_identity",
    _tables,
    Column("student", String(128), primary_key=True),
    Column("platform", String(32), primary_key=True),
    Column("name", String(256), nullable=False),
)

OWN_TABLES = (ATTEMPTS, RECEIPTS, IDENTITIES)


class GradingStopped(RuntimeError):  # noqa: N818 (it is an end, not a fault)
    """The run had to end; what was recorded stands, and running again continues."""


class Database:
    """A gradebook that is open, and the only way in which it is written.

    Parameters
    ----------
    url : str
        Address as SQLAlchemy knows it, for example ``sqlite:////srv/class/gradebook.db`` or
        ``postgresql+psycopg://grader@host/class`` [text].
    patience_seconds : float
        How long to wait for somebody else who is writing [seconds].
    """

    def __init__(self, url: str, patience_seconds: float = 30.0) -> None:
        self.url = url
        self.patience_seconds = patience_seconds
        self._stop_on_trouble(self._open)

    def _open(self) -> None:
        engine = create_engine(self.url)
        try:
            _make_tables(engine)
        finally:
            engine.dispose()
        self.book = api.Gradebook(self.url)
        self.book.db.remove()  # a session of nbgrader's would hold a lock
        self.engine = self.book.engine
        if self.engine.dialect.name == "sqlite":
            _begin_properly(self.engine)

    def __enter__(self) -> Database:
        return self

    def __exit__(self, *_: object) -> None:
        self.book.close()

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """Open a connection that only reads."""
        with self.engine.connect() as connection:
            yield connection

    def write(self, change: Callable[[Connection], Any]) -> Any:
        """Make one change, whole or not at all.

        Parameters
        ----------
        change : callable
            Takes a connection. It may be called again if somebody else was writing.

        Returns
        -------
        Any
            What it returns.

        Raises
        ------
        GradingStopped
            If the database stays locked, or the disk is full; nothing of the change is kept.
        """
        writing = self.engine.execution_options(lantern_write=True)

        def whole() -> Any:
            with writing.begin() as connection:
                return change(connection)

        return self._stop_on_trouble(whole)

    def _stop_on_trouble(self, action: Callable[[], Any]) -> Any:
        give_up = time.monotonic() + self.patience_seconds
        while True:
            try:
                return action()
            except OperationalError as error:
                words = str(error.orig).lower()
                if "locked" in words and time.monotonic() < give_up:
                    time.sleep(0.05)
                    continue
                raise GradingStopped(_explained(words)) from error


def _make_tables(engine: Engine) -> None:
    """Make nbgrader's tables and ours, also where a process was killed in the middle of it.

    nbgrader would do its part itself, but it starts another program for the version, and is left without one
    if it is stopped in between.
    """
    api.Base.metadata.create_all(engine)
    _tables.create_all(engine)
    with engine.begin() as connection:
        connection.execute(text("CREATE TABLE IF NOT EXISTS alembic_version (version_num VARCHAR(32) NOT NULL)"))
        if connection.execute(text("SELECT version_num FROM alembic_version")).first() is None:
            scripts = ScriptDirectory(str(Path(nbgrader.__file__).parent / "alembic"))
            values = {"version": scripts.get_current_head()}
            connection.execute(text("INSERT INTO alembic_version VALUES (:version)"), values)


def _explained(words: str) -> str:
    tail = "Nothing is lost: run the same command again to continue."
    if "locked" in words:
        return f"The gradebook is locked by another program (is formgrader writing?). {tail}"
    if "full" in words or "i/o error" in words:
        return f"The gradebook cannot be written: {words}. Is the disk full? {tail}"
    return f"The gradebook cannot be used: {words}. {tail}"


def _begin_properly(engine: Engine) -> None:
    """Let SQLAlchemy say when a transaction begins, and take the lock at once where something will be written."""

    @event.listens_for(engine, "connect")
    def _connect(connection: Any, _: Any) -> None:
        connection.isolation_level = None
        connection.execute("PRAGMA busy_timeout = 2000")
        connection.execute("PRAGMA secure_delete = ON")  # what is erased does not stay in free pages

    @event.listens_for(engine, "begin")
    def _begin(connection: Any) -> None:
        writes = connection.get_execution_options().get("lantern_write")
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")

    engine.dispose()  # connections from before know nothing of this

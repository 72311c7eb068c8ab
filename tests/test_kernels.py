"""A client that waits for a kernel's answer must not miss it."""

from __future__ import annotations

import asyncio
import time
from queue import Empty

import pytest
import zmq
import zmq.asyncio
from jupyter_client.channels import AsyncZMQSocketChannel
from jupyter_client.session import Session
from lantern_book.kernels import AttentiveChannel, kernel_config

MESSAGE = {"header": {"msg_id": "1", "msg_type": "execute_reply"}, "parent_header": {}, "metadata": {}, "content": {}}


async def answer_while_something_is_sent(channel_class: type[AsyncZMQSocketChannel], timeout: float | None) -> float:
    """Let an answer come while the client sends on the same socket; return how long the client waited for it [s]."""
    session = Session(key=b"")
    with zmq.Context() as plain, zmq.asyncio.Context() as context:
        kernel, client = plain.socket(zmq.PAIR), context.socket(zmq.PAIR)
        port = kernel.bind_to_random_port("tcp://127.0.0.1")
        client.connect(f"tcp://127.0.0.1:{port}")
        channel = channel_class(client, session, None)
        started = time.monotonic()
        waiting = asyncio.ensure_future(channel.get_msg(timeout=timeout))
        try:
            await asyncio.sleep(0.1)
            session.send(kernel, MESSAGE["header"]["msg_type"], content={})
            # As nbclient's output widget does; it makes the socket forget that something came.
            sender = zmq.Socket.shadow(client.underlying)
            deadline = time.monotonic() + 5
            while not sender.get(zmq.EVENTS) & zmq.POLLIN:
                assert time.monotonic() < deadline
            assert (await waiting)["header"]["msg_type"] == "execute_reply"
            return time.monotonic() - started
        finally:
            kernel.close(linger=0)
            channel.close()


def test_what_jupyter_has_waits_until_its_time_is_over() -> None:
    # The reason for a channel of ours: when this fails, it can go.
    assert asyncio.run(answer_while_something_is_sent(AsyncZMQSocketChannel, 4.0)) >= 4.0


@pytest.mark.parametrize("timeout", [None, 3600.0])
def test_an_answer_is_found_though_nothing_wakes_the_client(timeout: float | None) -> None:
    asyncio.run(asyncio.wait_for(answer_while_something_is_sent(AttentiveChannel, timeout), 30))


@pytest.mark.parametrize("timeout", [0.0, 0.2, 1.5])
def test_a_time_limit_is_kept(timeout: float) -> None:
    async def wait_in_vain() -> float:
        with zmq.asyncio.Context() as context:
            channel = AttentiveChannel(context.socket(zmq.PAIR), Session(key=b""), None)
            started = time.monotonic()
            try:
                with pytest.raises(Empty):
                    await channel.get_msg(timeout=timeout)
                return time.monotonic() - started
            finally:
                channel.close()

    assert asyncio.run(wait_in_vain()) >= timeout


def test_papermill_takes_the_client(tmp_path) -> None:
    from jupyter_client.manager import AsyncKernelManager

    manager = AsyncKernelManager(config=kernel_config(str(tmp_path)))
    client = manager.client()
    assert isinstance(client.shell_channel, AttentiveChannel)
    client.stop_channels()

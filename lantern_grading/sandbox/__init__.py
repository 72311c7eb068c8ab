"""Where student code runs: without network, without sight of anything, within limits.

``choose().start(command, scratch=..., limits=...)`` returns a `Process` with pipes. SECURITY.md says what is promised.
"""

from lantern_grading.sandbox.backends import Backend, Forking, choose
from lantern_grading.sandbox.bubblewrap import Bubblewrap
from lantern_grading.sandbox.container import Container
from lantern_grading.sandbox.errors import SandboxError
from lantern_grading.sandbox.fork_server import ForkServer
from lantern_grading.sandbox.limits import Limits
from lantern_grading.sandbox.process import Process
from lantern_grading.sandbox.scratch import Scratch
from lantern_grading.sandbox.unsafe import NoSandbox

__all__ = [
    "Backend",
    "Bubblewrap",
    "Container",
    "ForkServer",
    "Forking",
    "Limits",
    "NoSandbox",
    "Process",
    "SandboxError",
    "Scratch",
    "choose",
]

"""Makes the kernel `lantern-sandbox` known to Jupyter."""

from __future__ import annotations

import os
import shutil
import sys
from importlib.metadata import EntryPoint
from pathlib import Path

NAME = "lantern-sandbox"
_DATA = Path(__file__).with_name("jupyter")


def use() -> str:
    """Make the kernel known to this process and those it starts, without installing anything.

    Returns
    -------
    str
        The kernel's name.
    """
    from jupyter_client.provisioning import KernelProvisionerFactory

    known = os.environ.get("JUPYTER_PATH", "").split(os.pathsep)
    if str(_DATA) not in known:
        os.environ["JUPYTER_PATH"] = os.pathsep.join([str(_DATA), *filter(None, known)])
    # An installed package says the same by its entry point.
    here = EntryPoint(NAME, f"{__package__}.provisioner:SandboxProvisioner", KernelProvisionerFactory.GROUP_NAME)
    KernelProvisionerFactory.instance().provisioners.setdefault(NAME, here)
    return NAME


def install(prefix: Path | None = None) -> Path:
    """Install the kernel in an environment, for `papermill -k lantern-sandbox` and the like.

    Parameters
    ----------
    prefix : Path, optional
        The environment; this one if left out.

    Returns
    -------
    Path
        The kernel's folder.
    """
    folder = (prefix or Path(sys.prefix)) / "share" / "jupyter" / "kernels" / NAME
    shutil.copytree(_DATA / "kernels" / NAME, folder, dirs_exist_ok=True)
    return folder

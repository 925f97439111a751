"""JupyterLab over a learner's workspace, with the course's own settings, written nowhere else."""

import importlib.util
import os
import secrets
import sys
from pathlib import Path

from lightspeed_cli.argument_types import port
from lightspeed_cli.errors import UserError
from lightspeed_course import workspace as folders
from lightspeed_course.workspace import PRIVATE, START, trust

CONFIG = Path(__file__).parent / "labconfig"
NEEDED = ("jupyterlab", "zmq", "nbformat", "jupytext", "ipykernel", "ipywidgets", "anywidget")


def add(parser):
    """Put the arguments of the verb on its parser."""
    where = "the port to serve at (default: the first free from 8888)"
    parser.add_argument("--port", type=port, metavar="N", help=where)
    parser.add_argument(
        "--no-browser", action="store_true", help="print the address, open no browser"
    )
    parser.add_argument("--dir", help="your folder (default: $LIGHTSPEED_HOME or ~/speed-of-light)")
    parser.epilog = (
        "Jupyter's own options may follow, such as --ServerApp.ip=0.0.0.0, or anything after --."
    )


def run(options):
    """Update the workspace and serve it."""
    # Asked for before anything is written; loading them takes a second, and comes after.
    for package in NEEDED:
        if not importlib.util.find_spec(package):
            raise ModuleNotFoundError(name=package)
    try:
        folder = folders.workspace_root(options.dir)
        for line in folders.describe(folders.sync(folder), folder):
            print(line)
    except folders.WorkspaceError as error:
        raise UserError(error) from error
    print(f"Opening {folder} ...", flush=True)
    open_lab(folder, options.port, not options.no_browser, options.jupyter)


def open_lab(workspace, port=None, browser=True, arguments=()):
    """Serve the workspace, open the start page, print its address, and stay until stopped.

    A learner's own Jupyter configuration still counts; what the course needs comes as defaults
    below it, and what it cannot do without (folder and start page) on the command line above it.
    `arguments` are Jupyter's own.
    """
    # The lab's own terminal finds the command, and the command this folder.
    os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
    os.environ["LIGHTSPEED_HOME"] = str(workspace)
    os.environ.setdefault("PYTHONSTARTUP", str(CONFIG / "startup.py"))
    # A checker of addresses that jsonschema can do without, and that takes a second to import.
    sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]  # "not there"
    import zmq
    from jupyterlab.labapp import LabApp
    from traitlets.config import Config

    defaults = Config()
    # Warnings and errors are shown; the hundred lines of a normal start are not.
    defaults.Application.log_level = "WARN"
    defaults.ServerApp.open_browser = browser
    defaults.ServerApp.allow_root = hasattr(os, "geteuid") and os.geteuid() == 0
    # A token given here is not "generated": the lines below announce the address.
    token = secrets.token_hex(24)
    defaults.IdentityProvider.token = token
    # Kernels that talk in private spare the reader a warning at each start.
    if zmq.has("curve"):
        defaults.KernelManager.transport_encryption = "auto"
    # No pings: Tornado allows a pong no longer than the time between two, and there Jupyter looks
    # for the last. So a machine late by milliseconds lost its connection, and what was on it.
    defaults.ServerApp.tornado_settings = {"ws_ping_interval": 0}
    # A slider feels the 40 ms that the usual connection may wait before it sends.
    defaults.ServerApp.kernel_websocket_connection_class = "lightspeed_show.server.PromptConnection"
    defaults.ServerApp.contents_manager_class = "lightspeed_show.server.StillPages"
    # Looking for language servers asks npm, where there is one, and the course has none to offer.
    defaults.LanguageServerManager.autodetect = False
    if os.name != "nt":
        # Named here, the shell is no login shell, which would set PATH anew.
        defaults.ServerApp.terminado_settings = {"shell_command": [os.environ.get("SHELL") or "sh"]}
    defaults.LabApp.app_settings_dir = str(CONFIG)
    defaults.LabApp.custom_css = True
    defaults.LabApp.extension_manager = "readonly"
    options = [
        f"--ServerApp.root_dir={workspace}",
        f"--LabApp.default_url=/lab/tree/{START}",
        # JupyterLab reopens the last tabs: this folder's, not another project's.
        f"--LabApp.workspaces_dir={workspace / PRIVATE / 'tabs'}",
    ]
    if port is not None:
        options.append(f"--ServerApp.port={port}")
    if not browser:
        options.append("--ServerApp.open_browser=False")
    trust(workspace)
    server = LabApp.initialize_server(
        argv=[*options, *arguments], config=defaults, static_custom_path=[str(CONFIG / "custom")]
    )
    address = server.local_url
    if server.identity_provider.token == token:
        address = f"{address.partition('?')[0]}?token={token}"
    # A terminal opens in JupyterLab's folder, looked for below this process's own first.
    os.chdir(workspace)
    # Jupyter listens once its loop turns: an earlier address would refuse whoever comes.
    words = f"\nThe course is open at\n\n    {address}\n\nTo stop it, press Ctrl-C here.\n"
    server.io_loop.add_callback(print, words, flush=True)
    server.start()

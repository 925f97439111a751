"""Two parts of a Jupyter server that the course's lab does otherwise: the connection to a kernel,
and how a notebook is read whose kernel is gone.
"""

import asyncio
from typing import Any

from jupyter_server.services.contents.largefilemanager import AsyncLargeFileManager
from jupyter_server.services.kernels.connection.channels import ZMQChannelsWebsocketConnection

from lightspeed_show.host import WIDGET

PATIENCE = (
    2  # s that a kernel has to say which widgets it has; one that is busy is believed to have all
)
AGAIN = "This was live in a kernel that is gone. Run the cell again."


class PromptConnection(ZMQChannelsWebsocketConnection):
    """The usual connection, with TCP_NODELAY: each message is sent at once.

    Jupyter leaves Nagle's algorithm on: the kernel's answer to a slider waits until the browser has
    acknowledged the message before it, which browsers put off for 40 ms. Measured from key press to
    chart: median 45 ms with the stock connection, 20 ms with this one.
    """

    def connect(self):
        self.websocket_handler.set_nodelay(True)
        return super().connect()


class StillPages(AsyncLargeFileManager):
    """The usual files, but a notebook shows the stills of widgets that no kernel has.

    A widget lives in its kernel. JupyterLab can save a copy of its state, but forgets the copy when
    a page is opened and saved without being run, and then writes "Error displaying widget"; so it
    does after a kernel was restarted, and there the still says what to do.
    """

    parent: Any  # the server

    async def get(self, path, content=True, type=None, format=None, require_hash=False):
        model = await super().get(path, content, type, format, require_hash)
        if not content or model["type"] != "notebook":
            return model
        bundles = [
            output["data"]
            for cell in model["content"]["cells"]
            for output in cell.get("outputs", [])
            if WIDGET in output.get("data", {})
        ]
        kernel = await self._kernel(path) if bundles else None
        alive = await self._widgets(kernel) if kernel else ()
        for data in bundles:
            if alive is None or data[WIDGET]["model_id"] in alive:
                continue
            del data[WIDGET]
            if kernel:
                _advise(data)
        return model

    async def _kernel(self, path):
        """The id of the kernel of a notebook; None where it has none."""
        sessions = await self.parent.session_manager.list_sessions()
        own = (s["kernel"]["id"] for s in sessions if s["path"].strip("/") == path.strip("/"))
        return next(own, None)

    async def _widgets(self, kernel):
        """The ids of the widgets that a kernel has; None where it is too busy to say."""
        client = self.parent.kernel_manager.get_kernel(kernel).client()
        client.start_channels(iopub=False, stdin=False, hb=False, control=False)
        try:
            request = client.comm_info(target_name="jupyter.widget")
            while True:
                reply = await asyncio.wait_for(client.get_shell_msg(), PATIENCE)
                if reply["parent_header"].get("msg_id") == request:
                    return set(reply["content"].get("comms", {}))
        except TimeoutError:
            return None
        finally:
            client.stop_channels()


def _advise(data):
    """Add a sentence to the still of a widget that says how it comes alive."""
    html = "text/html" in data
    kind, words = ("html", f"<p><em>{AGAIN}</em></p>") if html else ("markdown", f"\n\n*{AGAIN}*")
    still = "".join(data.get(f"text/{kind}", data.get("text/plain", "")))
    if AGAIN not in still:
        data[f"text/{kind}"] = still + words

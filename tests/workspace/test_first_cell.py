"""Whoever clicks a page's first cell in sight, before its imports, is told what to run."""

from jupyter_client.manager import start_new_kernel

from lightspeed_cli.lab import CONFIG


def test_a_first_cell_without_the_imports_says_what_to_run(monkeypatch):
    def shown(code):
        texts = []
        kernel.execute_interactive(code, timeout=60, output_hook=texts.append)
        return "".join(
            str(m["content"].get("text", "")) + m["content"].get("ename", "") for m in texts
        )

    monkeypatch.setenv("PYTHONSTARTUP", str(CONFIG / "startup.py"))
    manager, kernel = start_new_kernel()
    try:
        told = shown('predict("numbers.fibre_kilometre", ...)')
        assert told.count("\n") == 1 and "`predict` comes with the folded cell" in told
        assert "Run > Run All Cells" in told
        shown("from lightspeed_course import predict")
        assert "NameError" in shown("predcit"), "later it is a slip like any other"
    finally:
        kernel.stop_channels()
        manager.shutdown_kernel(now=True)

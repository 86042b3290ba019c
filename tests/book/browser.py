"""Runs scripts in pages of the book, in Chromium without a window; tests of live models skip where it is absent."""

from __future__ import annotations

import json
import os
import select
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Self

_LAUNCH = (
    "import os, sys; a, b = (os.dup(int(fd)) for fd in sys.argv[1:3]);"
    "os.dup2(a, 3); os.dup2(b, 4); [os.set_inheritable(fd, True) for fd in (3, 4)];"
    "os.execv(sys.argv[3], sys.argv[3:])"
)
"""Becomes the browser, which reads messages from descriptor 3 and writes them to 4."""
_HEIGHT = 2000
_NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")


def find() -> str | None:
    """The browser: ``$CHROMIUM``, or the first of its usual names that is installed; None if there is none."""
    return os.environ.get("CHROMIUM") or next((path for name in _NAMES if (path := shutil.which(name))), None)


def _command(profile: str) -> list[str]:
    """How a browser is started that keeps what it remembers in the folder `profile`."""
    browser = find()
    if browser is None:
        raise RuntimeError(f"browser: expected one of {', '.join(_NAMES)}, found none (set CHROMIUM to its path)")
    return [
        shutil.which(browser) or browser,
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--no-first-run",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-extensions",
        "--hide-scrollbars",
        "--allow-file-access-from-files",
        f"--user-data-dir={profile}",
    ]


class Browser:
    """One browser for many questions, in a `with` block: a start costs more than most questions do.

    It is spoken to by the DevTools protocol, in messages of JSON that end with a zero byte, through two pipes. Every
    question has a window and a storage of its own, so that none sees what another one left.

    Raises
    ------
    RuntimeError
        if no browser is installed, or one ends or says nothing within `timeout` seconds.
    """

    def __init__(self, timeout: float = 180.0) -> None:
        self.timeout = timeout

    def __enter__(self) -> Self:
        self._profile = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        browser = [*_command(self._profile.name), "--remote-debugging-pipe", "about:blank"]
        (theirs, self._write), (self._read, answers) = os.pipe(), os.pipe()
        command = [sys.executable, "-I", "-S", "-c", _LAUNCH, str(theirs), str(answers), *browser]
        self._process = subprocess.Popen(
            command, pass_fds=(theirs, answers), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        os.close(theirs)
        os.close(answers)
        self._answering = select.poll()
        self._answering.register(self._read, select.POLLIN)
        self._count, self._bytes = 0, b""
        self._answers: dict[int, dict[str, Any]] = {}
        self._loaded: set[str] = set()
        return self

    def __exit__(self, *error: object) -> None:
        # Without its pipes the browser ends of itself.
        os.close(self._write)
        os.close(self._read)
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._profile.cleanup()

    def evaluate(self, page: Path, script: str, *, dark: bool = False, width: int = 1280) -> str:
        """Run an asynchronous JavaScript function body in a page once it has loaded; returns the text that it returns.

        The page loads in real time; while the script runs, time is virtual: timers run at once.
        """
        theme = "dark" if dark else "light"
        begin = (
            f"localStorage.setItem('mode','{theme}'); localStorage.setItem('theme','{theme}');"
            "new MutationObserver((_, observer) => { const root = document.documentElement; if (!root) return;"
            f"root.dataset.mode = root.dataset.theme = '{theme}'; observer.disconnect(); }})"
            ".observe(document, {childList: true});"
        )
        body = (
            "(async () => { if (document.readyState !== 'complete')"
            " await new Promise((done) => addEventListener('load', done)); await window.MathJax?.startup?.promise;"
            f"try {{ return String(await (async () => {{ {script} }})()); }}"
            " catch (error) { return 'ERROR ' + error; } })()"
        )
        context = self._ask("Target.createBrowserContext")["browserContextId"]
        window: dict[str, Any] = {"url": "about:blank", "newWindow": True, "width": width, "height": _HEIGHT}
        target = self._ask("Target.createTarget", browserContextId=context, **window)["targetId"]
        session = self._ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        # No window is as narrow as a telephone; the page is told that it is.
        screen: dict[str, Any] = {"width": width, "height": _HEIGHT, "deviceScaleFactor": 1, "mobile": False}
        self._ask("Emulation.setDeviceMetricsOverride", session, **screen)
        self._ask("Page.enable", session)
        self._ask("Page.addScriptToEvaluateOnNewDocument", session, source=begin)
        self._loaded.clear()
        self._ask("Page.navigate", session, url=page.resolve().as_uri())
        while session not in self._loaded:
            self._note(self._next(page.name))
        answer = self._send("Runtime.evaluate", session, expression=body, awaitPromise=True, returnByValue=True)
        self._send("Emulation.setVirtualTimePolicy", session, policy="pauseIfNetworkFetchesPending", budget=120_000)
        result = str(self._wait(answer, page.name)["result"].get("value", "ERROR no text"))
        self._ask("Target.disposeBrowserContext", browserContextId=context)
        if result.startswith("ERROR "):
            raise RuntimeError(f"browser: {page.name}: {result.removeprefix('ERROR ')}")
        return result

    def _send(self, method: str, session: str = "", **parameters: Any) -> int:
        """Send a message; returns its number."""
        self._count += 1
        message = {"id": self._count, "method": method, "params": parameters} | (
            {"sessionId": session} if session else {}
        )
        text = json.dumps(message).encode() + b"\0"
        try:
            while text:
                text = text[os.write(self._write, text) :]
        except BrokenPipeError:
            raise RuntimeError(f"browser: expected {method} to be done, the browser ended") from None
        return self._count

    def _next(self, what: str) -> dict[str, Any]:
        """The next message of the browser."""
        deadline = time.monotonic() + self.timeout
        while b"\0" not in self._bytes:
            if not self._answering.poll(max(0.0, 1000 * (deadline - time.monotonic()))):
                raise RuntimeError(f"browser: expected {what} to be done within {self.timeout:g} s, it was not")
            if not (read := os.read(self._read, 1 << 20)):
                raise RuntimeError(f"browser: expected {what} to be done, the browser ended")
            self._bytes += read
        message, _, self._bytes = self._bytes.partition(b"\0")
        return dict(json.loads(message))

    def _note(self, message: dict[str, Any]) -> None:
        if message.get("method") == "Page.loadEventFired":
            self._loaded.add(message["sessionId"])
        elif "id" in message:
            if "error" in message:
                raise RuntimeError(f"browser: {message['error']['message']}")
            self._answers[message["id"]] = message["result"]

    def _wait(self, number: int, what: str) -> dict[str, Any]:
        """The answer to a message."""
        while number not in self._answers:
            self._note(self._next(what))
        return self._answers.pop(number)

    def _ask(self, method: str, session: str = "", **parameters: Any) -> dict[str, Any]:
        return self._wait(self._send(method, session, **parameters), method)

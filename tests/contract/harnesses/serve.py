"""A program that serves agents as `opencode serve` does, and does what the words of a prompt say.

Started as `serve.py NOTES …`: it notes its arguments, its environment and every request in that folder.
"""

import json
import os
import sys
import threading
import time
from base64 import b64encode
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

NOTES = Path(sys.argv[1])
LOCK = threading.Lock()
SESSIONS: dict[str, dict] = {}
ABORTED: set[str] = set()
EXPECTED = "Basic " + b64encode(f"opencode:{os.environ.get('OPENCODE_SERVER_PASSWORD', '')}".encode()).decode()


def note(name, value):
    with LOCK, (NOTES / name).open("a") as file:
        file.write(json.dumps(value) + "\n")


def error(name, message, **fields):
    return {"info": {"error": {"name": name, "data": {"message": message, **fields}}}, "parts": []}


def answer(session, prompt, folder):
    """The answer to a message, and the status of its HTTP response."""
    calls = SESSIONS[session]["calls"] = SESSIONS[session]["calls"] + 1
    if "crash" in prompt:
        os._exit(3)
    if "no such model" in prompt:
        return 500, {"name": "UnknownError", "data": {"message": "Unexpected server error."}}
    if "bad key" in prompt:
        return 200, error("APIError", "bad key", statusCode=401)
    if "filtered" in prompt:
        return 200, error("ContentFilterError", "not that")
    if "silence" in prompt:
        return 200, {"info": {"finish": "tool-calls"}, "parts": []}
    if any(word in prompt for word in ("wait", "retry", "permission")):
        SESSIONS[session]["state"] = prompt
        while session not in ABORTED:
            time.sleep(0.02)
        return 200, error("MessageAbortedError", "aborted")
    text = "hello"
    if "json" in prompt:
        text = "no" if calls == 1 else json.dumps({"v": "x"})
    if "write" in prompt:
        (Path(folder) / "made").write_text("new")
    if "tell" in prompt:
        text = f"{os.environ.get('APP_KEY', '')} in {folder}"
    SESSIONS[session]["tokens"]["input"] += 10
    SESSIONS[session]["tokens"]["output"] += 3
    SESSIONS[session]["tokens"]["reasoning"] += 1
    parts = [
        {"type": "step-start"},
        {"type": "text", "text": "note", "synthetic": True},
        {"type": "text", "text": text},
    ]
    return 200, {"info": {"tokens": {"input": 10, "output": 3}}, "parts": parts}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *arguments):
        pass

    def do_GET(self):
        self._reply(*self._got(self.path.partition("?")[0].split("/")))

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers.get("content-length", 0))) or b"null")
        path, _, query = self.path.partition("?")
        note("requests", {"path": path, "query": query, "body": body})
        self._reply(*self._posted(path.split("/"), query, body))

    def _got(self, path):
        match path:
            case ["", "session", "status"]:
                states = {name: session["state"] for name, session in SESSIONS.items() if "state" in session}
                retry = {"type": "retry", "attempt": 4, "message": "429 too many requests"}
                return 200, {name: retry if "retry" in said else {"type": "busy"} for name, said in states.items()}
            case ["", "session", name]:
                return 200, {"id": name, "tokens": SESSIONS[name]["tokens"]}
            case ["", "permission"]:
                asking = [name for name, session in SESSIONS.items() if "permission" in session.get("state", "")]
                return 200, [{"id": "p", "sessionID": name, "permission": "bash"} for name in asking]
        return 404, {}

    def _posted(self, path, query, body):
        from urllib.parse import unquote

        match path:
            case ["", "session"]:
                name = f"ses_{len(SESSIONS) + 1}"
                SESSIONS[name] = {"calls": 0, "tokens": {"input": 0, "output": 0, "reasoning": 0}}
                return 200, {"id": name}
            case ["", "session", name, "abort"]:
                ABORTED.add(name)
                return 200, True
            case ["", "session", name, "message"]:
                return answer(name, body["parts"][0]["text"], unquote(query.partition("=")[2]))
        return 404, {}

    def _reply(self, status, body):
        if self.headers.get("authorization") != EXPECTED:
            status, body = 401, None
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


def main():
    note("started", {"argv": sys.argv[2:], "env": dict(os.environ), "cwd": os.getcwd(), "pid": os.getpid()})
    if "refuse" in sys.argv:
        sys.exit("no home to live in")
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    print("Warning: something", file=sys.stderr, flush=True)
    print(f"opencode server listening on http://127.0.0.1:{server.server_port}", flush=True)
    server.serve_forever()


main()

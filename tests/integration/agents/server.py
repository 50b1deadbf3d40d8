"""A model server on this machine that speaks the APIs of four agent programs, and says what a script tells it.

Anthropic Messages, OpenAI Responses, OpenAI chat completions and Gemini generateContent, all of them as streams.
What a program asks beside its model (news, settings, lists of models) is answered 404.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import msgspec

Object = dict[str, Any]


class Call(msgspec.Struct, frozen=True):
    """The model calls a tool of the program: its name there, and its arguments."""

    name: str
    arguments: Object


class Answer(msgspec.Struct, frozen=True):
    """One turn of the model: a text, calls behind it, or an HTTP failure. `wait_s` is waited first."""

    text: str = ""
    calls: tuple[Call, ...] = ()
    status: int = 200
    wait_s: float = 0.0


class Asked(msgspec.Struct, frozen=True):
    """A request for a turn: `api` is anthropic, responses, chat or gemini; header names are in lower case."""

    api: str
    path: str
    headers: dict[str, str]
    body: Object

    @property
    def system(self) -> str:
        return "\n".join(text for role, text in self._messages() if role in ("system", "developer"))

    @property
    def said(self) -> list[str]:
        """What the user said, one text each: prompts, and what the program itself says in the user's name."""
        return [text for role, text in self._messages() if role == "user"]

    @property
    def is_title(self) -> bool:
        """Opencode has its model find a title for the session, beside the task."""
        return "title generator" in self.system

    def _messages(self) -> Iterator[tuple[str, str]]:
        yield from _MESSAGES[self.api](self.body)


Script = Callable[[Asked], Answer]
INPUT_TOKENS, OUTPUT_TOKENS = 100, 7


def scripted(*answers: Answer) -> Script:
    """The answers in order, the last one again and again; what asks for a title gets one."""
    left = list(answers)

    def say(asked: Asked) -> Answer:
        if asked.is_title and left[0].status == 200:
            return Answer("A title")
        return left.pop(0) if len(left) > 1 else left[0]

    return say


class AgentModelServer:
    """Answers as the script says; use it with `with`.

    `asked` are the requests for turns so far, `others` the paths of all other requests.
    """

    def __init__(self, script: Script) -> None:
        self.script = script
        self.asked: list[Asked] = []
        self.others: list[str] = []
        self._lock = threading.Lock()
        self._closing = threading.Event()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> AgentModelServer:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._closing.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def answer(self, asked: Asked) -> Answer:
        with self._lock:
            self.asked.append(asked)
            chosen = self.script(asked)
        self._closing.wait(chosen.wait_s)
        return chosen


def _handler(server: AgentModelServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            server.others.append(f"{self.command} {self.path}")
            self._send(404, b"{}", "application/json")

        do_HEAD = do_GET

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length") or 0))
            api = api_of(self.path)
            if api is None:
                self.do_GET()
                return
            headers = {name.lower(): value for name, value in self.headers.items()}
            asked = Asked(api, self.path, headers, json.loads(body))
            answer = server.answer(asked)
            if answer.status >= 400:
                self._send(answer.status, json.dumps(failure(api, answer)).encode(), "application/json")
                return
            events = "".join(_TURNS[api](asked, answer))
            self._send(200, events.encode(), "text/event-stream")

        def _send(self, status: int, body: bytes, kind: str) -> None:
            try:
                self.send_response(status)
                self.send_header("content-type", kind)
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(body)
            except OSError:
                self.close_connection = True  # a program that was ended does not wait for its answer

        def log_message(self, format: str, *args: Any) -> None:
            """Nothing: the test keeps the requests."""

    return Handler


def api_of(path: str) -> str | None:
    """The API that a path belongs to; None for what is no request for a turn."""
    path = path.partition("?")[0]
    if path.endswith("/messages"):
        return "anthropic"
    if path.endswith("/responses"):
        return "responses"
    if path.endswith("/chat/completions"):
        return "chat"
    if path.endswith(":streamGenerateContent"):
        return "gemini"
    return None


def failure(api: str, answer: Answer) -> Object:
    message = answer.text or f"refused with {answer.status}"
    kind = "authentication_error" if answer.status == 401 else "api_error"
    if api == "gemini":
        return {"error": {"code": answer.status, "message": message, "status": "INTERNAL"}}
    return {"type": "error", "error": {"type": kind, "message": message, "code": kind}}


def event(data: Object, name: str | None = None) -> str:
    head = "" if name is None else f"event: {name}\n"
    return f"{head}data: {json.dumps(data)}\n\n"


def _anthropic(asked: Asked, answer: Answer) -> Iterator[str]:
    def named(data: Object) -> str:
        return event(data, data["type"])

    usage = {"input_tokens": INPUT_TOKENS, "output_tokens": 1}
    message = {"id": "msg_1", "type": "message", "role": "assistant", "model": asked.body["model"], "content": []}
    yield named({"type": "message_start", "message": {**message, "stop_reason": None, "usage": usage}})
    blocks: list[tuple[Object, Object]] = []
    if answer.text:
        blocks.append(({"type": "text", "text": ""}, {"type": "text_delta", "text": answer.text}))
    for number, call in enumerate(answer.calls):
        block = {"type": "tool_use", "id": f"toolu_{number}", "name": call.name, "input": {}}
        blocks.append((block, {"type": "input_json_delta", "partial_json": json.dumps(call.arguments)}))
    for index, (block, delta) in enumerate(blocks):
        yield named({"type": "content_block_start", "index": index, "content_block": block})
        yield named({"type": "content_block_delta", "index": index, "delta": delta})
        yield named({"type": "content_block_stop", "index": index})
    stop = {"stop_reason": "tool_use" if answer.calls else "end_turn", "stop_sequence": None}
    yield named({"type": "message_delta", "delta": stop, "usage": {"output_tokens": OUTPUT_TOKENS}})
    yield named({"type": "message_stop"})


def _responses(asked: Asked, answer: Answer) -> Iterator[str]:
    def named(kind: str, **fields: Any) -> str:
        return event({"type": kind, **fields}, kind)

    yield named("response.created", response={"id": "resp_1"})
    items: list[Object] = []
    if answer.text:
        content = [{"type": "output_text", "text": answer.text, "annotations": []}]
        items.append({"type": "message", "role": "assistant", "id": "item_m", "content": content})
    for number, call in enumerate(answer.calls):
        arguments = json.dumps(call.arguments)
        items.append({"type": "function_call", "call_id": f"call_{number}", "name": call.name, "arguments": arguments})
    for index, item in enumerate(items):
        yield named("response.output_item.done", output_index=index, item=item)
    usage = {
        "input_tokens": INPUT_TOKENS,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": OUTPUT_TOKENS,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": INPUT_TOKENS + OUTPUT_TOKENS,
    }
    yield named("response.completed", response={"id": "resp_1", "usage": usage})


def _chat(asked: Asked, answer: Answer) -> Iterator[str]:
    def chunk(delta: Object, finish: str | None = None) -> Object:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        return {"id": "c", "object": "chat.completion.chunk", "model": asked.body["model"], "choices": [choice]}

    yield event(chunk({"role": "assistant", "content": answer.text}))
    for index, call in enumerate(answer.calls):
        function = {"name": call.name, "arguments": json.dumps(call.arguments)}
        yield event(
            chunk({"tool_calls": [{"index": index, "id": f"call_{index}", "type": "function", "function": function}]})
        )
    usage = {"prompt_tokens": INPUT_TOKENS, "completion_tokens": OUTPUT_TOKENS}
    total = {**usage, "total_tokens": INPUT_TOKENS + OUTPUT_TOKENS}
    yield event({**chunk({}, "tool_calls" if answer.calls else "stop"), "usage": total})
    yield "data: [DONE]\n\n"


def _gemini(asked: Asked, answer: Answer) -> Iterator[str]:
    parts: list[Object] = [{"text": answer.text}] if answer.text else []
    parts += [{"functionCall": {"name": call.name, "args": call.arguments}} for call in answer.calls]
    candidate = {"index": 0, "content": {"role": "model", "parts": parts}, "finishReason": "STOP"}
    usage = {"promptTokenCount": INPUT_TOKENS, "candidatesTokenCount": OUTPUT_TOKENS}
    total = {**usage, "totalTokenCount": INPUT_TOKENS + OUTPUT_TOKENS}
    yield event({"candidates": [candidate], "usageMetadata": total, "modelVersion": "scripted"})


_TURNS: dict[str, Callable[[Asked, Answer], Iterator[str]]] = {
    "anthropic": _anthropic,
    "responses": _responses,
    "chat": _chat,
    "gemini": _gemini,
}


def _texts(role: str, content: Any) -> Iterator[tuple[str, str]]:
    """The texts of a message: it is one, or a list of parts."""
    parts = [{"text": content}] if isinstance(content, str) else content or []
    yield from ((role, part["text"]) for part in parts if isinstance(part, dict) and "text" in part)


def _of_anthropic(body: Object) -> Iterator[tuple[str, str]]:
    yield from _texts("system", body.get("system"))
    for message in body["messages"]:
        yield from _texts(message["role"], message["content"])


def _of_responses(body: Object) -> Iterator[tuple[str, str]]:
    yield from _texts("system", body.get("instructions"))
    for item in body["input"]:
        yield from _texts(item.get("role", ""), item.get("content"))


def _of_chat(body: Object) -> Iterator[tuple[str, str]]:
    for message in body["messages"]:
        yield from _texts(message["role"], message.get("content"))


def _of_gemini(body: Object) -> Iterator[tuple[str, str]]:
    yield from _texts("system", (body.get("systemInstruction") or {}).get("parts"))
    for content in body["contents"]:
        yield from _texts(content.get("role", "user"), content["parts"])


_MESSAGES: dict[str, Callable[[Object], Iterator[tuple[str, str]]]] = {
    "anthropic": _of_anthropic,
    "responses": _of_responses,
    "chat": _of_chat,
    "gemini": _of_gemini,
}

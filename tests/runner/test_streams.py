"""What a service's answer may hold: whatever it is, it becomes a reply that can be sent back, or is asked for again."""

from __future__ import annotations

import json
import math
import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from email.utils import formatdate
from typing import Any

import pytest
from tests.runner.running import Running, calls, says, trouble

from pypto_op.runner.loopback import Answer, Body

SLEEPS = "pypto_op.runner.service.time.sleep"
Event = dict[str, Any]
ONCE = "python3 -c \"open('once', 'a').write('x')\"; echo ran"


@dataclass(frozen=True)
class Edited(Answer):
    """An answer whose stream is not quite what the API promises."""

    edit: Callable[[list[Event]], Iterable[Event]] = field(default=lambda events: events)

    def events(self, name: str) -> Iterator[Event]:
        yield from self.edit(list(super().events(name)))


def bash(words: str = ONCE, **more: Any) -> Answer:
    return calls(("Bash", {"command": words}), **more)


def edited(edit: Callable[[list[Event]], Iterable[Event]]) -> Answer:
    return Edited(bash().content, edit=edit)


def each(kind: str, **new: Any) -> Answer:
    """A call in whose stream every event of a kind has other values."""
    return edited(lambda events: [{**event, **new} if event["type"] == kind else event for event in events])


def holding(*blocks: Any) -> Answer:
    """A message with these blocks, of which no delta says more."""

    def edit(events: list[Event]) -> Iterator[Event]:
        yield events[0]
        for index, block in enumerate(blocks):
            yield {"type": "content_block_start", "index": index, "content_block": block}
            yield {"type": "content_block_stop", "index": index}
        yield from events[-2:]

    return edited(edit)


def counted(usage: Any) -> Answer:
    """A call whose message says that it cost `usage`."""

    def edit(events: list[Event]) -> Iterator[Event]:
        start, *middle, delta, stop = events
        yield {**start, "message": {**start["message"], "usage": usage}}
        yield from middle
        yield {**delta, "usage": usage}
        yield stop

    return edited(edit)


def call(**other: Any) -> Event:
    return {"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {"command": ONCE}, **other}


@pytest.fixture
def patient(running: Running) -> Running:
    running.patch.setattr(SLEEPS, lambda seconds: None)
    return running


def ran(running: Running) -> int:
    path = running.workspace / "once"
    return len(path.read_text()) if path.exists() else 0


UNREADABLE = {
    "a delta for a block that is not there": each("content_block_delta", index=7),
    "an index that is no number": each("content_block_delta", index="x"),
    "a delta that is none": each("content_block_delta", delta=None),
    "a part of an input that is no text": each("content_block_delta", delta={"type": "input_json_delta", "partial_json": None}),
    "no message in its beginning": each("message_start", message=None),
    "a block that is none": holding(None),
    "a block that is a word": holding("text"),
    "no reason to stop": edited(lambda events: [event for event in events if event["type"] != "message_delta"]),
    "no count of tokens": each("message_delta", usage=None),
    "a count that is a word": each("message_delta", usage="many"),
    "an error in the stream": edited(
        lambda events: [*events[:3], {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}]
    ),
    "an error without form": edited(lambda events: [*events[:3], {"type": "error", "error": "x"}]),
    "cut in the middle of a call's input": Answer(bash().content, cut_after=2),
}


@pytest.mark.parametrize("way", UNREADABLE)
@pytest.mark.slow
def test_a_stream_that_cannot_be_read_is_asked_for_again(patient: Running, way: str) -> None:
    """Twice in a row; nothing of it is done, and the third, which is whole, is done once."""
    done = patient.run([UNREADABLE[way], UNREADABLE[way], bash(), says("done")], "--json")
    assert done.code == 1 and "internal error" not in done.stderr and ran(patient) == 1, done
    assert patient.bodies[0]["messages"] == patient.bodies[1]["messages"] == patient.bodies[2]["messages"]


@pytest.mark.parametrize("events", [0, 1, 3, 4])
@pytest.mark.slow
def test_a_stream_that_is_cut_is_asked_for_again_and_nothing_of_it_is_done(running: Running, events: int) -> None:
    running.patch.setattr(SLEEPS, lambda seconds: None)
    whole = bash("python3 -c \"open('once.txt', 'a').write('x')\"")
    cut = Answer(whole.content, cut_after=events)
    done = running.run([cut, whole, says("done")])
    assert done.code == 1 and "cut" in done.stdout
    assert (running.workspace / "once.txt").read_text() == "x"


def test_json_that_cannot_be_read_at_all_is_asked_for_again(running: Running) -> None:
    running.patch.setattr(SLEEPS, lambda seconds: None)
    done = running.run([Answer(bash("").content, raw_inputs={0: "}{"})])
    assert done.code == 3 and "no JSON" in done.stderr and len(running.bodies) == 6


def test_one_that_never_can_be_read_ends_the_run(patient: Running) -> None:
    done = patient.run([UNREADABLE["a delta that is none"]])
    assert done.code == 3 and "failed 6 times in a row (the stream cannot be read)" in done.stderr and not ran(patient)


def test_a_message_is_whole_with_its_reason_to_stop(patient: Running) -> None:
    """What is cut after that lost nothing: asking again would cost it twice."""
    done = patient.run([edited(lambda events: events[:-1]), says("done")])
    assert done.code == 1 and ran(patient) == 1 and len(patient.bodies[1]["messages"]) == 3


def slowly(events: list[Event], *, parts: int, then: Iterable[Event]) -> Iterator[Event]:
    """The first parts of a message, and then more, a tenth of a second apart."""
    yield from events[:parts]
    pause = threading.Event()  # these tests leave `time.sleep` out
    for event in then:
        pause.wait(0.1)
        yield event


@pytest.mark.slow
@pytest.mark.parametrize("parts", [0, 2])
def test_a_stream_that_only_pings_is_cut_and_asked_for_again(patient: Running, parts: int) -> None:
    """Pings keep the connection open for ever; what came before them counts, and is not done."""
    patient.patch.setattr("pypto_op.runner.reading.IDLE_SECONDS", 0.8)
    pings = edited(lambda events: slowly(events, parts=parts, then=({"type": "ping"} for _ in range(600))))
    began = time.monotonic()
    done = patient.run([pings, bash(), says("done")])
    assert done.code == 1 and ran(patient) == 1 and "nothing but silence came for 0.8 s" in done.stdout, done
    assert patient.bodies[0]["messages"] == patient.bodies[1]["messages"] and time.monotonic() - began < 45


@pytest.mark.slow
def test_a_stream_that_says_a_little_at_a_time_is_not_cut(patient: Running) -> None:
    patient.patch.setattr("pypto_op.runner.reading.IDLE_SECONDS", 1.5)
    word = {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "a "}}
    start, begun, *rest = says("done").events("1")
    long = edited(lambda events: slowly([start, begun], parts=2, then=[*[word] * 25, *rest]))
    done = patient.run([long])
    assert "a a a done" in done.stdout and "silence" not in done.stdout, done


TAKEN_BACK = {
    "two calls of one identity": (holding(call(), call()), 2, "ran"),
    "a call without an identity": (holding(call(id=None)), 1, "ran"),
    "an identity that is none": (holding(call(id="a b\n")), 1, "ran"),
    "a call without a name": (holding(call(name=None)), 0, "There is no tool 'unnamed'"),
    "a name that is a list": (holding(call(name=["Bash"])), 0, "There is no tool 'unnamed'"),
    "a name with spaces": (holding(call(name="Bash, now!")), 0, "There is no tool 'Bash__now_'"),
    "a name in other case": (holding(call(name="bash")), 0, "There is no tool 'bash'. You have Read, Grep"),
    "a name without end": (holding(call(name="b" * 4000)), 0, "There is no tool 'bbb"),
    "an input that is a list": (holding(call(input=[ONCE])), 0, "the input is JSON, but no object"),
    "an input that comes as a list": (Answer([call(input={})], raw_inputs={0: '["x"]'}), 0, "the input is JSON, but no object"),
    "an input that is none": (holding(call(input=None)), 0, "the input is JSON, but no object"),
    "a block of an unknown kind": (holding({"type": "hologram", "data": {"a": 1}}, call()), 1, "ran"),
    "a thought": (holding({"type": "thinking", "thinking": "hm", "signature": "s"}, call()), 1, "ran"),
    "a block without a kind": (holding({"data": 1}, call()), 1, "ran"),
    "a text that is none": (holding({"type": "text", "text": None}, call()), 1, "ran"),
    "a text that is a number": (holding({"type": "text", "text": 5}, call()), 1, "ran"),
    "a call in a message that ends for another reason": (Answer([call()], stop_reason="end_turn"), 0, "may not be whole"),
    "a reason to stop that nobody knows": (Answer([call()], stop_reason="bored"), 0, "ended with 'bored'"),
    "an event of an unknown kind": (edited(lambda events: [events[0], {"type": "sparkle"}, *events[1:]]), 1, "ran"),
    "two beginnings": (edited(lambda events: [events[0], *events]), 1, "ran"),
}


@pytest.mark.parametrize("way", TAKEN_BACK)
@pytest.mark.slow
def test_a_message_of_an_odd_form_can_be_sent_back(patient: Running, way: str) -> None:
    """The API would refuse it as it came, now and at every later try, so that no --resume would go on."""
    answer, times, told = TAKEN_BACK[way]
    done = patient.run([answer, says("done")])
    assert done.code == 1 and "internal error" not in done.stderr and ran(patient) == times, done
    assert told in patient.told(1)
    assert_the_api_takes_it(patient.bodies[-1]["messages"])
    assert patient.run([says("done")], "--resume", request="").code == 1
    assert_the_api_takes_it(patient.bodies[-1]["messages"])
    assert ran(patient) == times


def assert_the_api_takes_it(messages: list[dict[str, Any]]) -> None:
    seen: set[str] = set()
    for message, answer in zip(messages[1::2], messages[2::2], strict=True):
        assert message["content"]
        mine = [block for block in message["content"] if block["type"] == "tool_use"]
        for block in mine:
            assert (
                block["id"] not in seen and set(block["id"]) <= set(map(chr, range(45, 123))) and isinstance(block["input"], dict)
            )
            assert block["name"].replace("_", "a").replace("-", "a").isalnum() and len(block["name"]) <= 128
            seen.add(block["id"])
        assert all(isinstance(block["type"], str) and block.get("text", "x").strip() for block in message["content"])
        assert [one["tool_use_id"] for one in answer["content"] if one["type"] == "tool_result"] == [one["id"] for one in mine]


@pytest.mark.slow
def test_an_identity_of_an_earlier_message_is_not_taken_again(patient: Running) -> None:
    again = [holding(call(input={"command": f"echo {number}"})) for number in range(3)]
    patient.run([*again, says("done")])
    assert_the_api_takes_it(patient.bodies[-1]["messages"])
    assert len(patient.bodies[-1]["messages"]) >= 7


def test_a_message_that_announces_calls_and_holds_none(patient: Running) -> None:
    done = patient.run([Answer(says("I look.").content, stop_reason="tool_use")])
    assert done.code == 1 and "internal error" not in done.stderr and len(patient.bodies) == 3, "told twice, then it may end"


@pytest.mark.parametrize("content", [[], [{"type": "text", "text": " \n"}]])
def test_a_message_without_words_can_be_sent_back(running: Running, content: list[dict[str, object]]) -> None:
    """The service refuses it at every later try, so that no --resume would go on."""
    running.run([Answer(content), says("done")])
    sent = [block for body in running.bodies for message in body["messages"] for block in message["content"]]
    assert len(running.bodies) > 1 and all(block.get("text", "x").strip() for block in sent if isinstance(block, dict))
    assert all(message["content"] for body in running.bodies for message in body["messages"])


def test_half_a_character_is_sent_back_as_its_number(patient: Running) -> None:
    """From a file's name that is no UTF-8, from the model's own JSON, and from the request; --resume goes on with it."""
    with open(os.fsencode(patient.workspace) + b"/a\xff.txt", "w"):  # noqa: PTH123
        pass
    said = Answer([{"type": "text", "text": "half \ud800"}, call(name="Glob", input={"pattern": "*.txt"})])
    done = patient.run([said, says("done")], request="caf\udce9")
    assert done.code == 1 and "a\\udcff.txt" in json.loads(patient.told(1))[0]["content"], done
    assert "caf\\udce9" in patient.bodies[0]["messages"][0]["content"]
    assert patient.run([says("done")], "--resume", request="").code == 1
    assert patient.bodies[0]["messages"][1]["content"][0]["text"] == "half \\ud800"


# -- what it costs -------------------------------------------------------------------------------------------------

SAYS_NOTHING = [{}, {"input_tokens": 0, "output_tokens": 0}, {"input_tokens": None, "output_tokens": "7"}, {"input_tokens": -1}]


@pytest.mark.parametrize("usage", SAYS_NOTHING, ids=str)
@pytest.mark.slow
def test_a_service_that_counts_nothing_does_not_blind_a_budget(patient: Running, usage: Mapping[str, Any]) -> None:
    """Its requests count by their size."""

    def say(number: int, body: Body, headers: Mapping[str, str]) -> Answer:
        return replace(counted(usage), content=bash(f"echo {number}").content)

    done = patient.run(say, "--budget", "40k", "--json")
    summary = json.loads(done.stdout)
    assert done.code == 1 and "the budget is spent" in summary["why"] and summary["requests"] < 12, summary
    assert 0 < summary["tokens"]["input"] + summary["tokens"]["output"] <= 40_000


def test_a_service_that_counts_below_nothing_gives_no_budget_back(running: Running) -> None:
    usage = {"input_tokens": -75_000_000, "output_tokens": 10**400}
    done = running.run([calls(("Bash", {"command": "echo x"}), usage=usage), says("done")], "--json", "--budget", "90000000000")
    assert done.code == 1 and 0 <= json.loads(done.stdout)["tokens"]["input"] < 10**7


def test_numbers_with_a_point_are_numbers(patient: Running) -> None:
    done = patient.run([counted({"input_tokens": 7e6, "output_tokens": 2.0}), says("done")], "--json")
    assert 7_000_000 <= json.loads(done.stdout)["tokens"]["input"] < 7_100_000


def test_a_message_that_came_in_part_was_paid_for(patient: Running) -> None:
    """Also by a run that goes on later: the budget is the whole run's."""
    usage = {"input_tokens": 5000, "output_tokens": 40}
    cut = Answer(says("word " * 300).content, usage=usage, cut_after=3)
    first = json.loads(patient.run([cut, cut, trouble(401)], "--json").stdout)
    assert first["tokens"]["input"] == 10_000 and first["tokens"]["output"] > 800, first
    again = json.loads(patient.run([trouble(401)], "--resume", "--json", request="").stdout)
    assert again["tokens"] == first["tokens"]


# -- services in trouble -------------------------------------------------------------------------------------------

PAGE = "<!DOCTYPE html><html><head><style>b {color: red}</style><title>Sorry</title></head><body><b>No</b> way</body></html>"


@pytest.mark.parametrize(("status", "code"), [(400, 2), (401, 3), (403, 3), (404, 2), (418, 2), (502, 3)])
def test_a_page_for_a_browser_is_told_in_words(patient: Running, status: int, code: int) -> None:
    done = patient.run([Answer(status=status, page=PAGE)])
    last = done.stderr.strip().splitlines()[-1]
    assert done.code == code and "Sorry No way" in last and "<" not in last and "color" not in last, done.stderr


def test_a_page_where_a_stream_should_be(patient: Running) -> None:
    done = patient.run([Answer(page=PAGE)])
    assert done.code == 3 and "answers with text/html, not with a stream of events" in done.stderr


def test_a_server_that_fails_for_ever_is_waited_for_longer_each_time(running: Running) -> None:
    waits: list[float] = []
    running.patch.setattr(SLEEPS, lambda seconds: waits.append(seconds) if seconds > 0.1 else None)
    done = running.run([trouble(500, "broken")])
    assert done.code == 3 and "6 times in a row (broken)" in done.stderr and len(running.bodies) == 6
    assert len(waits) == 5 and waits == sorted(waits) and sum(waits) < 60


@pytest.mark.parametrize(
    ("asked", "least", "most"),
    [(lambda: formatdate(time.time() + 30, usegmt=True), 20, 31), (lambda: formatdate(0, usegmt=True), 0, 0)]
    + [(lambda text=text: text, 0.7, 1.3) for text in ("", "soon", "nan", "12 parsecs")]
    + [(lambda: "-5", 0, 0)],
)
def test_when_to_come_back_is_said_in_many_ways(running: Running, asked: Callable[[], str], least: float, most: float) -> None:
    """A number, a date, or nothing that can be read: then it waits as if nothing were said."""
    waits: list[float] = []
    running.patch.setattr(SLEEPS, waits.append)
    done = running.run([trouble(429, retry_after=asked()), says("done")])
    assert done.code == 1 and least <= waits[0] <= most and not math.isnan(waits[0]), waits

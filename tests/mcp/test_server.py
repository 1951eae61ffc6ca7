"""The MCP server, driven by the real client over stdio."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.quickly import needs_package

from pypto_op.documents import schema
from pypto_op.proof.key import KEY_ENV

pytestmark = needs_package("mcp")

SERVER = Path(__file__).parents[2] / "scripts" / "mcp_server.py"


@pytest.fixture(scope="module")
def env(tmp_path_factory):
    folder = tmp_path_factory.mktemp("account")
    kept = {key: value for key, value in os.environ.items() if key != "PYPTO_OP_TOKEN"}
    return {**kept, KEY_ENV: str(folder / "seal.key")}


def talk(env, conversation):
    """Run `conversation(call, tools)` against a fresh server; `call` returns a tool's JSON answer."""
    import anyio
    from mcp import ClientSession, StdioServerParameters
    from mcp.client.stdio import stdio_client

    async def run():
        parameters = StdioServerParameters(command=sys.executable, args=[str(SERVER)], env=env)
        async with stdio_client(parameters) as (reader, writer), ClientSession(reader, writer) as session:
            await session.initialize()
            tools = {tool.name: tool for tool in (await session.list_tools()).tools}

            async def call(tool, **arguments):
                answer = await session.call_tool(tool, arguments)
                result = json.loads(answer.content[0].text)
                schema.check({"tool": tool, "result": result}, "tool_results")
                assert len(answer.content[0].text) < 8000, "answers are short"
                return result

            return await conversation(call, tools)

    return anyio.run(run)


@pytest.fixture
def op_dir(tmp_path):
    root = tmp_path / "custom" / "relu"
    root.mkdir(parents=True)
    return root


@pytest.mark.slow
def test_the_state_moves_for_the_holder_of_the_token_only(env, op_dir):
    async def conversation(call, tools):
        assert set(tools) == {"state_transition", "verify", "lint", "diagnose_error", "pypto_api"}
        assert tools["state_transition"].input_schema["required"] == ["action", "op_dir"]
        here = str(op_dir)
        begun = await call("state_transition", action="init", op_dir=here)
        assert begun["ok"] and begun["current_stage"] == 1
        token = begun["token"]
        refused = await call("state_transition", action="fail_stage", op_dir=here, stage=1)
        assert not refused["ok"] and "token" in refused["error"] and token not in refused["error"]
        sent = await call("state_transition", action="dispatch", op_dir=here, role="planner", token=token)
        other = await call("state_transition", action="fail_stage", op_dir=here, stage=1, token=sent["token"])
        assert "pypto-op-planner may not call fail_stage" in other["error"]
        done = await call("state_transition", action="fail_stage", op_dir=here, stage=1, token=token)
        assert done["ok"] and done["current_stage_status"] == "failed"
        status = await call("state_transition", action="status", op_dir=here)
        assert status["stage_retry_count"]["1"] == 1 and token not in json.dumps(status)
        audit = await call("state_transition", action="audit", op_dir=here)
        assert audit["ok"] and audit["lines"] == 3

    talk(env, conversation)


@pytest.mark.slow
def test_every_problem_is_one_line_and_the_server_lives_on(env, op_dir, tmp_path):
    kernel = op_dir / "relu_impl.py"
    kernel.write_text("import numpy as pypto\n\ndef relu_wrapper(x):\n    return x\n")

    async def conversation(call, tools):
        for tool, arguments, word in [
            ("state_transition", {"action": "bogus", "op_dir": str(op_dir)}, "unknown action"),
            ("state_transition", {"action": "init", "op_dir": str(tmp_path / "nowhere")}, "no such operator"),
            ("verify", {"op_dir": str(tmp_path / "nowhere")}, "no such operator"),
            ("verify", {"op_dir": str(op_dir), "modes": "gpu"}, "gpu"),
            ("verify", {"op_dir": str(tmp_path)}, "is no operator"),
            ("verify", {"op_dir": str(op_dir), "impl": "a\0b"}, "cannot be carried out"),
            ("verify", {"op_dir": str(op_dir), "case": "x" * 3_000_000}, "cannot be carried out"),
            *(
                ("state_transition", {"action": "status", "op_dir": bad}, "no such operator")
                for bad in ("", "a\0b", "x" * 300, "~nosuch")
            ),
            ("lint", {"path": str(tmp_path / "nothing.py")}, "no such file"),
            ("lint", {"path": "x" * 300}, "cannot be carried out"),
            ("lint", {"path": str(kernel), "event": "at-noon"}, "at-noon"),
        ]:
            answer = await call(tool, **arguments)
            assert not answer["ok"] and word in answer["error"] and "\n" not in answer["error"], answer
        found = await call("lint", path=str(kernel))
        assert not found["ok"] and "OL01" in found["blocking_rules"]
        judged = await call("verify", op_dir=str(op_dir), modes="sim")
        assert not judged["ok"] and judged["status"] == "ERROR" and judged["error"]

    talk(env, conversation)


NO_TILE = "ERROR /w/soft_impl.py:7:13: RuntimeError: Errcode: F21004!\nop [EXP]tile shape not set, func Operation\n"


@pytest.mark.slow
def test_errors_are_explained_and_pypto_is_described(env, tmp_path):
    pytest.importorskip("pypto")
    log = tmp_path / "a run.log"
    log.write_text(NO_TILE)

    async def conversation(call, tools):
        for given in (str(log), NO_TILE):
            answer = await call("diagnose_error", error_log=given)
            assert answer["ok"] and answer["hits"][0]["id"] == "no-vector-tile" and answer["hits"][0]["kernel_line"] == 7
        assert not (await call("diagnose_error", error_log="all is well here"))["ok"]
        missing = await call("diagnose_error", error_log=str(tmp_path / "nothing.log"))
        assert missing["kind"] == "refused" and "cannot be read" in missing["error"]

        entry = (await call("pypto_api", name="matmul"))["entry"]
        assert "out_dtype" in entry["signature"] and "matmul_kernel" in entry["example"] and entry["notes"]
        found = await call("pypto_api", search="row-wise maximum over an axis")
        assert "pypto.amax" in [row["name"] for row in found["names"]] and found["ways"] == []
        unknown = await call("pypto_api", name="softmx")
        assert not unknown["ok"] and "softmax" in unknown["error"]
        assert "either" in (await call("pypto_api"))["error"]
        for name in ("conv", "frontend.jit", "Tensor", "DT_FP32", "CastMode"):
            assert (await call("pypto_api", name=name))["ok"], name

    talk(env, conversation)


@pytest.mark.slow
def test_a_python_without_mcp_hands_over_to_the_one_that_is_named(env):
    hello = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    bare = [sys.executable, "-S", str(SERVER)]  # without site-packages there is no mcp
    named = {**env, "PYPTO_OP_PYTHON": sys.executable}
    done = subprocess.run(bare, input=json.dumps(hello) + "\n", env=named, capture_output=True, text=True)
    assert json.loads(done.stdout)["id"] == 1, done.stderr


def test_where_there_is_no_mcp_at_all_one_line_says_so(env):
    alone = {**env, "PYPTO_OP_MCP_RELAUNCHED": "1"}
    done = subprocess.run([sys.executable, "-S", str(SERVER)], env=alone, capture_output=True, text=True)
    assert done.returncode == 1 and done.stderr.count("\n") == 1 and "make setup" in done.stderr

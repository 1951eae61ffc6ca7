"""Who calls: the orchestrator with its token, a subagent with a dispatch token, or the owner at a terminal.

A token is a claim with a mac under the account's key, so nothing has to be stored to check it:
`pto1:<role>:<phase>:<attempt>:<run>:<nonce>:<mac>`. It counts for one run of one operator; `init` and
`adopt` begin a new run, so older tokens end. Which roles may move the state is said once, in the guard's
role table.
"""

from __future__ import annotations

import hmac
import os
from dataclasses import dataclass

from pypto_op.errors import Refused
from pypto_op.proof.key import mac
from pypto_op.state.callers import agent_in_shell, no_person
from pypto_op.state.model import State
from pypto_op.vocabulary import Role

TOKEN_ENV = "PYPTO_OP_TOKEN"
OWNER, PERSON, ORCHESTRATOR = "owner", "person", "orchestrator"
_PREFIX = "pto1"
_DOMAIN = "pypto-op token"
_ASK = f"pass --token, or set {TOKEN_ENV}; a lost one: the owner runs `pypto-op state adopt`"
_BY_HAND = "a person runs it in a terminal that no agent started"
_BEGUN_WITHOUT = f"{_BY_HAND}; `pypto-op state adopt --require-token` there gives the orchestrator a token"


@dataclass(frozen=True)
class Claim:
    """What a token says of its holder; `phase` and `attempt` are empty where they do not apply."""

    role: str
    phase: str
    attempt: str
    run_id: str
    token_id: str


def issue(role: str, run_id: str, *, phase: str = "", attempt: str = "") -> str:
    """Return a token for a role, bound to a run, and to a phase and an attempt if given."""
    body = f"{_PREFIX}:{role}:{phase}:{attempt}:{run_id}:{os.urandom(6).hex()}"
    return f"{body}:{mac(_DOMAIN, body.encode())[:32]}"


def read_token(token: str) -> Claim:
    """Return what a token claims.

    Raises:
        Refused: it is malformed, or this account did not issue it.
    """
    body, _, seal = token.strip().rpartition(":")
    parts = body.split(":")
    if len(parts) != 6 or parts[0] != _PREFIX:
        raise Refused("the token is malformed", remedy=_ASK)
    if not hmac.compare_digest(seal.encode(), mac(_DOMAIN, body.encode())[:32].encode()):
        raise Refused("the token was not issued by this account", remedy=_ASK)
    return Claim(role=parts[1], phase=parts[2], attempt=parts[3], run_id=parts[4], token_id=parts[5])


def attempt_named(text: str, state: State) -> str:
    """Return the attempt id that a caller gave, as it is or as the dispatch token that is bound to it.

    Raises:
        Refused: the token is of another run, or of a dispatch without an attempt.
    """
    if not text.startswith(f"{_PREFIX}:"):
        return text
    claim = read_token(text)
    if claim.run_id != state["run_id"] or not claim.attempt:
        raise Refused("the token is bound to no attempt of this run", remedy="name the attempt, such as M1.3")
    return claim.attempt


def identify(state: State | None, action: str, *, token: str | None, declared: str | None, person: bool) -> str:
    """Return who acts: `orchestrator`, `owner` or `person`.

    Args:
        state: the state; None before `init`.
        action: for the message.
        declared: the role that the caller says it has (`--as`); it can only take rights away.
        person: an owner has confirmed the action at a terminal.

    Raises:
        Refused: a role that may not move the state, a token of another run, none where one is needed, or an
            agent that says it is a person.
    """
    if declared is not None and not _may_move(declared):
        raise Refused(f"{declared} may not call {action}", remedy="only the orchestrator moves the state")
    if person:
        sign = no_person()
        if sign:
            raise Refused(f"{action} is for a person, and this runs under an agent ({sign})", remedy=_BY_HAND)
        return PERSON
    if token:
        claim = read_token(token)
        if not _may_move(claim.role):
            raise Refused(f"{claim.role} may not call {action}", remedy="only the orchestrator moves the state")
        if state is not None and claim.run_id != state["run_id"]:
            raise Refused("the token belongs to another operator or an earlier run", remedy=_ASK)
        return ORCHESTRATOR
    if state is not None and state["token_required"]:
        raise Refused(f"{action} needs the orchestrator's token", remedy=_ASK)
    sign = agent_in_shell() if state is not None else None  # `init` gives an agent a token: `token_needed`
    if sign:
        raise Refused(f"{action} by an agent ({sign}) needs the orchestrator's token", remedy=_BEGUN_WITHOUT)
    return ORCHESTRATOR if declared else OWNER


def token_needed(action: str, asked: bool) -> bool:
    """Say whether a run that begins with this action asks for a token: where it is demanded, and under an agent."""
    return asked or (action == "init" and agent_in_shell() is not None)


def _may_move(role: str) -> bool:
    if role == Role.ORCHESTRATOR:  # saves reading the table in the usual case
        return True
    from pypto_op_lint.guard.roles import load_roles

    return load_roles().may_move_state(role)

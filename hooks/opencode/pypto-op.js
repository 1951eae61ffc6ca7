// The hooks of pypto-op for OpenCode. Plain JavaScript: OpenCode loads it as it is, nothing is built or installed.
//
// It translates OpenCode's events into the ones of hooks/hook.sh, which answers for every harness, and the answers
// back: a refusal becomes an error that the model reads, a remark is appended to the tool's output.
// `pypto-op install` copies it into `.opencode/plugins/`, and the programs that find the bundle into `.opencode/pypto-op/`;
// there it also offers the MCP server and the command, so that no configuration of the user's is touched. A link to this
// file serves as well. Where the hooks cannot run, what names an operator is refused and says why.

import { spawn } from "node:child_process"
import { existsSync, realpathSync } from "node:fs"
import path from "node:path"
import { fileURLToPath } from "node:url"

const TOOLS = {
  write: "Write",
  edit: "Edit",
  multiedit: "MultiEdit",
  patch: "apply_patch",
  apply_patch: "apply_patch",
  bash: "Bash",
  read: "Read",
  grep: "Grep",
  glob: "Glob",
}
const READERS = new Set(["Read", "Grep", "Glob"])
// OpenCode's own tools that touch no file. Every other tool belongs to a server or a plugin and is judged by its input.
const HARMLESS = new Set([
  "list", "task", "skill", "question", "todowrite", "todoread", "webfetch", "websearch", "codesearch", "lsp",
  "plan_enter", "plan_exit", "invalid",
])
const SECONDS = 30

const HERE = path.dirname(realpathSync(fileURLToPath(import.meta.url)))
const INSTALLED = path.resolve(HERE, "..", "pypto-op")
const TOOL_MILLISECONDS = 3_600_000 // OpenCode ends a tool after 60 s otherwise; a verdict may need many minutes

/** Returns the folder of the hooks, or null when it is not where it should be. */
function findHooks() {
  const root = process.env.PYPTO_OP_ROOT
  const folders = [path.join(INSTALLED, "hooks"), root && path.join(root, "hooks"), path.resolve(HERE, "..")]
  return folders.filter(Boolean).find((folder) => existsSync(path.join(folder, "hook.sh"))) ?? null
}

/** Says whether a call may touch an operator; asked only where the hooks, which know it for certain, cannot run. */
function mayTouch(args, agent) {
  const text = JSON.stringify(args ?? {})
  return /\bcustom\b|\.orchestrator_|seal\.key/.test(text) || /^(pypto-op|triton-op)-/.test(agent ?? "")
}

/** Runs one hook; resolves to its answer as an object, {} for "go ahead". Rejects when it cannot be run. */
function runHook(hook, kind, event, directory) {
  return new Promise((resolve, reject) => {
    const child = spawn("sh", [hook, kind], {
      cwd: directory,
      env: { ...process.env, CLAUDE_PROJECT_DIR: directory },
      stdio: ["pipe", "pipe", "pipe"],
    })
    let out = ""
    let err = ""
    const timer = setTimeout(() => {
      child.kill("SIGKILL")
      reject(new Error(`no answer within ${SECONDS} s`))
    }, SECONDS * 1000)
    child.stdout.on("data", (chunk) => (out += chunk))
    child.stderr.on("data", (chunk) => (err += chunk))
    child.stdin.on("error", () => {}) // the hook may answer before it has read everything
    child.on("error", (error) => {
      clearTimeout(timer)
      reject(error)
    })
    child.on("close", (code) => {
      clearTimeout(timer)
      if (code !== 0) return reject(new Error(err.trim() || `exit code ${code}`))
      try {
        resolve(out.trim() ? JSON.parse(out) : {})
      } catch {
        reject(new Error(`an answer that is no JSON: ${out.slice(0, 200)}`))
      }
    })
    child.stdin.end(JSON.stringify(event))
  })
}

/** Appends a remark to what the model will read; MCP tools and built-in ones keep it in different places. */
function append(output, text) {
  if (Array.isArray(output.content)) output.content.push({ type: "text", text })
  else output.output = output.output ? `${output.output}\n\n${text}` : text
}

export const PyptoOp = async ({ directory }) => {
  const hooks = findHooks()
  const hook = hooks && path.join(hooks, "hook.sh")
  const gone = `the hooks of pypto-op are not beside the plugin (${INSTALLED}); run \`pypto-op doctor --target '${directory}'\``
  const agents = new Map() // session -> agent name; OpenCode's tool events do not carry it
  const parents = new Map() // session -> parent session
  const began = new Map() // call -> milliseconds

  const rootOf = (session) => {
    let id = session
    for (let depth = 0; parents.has(id) && depth < 16; depth += 1) id = parents.get(id)
    return id
  }

  const eventFor = (name, input, args) => ({
    hook_event_name: name,
    tool_name: TOOLS[input.tool] ?? input.tool,
    tool_input: {
      ...(input.tool in TOOLS ? {} : args),
      file_path: args?.filePath ?? args?.file_path ?? args?.path,
      command: args?.command,
      patchText: args?.patchText,
      action: args?.action,
    },
    cwd: path.resolve(directory, args?.workdir ?? "."),
    session_id: rootOf(input.sessionID),
    agent_type: agents.get(input.sessionID),
    duration_ms: began.has(input.callID) ? Date.now() - began.get(input.callID) : 0,
  })

  const concerns = (tool) => !HARMLESS.has(tool)

  if (hooks?.startsWith(INSTALLED)) {
    process.env.PATH = [process.env.PATH, path.join(INSTALLED, "bin")].filter(Boolean).join(":")
  }

  return {
    config: async (config) => {
      if (!hooks?.startsWith(INSTALLED)) return
      const server = { type: "local", command: ["sh", path.join(hooks, "server.sh")], timeout: TOOL_MILLISECONDS }
      config.mcp = { ...config.mcp, "pypto-op": server }
      const before = typeof config.permission === "string" ? { "*": config.permission } : config.permission
      config.permission = { ...before, "pypto-op_state_transition": "deny" } // the orchestrator's own page allows it
    },

    "chat.message": async (input) => {
      if (input.agent) agents.set(input.sessionID, input.agent)
    },

    event: async ({ event }) => {
      const info = event?.properties?.info
      if (event?.type === "session.created" && info?.id) {
        if (info.parentID) parents.set(info.id, info.parentID)
        if (info.agent) agents.set(info.id, info.agent)
      } else if (event?.type === "session.deleted" && info?.id) {
        agents.delete(info.id)
        parents.delete(info.id)
      }
    },

    "tool.execute.before": async (input, output) => {
      if (!concerns(input.tool)) return
      began.set(input.callID, Date.now())
      let answer
      try {
        if (!hook) throw new Error(gone)
        answer = await runHook(hook, "pre", eventFor("PreToolUse", input, output.args), directory)
      } catch (error) {
        if (!mayTouch(output.args, agents.get(input.sessionID))) return
        throw new Error(`[pypto-op] this call may touch an operator and the guard did not run: ${error.message}`)
      }
      const decision = answer.hookSpecificOutput
      if (decision?.permissionDecision === "deny") throw new Error(decision.permissionDecisionReason)
    },

    "tool.execute.after": async (input, output) => {
      const isTask = input.tool === "task"
      if (!isTask && (!concerns(input.tool) || READERS.has(TOOLS[input.tool]))) return
      const event = eventFor(isTask ? "SubagentStop" : "PostToolUse", input, input.args)
      began.delete(input.callID)
      if (isTask) event.agent_type = input.args?.subagent_type
      let answer
      try {
        if (!hook) throw new Error(gone)
        answer = await runHook(hook, isTask ? "stop" : "post", event, directory)
      } catch (error) {
        if (mayTouch(input.args, event.agent_type)) append(output, `[pypto-op] this call was not checked: ${error.message}. The state gates check again.`)
        return
      }
      const context = answer.hookSpecificOutput?.additionalContext ?? answer.systemMessage
      if (answer.decision !== "block") {
        if (context) append(output, context)
        return
      }
      // A subagent's result must not be lost with the refusal: it is appended there, and an error elsewhere.
      if (isTask) append(output, answer.reason)
      else throw new Error(answer.reason)
    },
  }
}

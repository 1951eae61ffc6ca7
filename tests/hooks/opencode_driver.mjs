// Plays OpenCode: loads the plugin named first, runs the steps of a JSON script from stdin, prints what the model
// would read. A step is {hook, input, output}; an error thrown by the plugin is what OpenCode hands to the model.
import { pathToFileURL } from "node:url"

const [plugin, directory] = process.argv.slice(2)
let text = ""
for await (const chunk of process.stdin) text += chunk
const module = await import(pathToFileURL(plugin).href)
const hooks = await Object.values(module)[0]({ directory, worktree: directory })
const results = []
for (const { hook, input, output } of JSON.parse(text)) {
  try {
    await hooks[hook](input, output)
    results.push({ output: output ?? null })
  } catch (error) {
    results.push({ error: error.message })
  }
}
console.log(JSON.stringify({ exports: Object.keys(module), results }))

/**
 * Runs the examples against a server of their own and holds what they print to what they promise: `npm run examples`.
 *
 * Each has a project of its own. With names, only those. Nothing is left behind.
 */
import { type ChildProcess, spawn } from "node:child_process"
import { chmodSync, mkdtempSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { createInterface } from "node:readline"
import { createClient } from "@tropism/client"

/** What an example prints, line by line; the last may be followed by visiting it. */
interface Promised {
  readonly lines: ReadonlyArray<RegExp>
  readonly visit?: (lastLine: string) => Promise<void>
}

const examples: Readonly<Record<string, Promised>> = {
  "reaction-agent": {
    lines: [
      /^Made greeter\.$/,
      /^created Person by user$/,
      /^created Greeting by agent$/,
      /^Welcome, Ada!$/,
      /^I greeted Ada\.$/
    ]
  },
  "scheduled-digest": {
    lines: [
      /^It will report at 08:00\.$/,
      /^It calls search_objects\.$/,
      /^completed: There are 2 findings\.$/,
      /^- A script that runs on install$/,
      /^- A key without an end$/
    ]
  },
  "chat-app": {
    lines: [/^Open http:\/\/127\.0\.0\.1:\d+$/],
    visit: (line) => chatAt(line.slice("Open ".length))
  }
}

/** Speaks twice with the chat's page, as its script does. */
const chatAt = async (url: string): Promise<void> => {
  const page = await (await fetch(url)).text()
  if (!page.includes("<form>")) throw new Error("the page has no form")
  const first = await fetch(`${url}/say?in=`, { method: "POST", body: "Good morning" })
  hold(/^You said “Good morning”, and that is message 1\.$/, await first.text())
  const conversation = first.headers.get("conversation")
  const second = await fetch(`${url}/say?in=${conversation}`, { method: "POST", body: "And good night" })
  hold(/message 2\.$/, await second.text())
}

const hold = (expected: RegExp, found: string | undefined): void => {
  if (found === undefined || !expected.test(found))
    throw new Error(`${expected} was promised and not "${found}"`)
}

const ended = (child: ChildProcess): Promise<number | null> =>
  child.exitCode !== null || child.signalCode !== null
    ? Promise.resolve(child.exitCode)
    : new Promise((resolve) => child.once("exit", resolve))

const linesOf = (child: ChildProcess): AsyncIterator<string> => {
  if (!child.stdout) throw new Error("a program without output")
  return createInterface({ input: child.stdout })[Symbol.asyncIterator]()
}

const run = async (name: string, promised: Promised, environment: Record<string, string>): Promise<void> => {
  const child = spawn(process.execPath, [join(import.meta.dirname, name, "main.ts")], {
    env: { ...process.env, ...environment, CHAT_PORT: "0" },
    stdio: ["ignore", "pipe", "inherit"]
  })
  try {
    const lines = linesOf(child)
    let last = ""
    for (const expected of promised.lines) {
      const { value } = await lines.next()
      hold(expected, value)
      last = value
      console.log(`  ${last}`)
    }
    if (promised.visit) await promised.visit(last)
    else hold(/^0$/, String(await ended(child)))
  } finally {
    child.kill()
    await ended(child)
  }
}

const wanted = process.argv.slice(2)
const chosen = wanted.length > 0 ? wanted : Object.keys(examples)
const data = mkdtempSync(join(tmpdir(), "tropism-examples-"))
// Anybody may pass through it: else a server of root's would keep its cluster elsewhere, and leave it there.
chmodSync(data, 0o711)
const launcher = join(import.meta.dirname, "..", "packages", "cli", "bin", "tropism.mjs")
const server = spawn("node", [launcher, "start", "--json"], {
  env: { ...process.env, TROPISM_DATA: data, PORT: "0" },
  stdio: ["ignore", "pipe", "inherit"]
})
try {
  const { value } = await linesOf(server).next()
  const { url } = JSON.parse(value ?? "{}")
  const token = readFileSync(join(data, "token"), "utf8").trim()
  const client = createClient({ url, token })
  for (const name of chosen) {
    const promised = examples[name]
    if (!promised) throw new Error(`there is no example "${name}"`)
    console.log(name)
    const project = await client.projects.create({ name })
    await run(name, promised, { TROPISM_URL: url, TROPISM_TOKEN: token, TROPISM_PROJECT: project.id })
  }
  console.log(`${chosen.length} examples did what they promise.`)
} finally {
  server.kill("SIGTERM")
  await ended(server)
  rmSync(data, { recursive: true, force: true })
}

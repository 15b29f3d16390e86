/**
 * AC-001: an agent reaches todos through tools alone, and a chat holds nothing between two requests.
 */
import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, it } from "vitest"
import { findHeld, findStatements, findStrangers, findWaysPastTools, todos } from "./todo-reach.ts"

const root = join(import.meta.dirname, "..")
const machine = "packages/server/src"

const files = readdirSync(join(root, machine), { recursive: true, encoding: "utf8" })
  .map((path) => `${machine}/${path.replaceAll("\\", "/")}`)
  .filter((path) => path.endsWith(".ts"))
  .map((path) => ({ path, text: readFileSync(join(root, path), "utf8") }))

/** The checkout with one more file, or with one that says something else. */
const withFile = (path: string, text: string) => [
  ...files.filter((file) => file.path !== `${machine}/${path}`),
  { path: `${machine}/${path}`, text }
]

const pathsOf = (complaints: ReadonlyArray<{ readonly path: string }>) => complaints.map(({ path }) => path)

describe("S003-A01 AC-001 an agent uses only MCP tools for tasks", () => {
  it("looks at the files that there are", () => {
    const paths = new Set(files.map(({ path }) => path))
    expect(paths.has(todos)).toBe(true)
    for (const folder of ["chat", "runs", "agents", "contexts", "models", "tools"])
      expect([...paths].filter((path) => path.startsWith(`${machine}/${folder}/`)).length).toBeGreaterThan(4)
  })

  it("S003-R03 S003-R42 S003-R43 no import leads from chat, runs, agents, contexts or models to the todos past a tool", () => {
    expect(findWaysPastTools(files)).toEqual([])
    // A way over two files is found, and named.
    const climbing = [
      ...withFile("runs/helping.ts", 'import { Todos } from "../review/todos.ts"'),
      { path: `${machine}/chat/asking.ts`, text: 'import { help } from "../runs/helping.ts"' }
    ]
    expect(pathsOf(findWaysPastTools(climbing))).toEqual(
      expect.arrayContaining([`${machine}/runs/helping.ts`, `${machine}/chat/asking.ts`])
    )
    expect(JSON.stringify(findWaysPastTools(climbing))).toContain(
      "chat/asking.ts → runs/helping.ts → review/todos.ts"
    )
  })

  it("S003-R04 S003-R49 only the tools and the door of people name the use cases of todos", () => {
    expect(findStrangers(files)).toEqual([])
    const stranger = withFile("reactions/stranger.ts", 'import type { Todo } from "../review/todos.ts"')
    expect(pathsOf(findStrangers(stranger))).toEqual([`${machine}/reactions/stranger.ts`])
  })

  it("S003-R06 the engine of all agents is our own: no package brings another framework, and a record says why", () => {
    const brought = readdirSync(join(root, "packages")).flatMap((name) =>
      Object.keys(
        JSON.parse(readFileSync(join(root, "packages", name, "package.json"), "utf8")).dependencies ?? {}
      )
    )
    expect(brought).toContain("effect")
    expect(brought.filter((name) => /^@openai\/agents|^@langchain\/|^@mastra\//.test(name))).toEqual([])
    const record = readFileSync(
      join(root, "docs/decisions/0002-where-the-specifications-disagree.md"),
      "utf8"
    )
    expect(record).toMatch(/OpenAI Agents SDK.*S003-R06.*engine of our own/)
  })

  it("S003-R41 no statement of chat, runs, agents, contexts or models names the table of tasks", () => {
    expect(findStatements(files)).toEqual([])
    const asking = withFile("models/reading.ts", "export const read = sql`select title from kb.tasks`")
    expect(pathsOf(findStatements(asking))).toEqual([`${machine}/models/reading.ts`])
  })
})

describe("Stateless execution", () => {
  it("S003-R36 S003-R37 S003-R38 S003-R39 S003-R40 no file of chat holds anything from one request to the next", () => {
    expect(findHeld(files)).toEqual([])
    for (const held of [
      "const histories = new Map<string, string>()",
      "      const agents: Record<string, Agent> = {}",
      "      const preferences = yield* Ref.make(none)",
      "let last = 0",
      "const buffer: Array<string> = []"
    ])
      expect([held, pathsOf(findHeld(withFile("chat/keeping.ts", held)))]).toEqual([
        held,
        [`${machine}/chat/keeping.ts`]
      ])
    expect(findHeld(withFile("chat/keeping.ts", "        const parts: Array<TurnPart> = []"))).toEqual([])
  })
})

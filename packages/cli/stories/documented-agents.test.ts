/**
 * The agents in docs/agents.md and in the README can be applied as they stand, and do what the document says.
 */
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { NodeServices } from "@effect/platform-node"
import { describe, expect, it } from "@effect/vitest"
import { Effect, FileSystem } from "effect"
import { freshDatabase } from "../../server/testing/fresh-database.ts"
import { eventually, type Json, newProject, startServer } from "../../server/testing/platform.ts"
import { endedRuns } from "../../server/testing/story-words.ts"
import { invokeWith } from "../testing/invoke.ts"

const text = readFileSync(new URL("../../../docs/agents.md", import.meta.url), "utf8")
const examples = [...text.matchAll(/^````yaml\n(name: (.*)\n[\s\S]*?)^````$/gm)].map(
  ([, yaml = "", name = ""]) => ({ yaml, name })
)
/** The line that the document makes a ticket of. */
const ticketLine = /echo '(\{"type":"Ticket".*\})'/.exec(text)?.[1] ?? ""
const answerInput = /run answer --input '(.*)'/.exec(text)?.[1] ?? ""

const readme = readFileSync(new URL("../../../README.md", import.meta.url), "utf8")

describe("The README", () => {
  it.live("its newcomer names what was added, and answers who talks to it", () =>
    Effect.gen(function* () {
      const files = yield* FileSystem.FileSystem
      const file = join(yield* files.makeTempDirectoryScoped(), "newcomer.yaml")
      yield* files.writeFileString(file, /^```yaml\n(name: newcomer\n[\s\S]*?)^```$/m.exec(readme)?.[1] ?? "")
      const access = yield* freshDatabase
      const story = yield* newProject(yield* startServer(access), access)
      const tropism = (...args: ReadonlyArray<string>) =>
        invokeWith({ TROPISM_TOKEN: story.token }, ...args, "--url", story.url)
      expect((yield* tropism("agents", "apply", "-f", file)).exitCode).toBe(0)
      const agents: ReadonlyArray<Json> = (yield* story.get("/agents")).items
      const agent = agents.find(({ name }) => name === "newcomer")
      yield* story.post("/objects", { type: "Package", properties: { name: "vite", dev: true } })
      expect((yield* endedRuns(story, agent, 1))[0]).toMatchObject({
        summary: "vite was added for development."
      })
      const { error, out } = yield* tropism("chat", "--agent", "newcomer", "-m", "Hello")
      expect([error.startsWith("error"), out.join("\n")]).toEqual([
        false,
        expect.stringContaining("I tell of packages when they are added. You said: Hello")
      ])
    }).pipe(Effect.provide(NodeServices.layer))
  )
})

describe("docs/agents.md", () => {
  it.live("its agents triage a ticket, build on each other, answer and count", () =>
    Effect.gen(function* () {
      const files = yield* FileSystem.FileSystem
      const folder = yield* files.makeTempDirectoryScoped()
      for (const { name, yaml } of examples) yield* files.writeFileString(join(folder, `${name}.yaml`), yaml)
      const access = yield* freshDatabase
      const story = yield* newProject(yield* startServer(access), access)
      const tropism = (...args: ReadonlyArray<string>) =>
        invokeWith({ TROPISM_TOKEN: story.token }, ...args, "--url", story.url)
      const applied = yield* tropism("agents", "apply", "-f", folder, "--json")
      expect([applied.error, applied.exitCode]).toEqual(["", 0])
      expect(JSON.parse(applied.out.join("\n")).map((one: Json) => [one.name, one.outcome])).toEqual(
        ["answer", "dispatch", "ticket-digest", "triage"].map((name) => [name, "created"])
      )
      const agents: ReadonlyArray<Json> = (yield* story.get("/agents?limit=200")).items
      const agentOf = (name: string): Json => agents.find((agent) => agent.name === name)

      const file = join(folder, "ticket.jsonl")
      yield* files.writeFileString(file, `${ticketLine}\n`)
      expect((yield* tropism("import", file)).exitCode).toBe(0)
      const [task] = yield* eventually(
        Effect.map(story.get("/tasks?status=pending"), ({ items }): ReadonlyArray<Json> => items),
        (items) => items.length > 0
      )
      expect(task).toMatchObject({
        agentName: "triage",
        payload: { suggestedChanges: { data: { priority: "high" } } }
      })
      expect((yield* tropism("tasks", "approve", String(task.number))).exitCode).toBe(0)

      // The approved change wakes the next agent and not the one that asked for it.
      expect((yield* endedRuns(story, agentOf("dispatch"), 1))[0]).toMatchObject({ summary: "Assigned." })
      expect((yield* story.get("/objects?type=Assignment")).items).toMatchObject([
        { key: "t-1", properties: { ticket: task.target.id } }
      ])
      expect(yield* endedRuns(story, agentOf("triage"), 1)).toHaveLength(1)

      expect((yield* tropism("run", "answer", "--input", answerInput)).out.join("\n")).toContain(
        "Thank you for telling us! We send somebody today."
      )
      expect((yield* tropism("run", "ticket-digest")).out.join("\n")).toContain("Tickets: 1.")
      expect((yield* tropism("agents", "schedule", "ticket-digest")).out.join("\n")).toContain(
        "Europe/Berlin"
      )
    }).pipe(Effect.provide(NodeServices.layer))
  )
})

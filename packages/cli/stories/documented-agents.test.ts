/**
 * The examples in the README and in docs can be applied and imported as they stand, and do what the page says.
 */
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { NodeServices } from "@effect/platform-node"
import { describe, expect, it } from "@effect/vitest"
import { Effect, FileSystem } from "effect"
import { eventually, type Json, newStory } from "../../server/testing/platform.ts"
import { endedRuns } from "../../server/testing/story-words.ts"
import { invokeWith } from "../testing/invoke.ts"

const read = (path: string) => readFileSync(new URL(`../../../${path}`, import.meta.url), "utf8")

/** The complete definitions on a page, by name; blocks that show a part of one do not begin with a name. */
const definitionsOn = (path: string) =>
  [...read(path).matchAll(/^````yaml\n(name: (.*)\n[\s\S]*?)^````$/gm)].map(([, yaml = "", name = ""]) => ({
    yaml,
    name
  }))

const text = read("docs/agents.md")
const examples = definitionsOn("docs/agents.md")
/** The line that the document makes a ticket of. */
const ticketLine = /echo '(\{"type":"Ticket".*\})'/.exec(text)?.[1] ?? ""
const answerInput = /run answer --input '(.*)'/.exec(text)?.[1] ?? ""

/** A project of its own, the command line in it, and a folder for files. */
const newDesk = Effect.gen(function* () {
  const files = yield* FileSystem.FileSystem
  const folder = yield* files.makeTempDirectoryScoped()
  const story = yield* newStory
  const tropism = (...args: ReadonlyArray<string>) =>
    invokeWith({ TROPISM_TOKEN: story.token }, ...args, "--url", story.url)
  const write = (name: string, content: string) =>
    Effect.as(files.writeFileString(join(folder, name), content), join(folder, name))
  const agentOf = (name: string) =>
    Effect.map(story.get("/agents?limit=200"), ({ items }): Json =>
      items.find((agent: Json) => agent.name === name)
    )
  return { agentOf, folder, story, tropism, write }
})

describe("README.md", () => {
  const readme = read("README.md")
  const [triage = { name: "", yaml: "" }] = definitionsOn("README.md")

  it.live("its agent can be applied as it stands, and with a model suggests a ticket's priority", () =>
    Effect.gen(function* () {
      const { story, tropism, write } = yield* newDesk
      const applied = yield* tropism("agents", "apply", "-f", yield* write("triage.yaml", triage.yaml))
      expect([applied.error, applied.exitCode]).toEqual(["", 0])

      // The page leaves the model to the server; the script of docs/agents.md stands for it.
      const model = /^model:\n[\s\S]*/m.exec(examples.find(({ name }) => name === "triage")?.yaml ?? "")?.[0]
      yield* tropism("agents", "apply", "-f", yield* write("triage.yaml", `${triage.yaml}${model}`))
      const line = /echo '(\{"type":"Ticket".*\})'/.exec(readme)?.[1] ?? ""
      expect((yield* tropism("import", yield* write("tickets.jsonl", `${line}\n`))).exitCode).toBe(0)
      const [task] = yield* eventually(
        Effect.map(story.get("/tasks?status=pending"), ({ items }): ReadonlyArray<Json> => items),
        (items) => items.length > 0
      )
      expect(task).toMatchObject({
        agentName: "triage",
        payload: { suggestedChanges: { data: { priority: "high" } } }
      })
      expect((yield* tropism("tasks", "approve", String(task.number))).exitCode).toBe(0)
      expect((yield* story.get("/objects?type=Ticket")).items).toMatchObject([
        { key: "t-1", properties: { priority: "high" } }
      ])
    }).pipe(Effect.provide(NodeServices.layer))
  )
})

describe("docs/quickstart.md", () => {
  it.live("its newcomer names the added package, and answers a message", () =>
    Effect.gen(function* () {
      const { agentOf, story, tropism, write } = yield* newDesk
      const [newcomer] = definitionsOn("docs/quickstart.md")
      const file = yield* write("newcomer.yaml", newcomer?.yaml ?? "")
      expect((yield* tropism("agents", "apply", "-f", file)).exitCode).toBe(0)
      yield* story.post("/objects", { type: "Package", properties: { name: "vite", dev: true } })
      expect((yield* endedRuns(story, yield* agentOf("newcomer"), 1))[0]).toMatchObject({
        summary: "vite was added for development."
      })
      const { error, out } = yield* tropism("chat", "--agent", "newcomer", "-m", "Hello")
      expect([error.startsWith("error"), out.join("\n")]).toEqual([
        false,
        expect.stringContaining("I report new packages. You said: Hello")
      ])
    }).pipe(Effect.provide(NodeServices.layer))
  )
})

describe("docs/reactions.md", () => {
  it.live("its agents react to a raised priority alone, and follow their clock", () =>
    Effect.gen(function* () {
      const { agentOf, folder, story, tropism, write } = yield* newDesk
      for (const { name, yaml } of definitionsOn("docs/reactions.md")) yield* write(`${name}.yaml`, yaml)
      const applied = yield* tropism("agents", "apply", "-f", folder)
      expect([applied.error, applied.exitCode]).toEqual(["", 0])
      const ticket = yield* story.post("/objects", { type: "Ticket", properties: { priority: "low" } })
      yield* story.send("PATCH", `/api/projects/${story.projectId}/objects/${ticket.id}`, {
        properties: { text: "Nothing urgent" }
      })
      yield* story.send("PATCH", `/api/projects/${story.projectId}/objects/${ticket.id}`, {
        properties: { priority: "high" }
      })
      const runs = yield* endedRuns(story, yield* agentOf("escalate"), 1)
      expect(runs).toMatchObject([
        { summary: "Call the team on duty.", trigger: { events: [{ version: 3 }] } }
      ])
      expect((yield* tropism("agents", "schedule", "morning-report")).out.join("\n")).toContain("08:00")
    }).pipe(Effect.provide(NodeServices.layer))
  )
})

describe("docs/webhooks.md", () => {
  it.live("its agent ships the order of a call", () =>
    Effect.gen(function* () {
      const { tropism, write } = yield* newDesk
      const [shipOrder] = definitionsOn("docs/webhooks.md")
      const file = yield* write("ship-order.yaml", shipOrder?.yaml ?? "")
      expect((yield* tropism("agents", "apply", "-f", file)).exitCode).toBe(0)
      const body = /^body='(.*)' id=/m.exec(read("docs/webhooks.md"))?.[1] ?? ""
      expect((yield* tropism("run", "ship-order", "--input", body)).out.join("\n")).toContain(
        "Order 7 is shipped."
      )
    }).pipe(Effect.provide(NodeServices.layer))
  )
})

describe("docs/import-export.md", () => {
  it.live("its files are imported as they stand, and again without a change", () =>
    Effect.gen(function* () {
      const { story, tropism, write } = yield* newDesk
      for (const kind of ["jsonl", "csv"]) {
        const content = new RegExp(`^\`\`\`${kind}\\n([\\s\\S]*?)^\`\`\`$`, "m").exec(
          read("docs/import-export.md")
        )?.[1]
        const file = yield* write(`example.${kind}`, content ?? "")
        for (const _ of ["once", "again"]) expect((yield* tropism("import", file)).exitCode).toBe(0)
      }
      const people: ReadonlyArray<Json> = (yield* story.get("/objects?type=Person")).items
      expect(people.map(({ key, properties, version }) => [key, properties.born, version])).toEqual([
        ["grace", 1906, 1],
        ["ada", 1815, 1]
      ])
      expect((yield* story.get("/relationships?type=ABOUT")).items).toHaveLength(1)
    }).pipe(Effect.provide(NodeServices.layer))
  )
})

describe("docs/agents.md", () => {
  it.live("its agents triage a ticket, build on each other, answer and count", () =>
    Effect.gen(function* () {
      const { agentOf, folder, story, tropism, write } = yield* newDesk
      for (const { name, yaml } of examples) yield* write(`${name}.yaml`, yaml)
      const applied = yield* tropism("agents", "apply", "-f", folder, "--json")
      expect([applied.error, applied.exitCode]).toEqual(["", 0])
      expect(JSON.parse(applied.out.join("\n")).map((one: Json) => [one.name, one.outcome])).toEqual(
        ["answer", "dispatch", "ticket-digest", "triage"].map((name) => [name, "created"])
      )

      expect((yield* tropism("import", yield* write("ticket.jsonl", `${ticketLine}\n`))).exitCode).toBe(0)
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
      expect((yield* endedRuns(story, yield* agentOf("dispatch"), 1))[0]).toMatchObject({
        summary: "Assigned."
      })
      expect((yield* story.get("/objects?type=Assignment")).items).toMatchObject([
        { key: "t-1", properties: { ticket: task.target.id } }
      ])
      expect(yield* endedRuns(story, yield* agentOf("triage"), 1)).toHaveLength(1)

      expect((yield* tropism("run", "answer", "--input", answerInput)).out.join("\n")).toContain(
        "Thank you for telling us! We send someone today."
      )
      expect((yield* tropism("run", "ticket-digest")).out.join("\n")).toContain("Tickets: 1.")
      expect((yield* tropism("agents", "schedule", "ticket-digest")).out.join("\n")).toContain(
        "Europe/Berlin"
      )
    }).pipe(Effect.provide(NodeServices.layer))
  )
})

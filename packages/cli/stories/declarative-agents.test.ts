/**
 * Agents in files, by the command line and on a real server: applied, compared, exported and applied again.
 */
import { NodeServices } from "@effect/platform-node"
import { describe, expect, it } from "@effect/vitest"
import { Effect, FileSystem, Path } from "effect"
import { freshDatabase } from "../../server/testing/fresh-database.ts"
import { newProject, startServer, type Story } from "../../server/testing/platform.ts"
import { watcher } from "../../server/testing/story-words.ts"
import { invokeWith } from "../testing/invoke.ts"

/** A server with a project without any agent, a folder, and the command line that speaks to the one of the other. */
const scene = Effect.gen(function* () {
  const access = yield* freshDatabase
  const story = yield* newProject(yield* startServer(access), access)
  const { items } = yield* story.get("/agents")
  for (const { id } of items) yield* story.delete(`/agents/${id}`)
  const files = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const folder = yield* files.makeTempDirectoryScoped()
  return {
    story,
    folder,
    write: (name: string, text: string) => files.writeFileString(path.join(folder, name), text),
    read: (name: string) => files.readFileString(path.join(folder, name)),
    list: files.readDirectory(folder),
    tropism: (...args: ReadonlyArray<string>) =>
      invokeWith({ TROPISM_TOKEN: story.token }, ...args, "--url", story.url)
  }
})

const agentsOf = (story: Story) =>
  Effect.map(story.get("/agents?limit=200"), ({ items }) =>
    items.map(({ updatedAt: _updated, nextFireAt: _next, ...agent }: Record<string, unknown>) => agent)
  )

const guard = `name: guard
triggerType: reaction
reactionConfig: { objectTypes: [Person], events: [created] }
prompt: |
  Look at the person.
  Say what you see.
`

const digest =
  "name: digest\ntriggerType: schedule\ncronSchedule: 30 2 * * *\ntimezone: Asia/Kolkata\nprompt: Sum up.\n"

/** Agents whose definitions are hard to write down. */
const awkward = [
  watcher({
    name: "texts",
    prompt: "  two spaces\n\ttab \n\n\ntrailing\n\n",
    systemPrompt: "no: 'yaml' # here\r\n- at all"
  }),
  watcher({ name: "words", prompt: "yes", role: "null", systemPrompt: "---\n...\n\u2028\u00e9 🦊" }),
  watcher({
    name: "123",
    prompt: "1e3",
    triggerType: "manual",
    reactionConfig: null,
    model: null,
    enabled: false
  }),
  watcher({
    name: "full",
    reactionConfig: {
      objectTypes: [],
      events: ["created", "deleted"],
      where: { changedProperties: ["a b", "~/"] },
      concurrencyStrategy: "queue",
      ignoreAgentTriggered: true,
      debounceMs: 500,
      batchSize: 3,
      rateLimit: { maxRuns: 5, perSeconds: 60 }
    },
    capabilities: { canDeleteObjects: false, allowedObjectTypes: [] },
    executionMode: "hybrid",
    hybridPolicy: { confidenceThreshold: 0.5 },
    maxSteps: 7,
    retryPolicy: { maxAttempts: 3, backoffMs: 100 }
  }),
  watcher({
    name: "clock",
    triggerType: "schedule",
    cronSchedule: "*/5 * * * *",
    catchUp: "all",
    reactionConfig: null
  })
]

describe("Requirement: tropism agents apply", () => {
  it.live(
    "a dry run says field by field what would change; applying does it, and applying again nothing",
    () =>
      Effect.gen(function* () {
        const { folder, story, tropism, write } = yield* scene
        yield* write("guard.yaml", guard)
        yield* write("digest.yml", digest)
        const dry = yield* tropism("agents", "apply", "-f", folder, "--dry-run")
        expect(dry.exitCode).toBe(0)
        expect(dry.out.join("\n")).toMatch(/digest +1 +created[\s\S]*guard +1 +created/)
        expect(yield* agentsOf(story)).toEqual([])

        yield* tropism("agents", "apply", "-f", folder)
        const applied = yield* agentsOf(story)
        expect(applied).toHaveLength(2)
        const again = yield* tropism("agents", "apply", "-f", folder)
        expect(again.out.join("\n")).toMatch(/digest +1 +unchanged[\s\S]*guard +1 +unchanged/)
        expect(yield* agentsOf(story)).toEqual(applied)

        yield* write("guard.yaml", `${guard.replace("Say what", "Tell what")}maxSteps: 4\n`)
        const changed = (yield* tropism("agents", "apply", "-f", folder, "--dry-run")).out
        expect(changed.join("\n")).toMatch(/guard +2 +updated/)
        expect(changed).toContain("    - Say what you see.")
        expect(changed).toContain("    + Tell what you see.")
        expect(changed).toContain("  maxSteps: null → 4")
        expect(changed.join("\n")).not.toContain("Look at the person.")
        expect(yield* agentsOf(story)).toEqual(applied)
      }).pipe(Effect.provide(NodeServices.layer))
  )

  it.live("what the server refuses is told with its file, and nothing is applied", () =>
    Effect.gen(function* () {
      const { folder, story, tropism, write } = yield* scene
      yield* write("a.yaml", guard)
      yield* write("b.yaml", digest.replace("30 2 * * *", "0 0 30 2 *"))
      const { error, exitCode } = yield* tropism("agents", "apply", "-f", folder)
      expect(exitCode).toBe(1)
      expect(error).toContain(`${folder}/b.yaml: cronSchedule: "0 0 30 2 *" `)
      expect(yield* agentsOf(story)).toEqual([])
    }).pipe(Effect.provide(NodeServices.layer))
  )

  it.live("S000-R02 S002-R02 warnings about what is applied are told by agent and place, and in JSON", () =>
    Effect.gen(function* () {
      const { folder, tropism, write } = yield* scene
      yield* write("a.yaml", `${guard}tools: [shop.lookup]\n---\n${digest}tools: []\n`)
      const { exitCode, out } = yield* tropism("agents", "apply", "-f", folder, "--dry-run")
      expect(exitCode).toBe(0)
      const told = out.filter((line) => /^Warning: (guard|digest): /.test(line))
      expect(told.map((line) => line.match(/^Warning: (\w+): (\w+)/)?.slice(1))).toEqual([
        ["guard", "tools"],
        ["digest", "tools"]
      ])
      const json = yield* tropism("agents", "apply", "-f", folder, "--json")
      const applied: ReadonlyArray<{ warnings: ReadonlyArray<{ code: string }> }> = JSON.parse(
        json.out.join("\n")
      )
      expect(applied.map(({ warnings }) => warnings.map(({ code }) => code))).toEqual([
        ["unknownServer"],
        ["noTools"]
      ])
    }).pipe(Effect.provide(NodeServices.layer))
  )

  it.live("--prune names what it would delete and deletes it when --yes is said", () =>
    Effect.gen(function* () {
      const { folder, story, tropism, write } = yield* scene
      yield* story.post("/agents", watcher({ name: "by-hand" }))
      yield* write("a.yaml", `${guard}---\n${digest}`)
      yield* tropism("agents", "apply", "-f", folder)
      yield* write("a.yaml", guard)
      const asked = yield* tropism("agents", "apply", "-f", folder, "--prune")
      expect(asked).toMatchObject({
        exitCode: 2,
        error: expect.stringMatching(/--prune\b.*\bdigest\b.*--yes\b/)
      })
      expect(yield* agentsOf(story)).toHaveLength(3)
      const pruned = yield* tropism("agents", "apply", "-f", folder, "--prune", "--yes")
      expect(pruned.out.join("\n")).toMatch(/digest +1 +deleted/)
      expect((yield* agentsOf(story)).map(({ name }: { readonly name: string }) => name)).toEqual([
        "guard",
        "by-hand"
      ])
      // Nothing left to delete is nothing to ask about.
      expect((yield* tropism("agents", "apply", "-f", folder, "--prune")).exitCode).toBe(0)
    }).pipe(Effect.provide(NodeServices.layer))
  )
})

describe("Requirement: tropism agents export", () => {
  it.live("writes small files that apply back without a change, whatever the definitions hold", () =>
    Effect.gen(function* () {
      const { folder, list, read, story, tropism, write } = yield* scene
      for (const agent of awkward) yield* story.post("/agents", agent)
      const before = yield* agentsOf(story)
      yield* tropism("agents", "export", "-o", folder)
      expect((yield* list).toSorted()).toEqual([
        "123.yaml",
        "clock.yaml",
        "full.yaml",
        "texts.yaml",
        "words.yaml"
      ])
      const { out } = yield* tropism("agents", "apply", "-f", folder, "--json")
      const applied: ReadonlyArray<{ outcome: string; changes: unknown }> = JSON.parse(out.join("\n"))
      expect(applied.map(({ changes, outcome }) => [outcome, changes])).toEqual(
        awkward.map(() => ["unchanged", []])
      )
      expect(yield* agentsOf(story)).toEqual(before)
      // Defaults are not said.
      expect(yield* read("clock.yaml")).not.toMatch(/timezone|enabled|maxSteps|reactionConfig/)
      const again = yield* tropism("agents", "export", "-o", folder)
      expect(again.out.join("\n")).not.toMatch(/created|updated/)

      // And into another project, through standard output.
      const all = yield* tropism("agents", "export")
      yield* write("all.yaml", `${all.out.join("\n")}\n`)
      const other = yield* story.send("POST", "/api/projects", { name: "Other" })
      const copied = yield* tropism("agents", "apply", "-f", `${folder}/all.yaml`, "--project", other.body.id)
      expect(copied.exitCode).toBe(0)
      const there = yield* story.send("GET", `/api/projects/${other.body.id}/agents`)
      const definitions = (agents: ReadonlyArray<Record<string, unknown>>) =>
        agents
          .map(({ createdAt: _created, id: _id, nextFireAt: _next, updatedAt: _updated, ...rest }) => rest)
          .toSorted((one, two) => (String(one["name"]) < String(two["name"]) ? -1 : 1))
      const copies = there.body.items.filter(
        ({ name }: { readonly name: string }) => name !== "TodoAssistant"
      )
      expect(definitions(copies)).toEqual(definitions(before))
    }).pipe(Effect.provide(NodeServices.layer))
  )

  it.live("exports only the agents that are named, and says when there is none", () =>
    Effect.gen(function* () {
      const { story, tropism } = yield* scene
      expect(yield* tropism("agents", "export")).toMatchObject({ exitCode: 1, out: [] })
      yield* story.post("/agents", watcher({ name: "one" }))
      yield* story.post("/agents", watcher({ name: "two" }))
      const { out } = yield* tropism("agents", "export", "two")
      expect(out.join("\n")).toMatch(/^name: two\n/)
      expect(out.join("\n")).not.toContain("one")
      const missing = yield* tropism("agents", "export", "three")
      expect([missing.exitCode, missing.error]).toEqual([1, expect.stringContaining('"three"')])
    }).pipe(Effect.provide(NodeServices.layer))
  )
})

describe("Requirement: An agent's history and schedule on the command line", () => {
  it.live("versions, diff, restore and the next fires", () =>
    Effect.gen(function* () {
      const { story, tropism } = yield* scene
      const settings = { triggerType: "schedule", cronSchedule: "30 2 * * *", timezone: "Asia/Kolkata" }
      const agent = yield* story.post(
        "/agents",
        watcher({ prompt: "One.", reactionConfig: null, ...settings })
      )
      yield* story.patch(`/agents/${agent.id}`, { prompt: "Two.", maxSteps: 3 })
      const versions = yield* tropism("agents", "versions", "watcher")
      expect(versions.out.join("\n")).toMatch(/2 .*admin +prompt, maxSteps[\s\S]*1 .*admin/)
      const diff = yield* tropism("agents", "diff", "watcher")
      expect(diff.out).toEqual([
        expect.stringMatching(/^watcher: .*\b1 → 2$/),
        '  prompt: "One." → "Two."',
        "  maxSteps: null → 3"
      ])
      const same = ["agents", "diff", "watcher", "--from", "2", "--to", "2"]
      expect((yield* tropism(...same)).out).toEqual([
        expect.stringMatching(/^watcher: .*\b2 → 2$/),
        expect.not.stringContaining("→")
      ])
      expect((yield* tropism("agents", "restore", "watcher", "1")).out.join()).toMatch(/\b3\b/)
      expect(yield* story.get(`/agents/${agent.id}`)).toMatchObject({ prompt: "One.", maxSteps: null })
      expect((yield* tropism("agents", "versions", "watcher")).out.join("\n")).toMatch(
        /^ *3 .*\b1, prompt, maxSteps$/m
      )
      const schedule = yield* tropism("agents", "schedule", "watcher")
      expect(schedule.out.join("\n")).toMatch(/next +\d{4}-\d\d-\d\dT02:30:00\.000\+05:30/)
      expect(schedule.out.filter((line) => line.startsWith("then"))).toHaveLength(4)
    }).pipe(Effect.provide(NodeServices.layer))
  )
})

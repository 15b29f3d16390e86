/**
 * `tropism undo`: what is asked of the server, what is shown of a plan, and what is done with it.
 */
import { describe, expect, it } from "@effect/vitest"
import type { UndoTask } from "@tropism/domain/task"
import type { UndoItem } from "@tropism/domain/undo"
import { Effect } from "effect"
import { AgentId, RunId, TaskId, UserId } from "@tropism/domain/ids"
import { type FakeServer, fakeServer } from "../../testing/fake-server.ts"
import { invoke } from "../../testing/invoke.ts"
import { agent, at, graphEvent, id } from "../../testing/records.ts"

const tidier = agent(1, { name: "tidier" })

const runId = RunId.make(id("run", 1))

const planned = (more: Partial<UndoTask> = {}): UndoTask => ({
  id: TaskId.make(id("task", 1)),
  number: 7,
  type: "undo",
  status: "pending",
  title: "Undo a run of tidier",
  description: null,
  payload: {
    cause: { type: "run", runId },
    requestedBy: UserId.make("ada"),
    counts: { ready: 1, conflicts: 1, unneeded: 0, kept: 0, suggestions: 1 },
    agents: [{ id: AgentId.make(id("agent", 1)), name: "tidier" }]
  },
  digest: "d".repeat(64),
  revision: 1,
  outcome: null,
  resolvedBy: null,
  resolutionNote: null,
  createdAt: at(0),
  resolvedAt: null,
  ...more
})

const item = (more: Partial<UndoItem>): UndoItem => ({
  id: id("object", 1),
  place: 1,
  entityType: "graphObject",
  objectType: "Person",
  key: "ada",
  action: "update",
  status: "ready",
  reason: "Goes back",
  version: 2,
  properties: [{ property: "age", status: "ready", now: 2, back: 1 }],
  leftOut: false,
  ...more
})

const items = [
  item({}),
  item({
    id: id("object", 2),
    place: 2,
    key: null,
    status: "conflict",
    action: "delete",
    reason: "It stays",
    properties: []
  })
]

/** Lets the server answer these paths of the project with these bodies. */
const answering = (server: FakeServer, answers: Record<string, unknown>) => {
  for (const [path, body] of Object.entries(answers))
    server.state.failing.set(`/api/projects/${id("project", 1)}${path}`, { status: 200, body })
}

const serving = Effect.tap(fakeServer({ agents: [tidier] }), (server) =>
  Effect.sync(() =>
    answering(server, {
      [`/runs/${runId}/undo`]: planned(),
      [`/agents/${tidier.id}/undo`]: planned(),
      [`/chains/${id("event", 1)}/undo`]: planned(),
      [`/tasks/${planned().id}/items`]: { items, nextCursor: null },
      [`/tasks/${planned().id}/approve`]: planned({
        status: "completed",
        outcome: { undone: 1, leftOut: 0, expiredSuggestions: 1, reverted: [] }
      })
    })
  )
)

const linesOf = (server: FakeServer) =>
  server.requests.map(({ line }) => line.replace(`/api/projects/${id("project", 1)}`, ""))

describe("tropism undo", () => {
  it.live("shows the plan of a run and does nothing where nobody is there to agree", () =>
    Effect.gen(function* () {
      const server = yield* serving
      const { error, exitCode, out } = yield* invoke(server, "undo", "run", runId)
      expect([exitCode, error]).toEqual([2, expect.stringContaining("--yes")])
      const text = out.join("\n")
      expect(text).toMatch(/\b7: Undo a run of tidier: \D*\b1 \D*\b1 \D*\b1 \D*$/m)
      expect(text).toContain("age: 2 → 1")
      expect(text).toContain("conflict")
      const json = yield* invoke(server, "undo", "run", runId, "--json")
      expect([json.exitCode, JSON.parse(json.out.join("\n")).task.number]).toEqual([2, 7])
      expect(out.at(-1)).toContain("tropism tasks approve 7")
      expect(linesOf(server).some((line) => line.includes("/approve"))).toBe(false)
    }).pipe(Effect.scoped)
  )

  it.live("undoes what it shows with --yes, and names what was shown", () =>
    Effect.gen(function* () {
      const server = yield* serving
      const { out } = yield* invoke(server, "undo", "run", runId, "--yes")
      expect(out.at(-1)).toMatch(/\b7\b.*\bcompleted\b/)
      expect(server.requests.at(-1)?.body).toBe(JSON.stringify({ digest: planned().digest }))
    }).pipe(Effect.scoped)
  )

  it.live("takes an agent by its name with a version, and a chain by its beginning", () =>
    Effect.gen(function* () {
      const server = yield* serving
      yield* invoke(server, "undo", "agent", tidier.name, "3")
      const asked = server.requests.find(({ line }) => line.endsWith("/undo"))
      expect(asked).toMatchObject({ body: JSON.stringify({ version: 3 }) })
      yield* invoke(server, "undo", "chain", id("event", 1))
      expect(linesOf(server)).toContain(`POST /chains/${id("event", 1)}/undo`)
    }).pipe(Effect.scoped)
  )

  it.live("finds a chain by the place of any of its events in the feed", () =>
    Effect.gen(function* () {
      for (const place of ["1", "2"]) {
        const server = yield* serving
        server.state.events.push(graphEvent(1), graphEvent(2, { rootEventId: id("event", 1), depth: 1 }))
        yield* invoke(server, "undo", "chain", place)
        expect(linesOf(server)).toContain(`POST /chains/${id("event", 1)}/undo`)
      }
      const { error, exitCode } = yield* invoke(yield* serving, "undo", "chain", "7")
      expect([exitCode, error]).toEqual([1, expect.stringMatching(/\b7\b/)])
    }).pipe(Effect.scoped)
  )

  it.live("answers programs with one document", () =>
    Effect.gen(function* () {
      const server = yield* serving
      const { out } = yield* invoke(server, "undo", "run", runId, "--json")
      expect(JSON.parse(out.join("\n"))).toEqual({ task: planned(), items })
      expect(linesOf(server).some((line) => line.includes("/approve"))).toBe(false)
    }).pipe(Effect.scoped)
  )

  it.live("says why nothing is planned, and refuses a wrong invocation", () =>
    Effect.gen(function* () {
      const server = yield* serving
      server.state.failing.set(`/api/projects/${id("project", 1)}/runs/${runId}/undo`, {
        status: 409,
        body: {
          type: "/problems/conflict",
          status: 409,
          title: "…",
          detail: "Nothing there",
          reason: "state"
        }
      })
      const { error, exitCode } = yield* invoke(server, "undo", "run", runId)
      expect([exitCode, error]).toEqual([1, expect.stringContaining("Nothing there")])
      for (const args of [["run", "x"], ["agent", "tidier"], ["agent", "tidier", "0"], ["chain"]])
        expect((yield* invoke(server, "undo", ...args)).exitCode).toBe(2)
    }).pipe(Effect.scoped)
  )
})

/**
 * `tropism tasks`: for whom a task waits and until when, and what is said of an undo and of a promotion that are decided.
 */
import { describe, expect, it } from "@effect/vitest"
import { AgentId, PromotionId, RunId, UserId } from "@tropism/domain/ids"
import type { PromotionTask, Task, UndoTask } from "@tropism/domain/task"
import { Clock, Effect } from "effect"
import { type FakeServer, fakeServer } from "../../testing/fake-server.ts"
import { invoke } from "../../testing/invoke.ts"
import { agent, at, id, question, task, todo } from "../../testing/records.ts"

/** Lets the server answer a verb of a task with this. */
const answering = (server: FakeServer, { id: taskId }: Task, verb: string, body: unknown, status = 200) =>
  server.state.failing.set(`/api/projects/${id("project", 1)}/tasks/${taskId}${verb}`, { status, body })

const bodiesOf = (server: FakeServer, method: string) =>
  server.requests.filter(({ line }) => line.startsWith(method)).map(({ body }) => JSON.parse(body))

const ada = UserId.make("ada")

/** So many minutes from now, and some seconds, which pass while the test runs. */
const inMinutes = (minutes: number) =>
  Effect.map(Clock.currentTimeMillis, (now) => new Date(now + minutes * 60_000 + 30_000).toISOString())

describe("tropism tasks --assignee and --agent", () => {
  it.live("list what one person is asked, and what one agent put before people", () =>
    Effect.gen(function* () {
      const tasks = [
        task(3, { assignee: ada }),
        task(2, { agentId: id("agent", 2), agentName: "tidier" }),
        todo(1)
      ]
      const agents = [agent(1, { name: "licence-review" }), agent(2, { name: "tidier" })]
      const server = yield* fakeServer({ agents, tasks })
      const numbers = (...words: ReadonlyArray<string>) =>
        Effect.map(invoke(server, "tasks", "--json", ...words), ({ out }) =>
          JSON.parse(out.join("\n")).map(({ number }: Task) => number)
        )
      expect(yield* numbers("--assignee", "ada")).toEqual([3])
      expect(yield* numbers("--agent", "tidier")).toEqual([2])
      expect(yield* numbers("--agent", id("agent", 1), "--assignee", "ada")).toEqual([3])
      expect((yield* invoke(server, "tasks", "--assignee", "me")).out).toHaveLength(1)
      expect(server.requests.at(-1)?.line).toContain("assignee=me")
      const unknown = yield* invoke(server, "tasks", "--agent", "nobody")
      expect([unknown.exitCode, unknown.error]).toEqual([
        1,
        expect.stringMatching(/"nobody".*\blicence-review, tidier\b/)
      ])
    })
  )
})

describe("tropism tasks assign", () => {
  it.live("asks somebody, or nobody in particular", () =>
    Effect.gen(function* () {
      const [three, four] = [task(3), question(4)]
      const server = yield* fakeServer({ tasks: [four, three] })
      answering(server, three, "", { ...three, assignee: ada })
      expect((yield* invoke(server, "tasks", "assign", "3", "ada")).out).toEqual([
        expect.stringMatching(/^3: .*\bada\b/)
      ])
      answering(server, four, "", four)
      expect((yield* invoke(server, "tasks", "assign", "4", "--nobody")).out).toEqual([
        expect.stringMatching(/^4: (?!.*\bada\b)/)
      ])
      expect(bodiesOf(server, "PATCH")).toEqual([{ assignee: "ada" }, { assignee: null }])
    })
  )

  it.live("asks the server nothing where it is not said who, or said twice", () =>
    Effect.gen(function* () {
      const server = yield* fakeServer({ tasks: [task(3)] })
      for (const words of [[], ["ada", "--nobody"]]) {
        const { error, exitCode } = yield* invoke(server, "tasks", "assign", "3", ...words)
        expect([exitCode, error]).toEqual([2, expect.stringContaining("--nobody")])
      }
      expect(bodiesOf(server, "PATCH")).toEqual([])
    })
  )

  it.live("says why a task is for nobody else", () =>
    Effect.gen(function* () {
      const server = yield* fakeServer({ tasks: [todo(1)] })
      const [title, detail] = ["Not now", "Task 1 stays where it is"]
      answering(
        server,
        todo(1),
        "",
        { type: "/problems/conflict", status: 409, title, detail, reason: "state" },
        409
      )
      const { error, exitCode } = yield* invoke(server, "tasks", "assign", "t1", "ada")
      expect([exitCode, error]).toEqual([1, expect.stringContaining(detail)])
    })
  )
})

describe("a suggestion that expires", () => {
  it.live("says until when it waits, and the list marks what does not wait much longer", () =>
    Effect.gen(function* () {
      const [soon, late, over] = yield* Effect.all([inMinutes(180), inMinutes(3 * 1_440), inMinutes(1)])
      const server = yield* fakeServer({
        tasks: [
          task(4),
          task(3, { expiresAt: soon, assignee: ada }),
          task(2, { expiresAt: late }),
          task(1, { expiresAt: over, status: "expired" })
        ]
      })
      const { out } = yield* invoke(server, "tasks", "--status", "all")
      const [from, to] = [out[0]?.indexOf("NOTE"), out[0]?.indexOf("CONFIDENCE")]
      expect(out.slice(1).map((line) => line.slice(from, to).trim())).toEqual([
        "",
        expect.stringMatching(/^3 h .*\bada$/),
        "",
        ""
      ])
      const shown = (number: string) =>
        Effect.map(invoke(server, "tasks", "show", number), ({ out: lines }) =>
          lines.filter((line) => line.startsWith("Expires"))
        )
      expect(yield* shown("3")).toEqual([expect.stringMatching(`^Expires +${soon}, 3 h `)])
      expect(yield* shown("2")).toEqual([expect.stringMatching(`^Expires +${late}, 3 d `)])
      expect(yield* shown("1")).toEqual([expect.stringMatching(`^Expires +${over}$`)])
      expect(yield* shown("4")).toEqual([])
    })
  )
})

describe("tropism tasks rerun", () => {
  it.live("has the agent look again, and names the run; an undo is planned anew", () =>
    Effect.gen(function* () {
      const server = yield* fakeServer({ tasks: [undo, task(3)] })
      answering(server, task(3), "/rerun", { ...task(3), rerun: { runId: id("run", 9), status: "queued" } })
      answering(server, undo, "/rerun", { ...undo, revision: 2, digest: "another" })
      expect((yield* invoke(server, "tasks", "rerun", "3")).out).toEqual([
        expect.stringMatching(`^3: .*${id("run", 9)}`)
      ])
      expect((yield* invoke(server, "tasks", "rerun", "5")).out).toEqual([expect.stringMatching(/^5: /)])
      const { out } = yield* invoke(server, "tasks", "rerun", "5", "--json")
      expect(JSON.parse(out.join("\n"))).toMatchObject({ number: 5, revision: 2 })
      expect(server.requests.filter(({ line }) => line.startsWith("POST"))).toHaveLength(3)
    })
  )

  it.live("says why nobody looks again", () =>
    Effect.gen(function* () {
      const server = yield* fakeServer({ tasks: [task(3)] })
      const [title, detail] = ["Not now", "Look elsewhere"]
      answering(
        server,
        task(3),
        "/rerun",
        { type: "/problems/conflict", status: 409, title, detail, reason: "state" },
        409
      )
      const { error, exitCode } = yield* invoke(server, "tasks", "rerun", "3")
      expect([exitCode, error]).toEqual([1, expect.stringContaining(detail)])
      const unknown = yield* invoke(server, "tasks", "rerun", "77")
      expect([unknown.exitCode, unknown.error]).toEqual([1, expect.stringMatching(/\b77\b.*"tropism tasks/)])
    })
  )
})

describe("tropism tasks approve and reject, of what is no suggestion", () => {
  it.live("says of a promotion that it was seen, and of an undo what it changed", () =>
    Effect.gen(function* () {
      const server = yield* fakeServer({ tasks: [promotion, undo, task(3)] })
      answering(server, promotion, "/approve", { ...promotion, status: "completed" })
      answering(server, undo, "/approve", {
        ...undo,
        status: "completed",
        outcome: { undone: 2, leftOut: 1, expiredSuggestions: 1, reverted: [] }
      })
      const { exitCode, out } = yield* invoke(server, "tasks", "approve", "6", "5", "3")
      expect(exitCode).toBe(0)
      expect(out).toEqual([
        expect.stringMatching(new RegExp(` 6: ${promotion.title}\\b`)),
        expect.stringMatching(new RegExp(` 5: ${undo.title}: \\D*2 \\D*1 \\D*1 \\D*$`)),
        expect.stringMatching(/ 3: Package node_modules\/left\b.*\bupdated\b.*\b3\b/)
      ])
      expect(bodiesOf(server, "POST").map(({ digest }) => digest)).toEqual(["seen", "plan", "digest-3"])
    })
  )

  it.live("says of a promotion that it was taken back, and of an undo that all stays", () =>
    Effect.gen(function* () {
      const server = yield* fakeServer({ tasks: [promotion, undo] })
      answering(server, promotion, "/reject", { ...promotion, status: "rejected" })
      answering(server, undo, "/reject", { ...undo, status: "rejected" })
      expect((yield* invoke(server, "tasks", "reject", "6", "5")).out).toEqual([
        expect.stringMatching(/ 6: .*\btidier\b/),
        expect.stringMatching(new RegExp(` 5: ${undo.title}\\b`))
      ])
      expect(server.requests.filter(({ line }) => line.endsWith("/reject"))).toHaveLength(2)
    })
  )
})

const common = {
  description: null,
  status: "pending",
  resolvedBy: null,
  resolutionNote: null,
  createdAt: at(0),
  resolvedAt: null
} as const

const undo: UndoTask = {
  ...common,
  id: id("task", 5),
  number: 5,
  type: "undo",
  title: "Undo a run of tidier",
  payload: {
    cause: { type: "run", runId: RunId.make(id("run", 1)) },
    requestedBy: ada,
    counts: { ready: 3, conflicts: 0, unneeded: 0, kept: 0, suggestions: 1 },
    agents: [{ id: AgentId.make(id("agent", 2)), name: "tidier" }]
  },
  digest: "plan",
  revision: 1,
  outcome: null
}

const promotion: PromotionTask = {
  ...common,
  id: id("task", 6),
  number: 6,
  type: "promotion",
  title: "Trust tidier with Person",
  payload: {
    promotionId: PromotionId.make(id("run", 7)),
    agentId: id("agent", 2),
    agentVersion: 1,
    operation: "update",
    objectType: "Person",
    reviews: 20,
    rate: 1
  },
  digest: "seen",
  agentId: id("agent", 2),
  agentName: "tidier"
}

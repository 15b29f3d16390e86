/**
 * `tropism tasks` for one's own todos, beside what waits for a decision.
 */
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { fakeServer } from "../../testing/fake-server.ts"
import { invoke } from "../../testing/invoke.ts"
import { id, task, todo } from "../../testing/records.ts"

describe("tropism tasks, of todos", () => {
  it.live("lists them with the others, under a name that only one of them has", () =>
    Effect.gen(function* () {
      const server = yield* fakeServer({ tasks: [todo(3, { title: "Call the licensor" }), task(3)] })
      const { out } = yield* invoke(server, "tasks")
      expect(out[1]).toMatch(/^t3 {2}todo +Call the licensor/)
      expect(out[2]).toMatch(/^ 3 {2}Package node_modules\/left/)
      const shown = yield* invoke(server, "tasks", "show", "t3")
      expect(shown.out[0]).toBe("Task    t3 Call the licensor")
      expect((yield* invoke(server, "tasks", "show", "3")).out[0]).toContain("Update node_modules/left")
    })
  )

  it.live("adds, changes, completes and deletes them", () =>
    Effect.gen(function* () {
      const server = yield* fakeServer({ tasks: [task(1)] })
      const line = (text: string) => expect.stringMatching(`^\\w+ ${text}$`)
      const told = (...args: ReadonlyArray<string>) =>
        Effect.map(invoke(server, "tasks", ...args), ({ exitCode, out }) => [exitCode, ...out])
      expect(yield* told("add", "Buy milk", "--description", "2 litres")).toEqual([0, line("t1: Buy milk")])
      expect(yield* told("add", "Call mom")).toEqual([0, line("t2: Call mom")])
      expect(yield* told("edit", "t1", "--title", "Buy oat milk")).toEqual([0, line("t1: Buy oat milk")])
      expect((yield* invoke(server, "tasks", "show", "t1")).out).toContain("About   2 litres")
      expect(yield* told("complete", "1")).toEqual([0, line("t1: Buy oat milk")])
      expect(yield* told("delete", id("task", 102))).toEqual([0, line("t2: Call mom")])
      expect(server.state.tasks.map(({ status, title }) => [status, title])).toEqual([
        ["completed", "Buy oat milk"],
        ["pending", "Update node_modules/left"]
      ])
      const { out } = yield* invoke(server, "tasks", "add", "Third", "--json")
      expect(JSON.parse(out.join("\n"))).toMatchObject({ type: "todo", number: 2, title: "Third" })
    })
  )

  it.live("sends nothing that would be refused, and mistakes nothing for a todo", () =>
    Effect.gen(function* () {
      const server = yield* fakeServer({ tasks: [task(1), todo(2)] })
      const error = (...args: ReadonlyArray<string>) =>
        Effect.map(invoke(server, "tasks", ...args), (told) => [told.exitCode, told.error])
      expect(yield* error("add", " ")).toEqual([2, expect.stringContaining("title: ")])
      expect(yield* error("add", "x".repeat(201))).toEqual([2, expect.stringMatching(/\btitle: .*\b200\b/)])
      expect((yield* error("edit", "t2"))[0]).toBe(2)
      expect(yield* error("complete", "1")).toEqual([1, expect.stringMatching(/\bt1\b/)])
      expect(yield* error("complete", id("task", 1))).toEqual([1, expect.stringMatching(/\b1\b/)])
      expect(yield* error("approve", "t2")).toEqual([
        1,
        expect.stringContaining('"tropism tasks complete t2"')
      ])
      expect(yield* error("show", "tx")).toEqual([2, expect.stringContaining('"tx"')])
      expect(server.requests.filter(({ line }) => !line.startsWith("GET"))).toEqual([])
    })
  )

  it.live("says of a suggestion what moved under it, who is asked and how often it was said", () =>
    Effect.gen(function* () {
      const moved = task(1, {
        revision: 2,
        refinedAt: task(1).createdAt,
        staleness: {
          state: "outdated",
          currentVersion: 4,
          moved: ["/license", "/author/name"],
          conflicts: ["/license", "/author/name"],
          added: [],
          takenBy: null,
          evidenceChanged: [{ objectId: id("object", 1), type: "Package", version: 1, currentVersion: 4 }]
        }
      })
      const server = yield* fakeServer({ tasks: [moved, task(2)] })
      const { out } = yield* invoke(server, "tasks")
      expect(out[0]).toContain("NOTE")
      expect(out[1]).toContain("outdated, revision 2")
      const shown = (yield* invoke(server, "tasks", "show", "1")).out
      expect(shown.find((line) => line.startsWith("Stale"))).toMatch(/yes: license, author › name changed$/)
      expect(shown.find((line) => line.startsWith("Changed since"))).toMatch(/Package v1 → v4$/)
      expect(shown.find((line) => line.startsWith("Revision"))).toMatch(/ 2, .+ ago$/)
    })
  )
})

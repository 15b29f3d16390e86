/**
 * `tropism tasks`: what is listed, what is asked of the server, and how each decision ends.
 */
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { fakeServer } from "../../testing/fake-server.ts"
import { invoke } from "../../testing/invoke.ts"
import { agent, id, question, run, task } from "../../testing/records.ts"

/** What is said of an approved suggestion: its number, its object and the version that it made. */
const updated = (number: number) =>
  expect.stringMatching(`\\b${number}: Package node_modules/left\\b.*\\bupdated\\b.*\\b3\\b`)

describe("tropism tasks", () => {
  const tasks = [
    task(3),
    task(2, { status: "completed" }),
    task(1, {
      payload: {
        ...task(1).payload,
        suggestedChanges: { type: "update", objectId: id("object", 1), data: { version: "2.0.0", old: null } }
      }
    })
  ]

  it.live("lists what waits, with the change in words", () =>
    Effect.gen(function* () {
      const server = yield* fakeServer({ tasks })
      const { exitCode, out } = yield* invoke(server, "tasks")
      expect(exitCode).toBe(0)
      expect(out).toHaveLength(3)
      expect(out[0]).toMatch(/^NO {2}OBJECT .* AGENT +AGE$/)
      expect(out[1]).toMatch(
        /^ 3 {2}Package node_modules\/left {2}licenseReview: "missing" +90 % {2}licence-review/
      )
      expect(out[2]).toMatch(/ version: "1\.0\.0" → "2\.0\.0", old: \w+ → \w+ /)
    })
  )

  it.live("prints the records themselves with --json", () =>
    Effect.gen(function* () {
      const server = yield* fakeServer({ tasks })
      const { out } = yield* invoke(server, "tasks", "--status", "all", "--json")
      expect(JSON.parse(out.join("\n"))).toEqual(tasks)
    })
  )

  it.live("says so when nothing waits", () =>
    Effect.gen(function* () {
      const server = yield* fakeServer()
      expect((yield* invoke(server, "tasks")).out).toHaveLength(1)
      expect((yield* invoke(server, "tasks", "--json")).out).toEqual(["[]"])
    })
  )

  it.live("says that there are more than it lists", () =>
    Effect.gen(function* () {
      const server = yield* fakeServer({
        tasks: Array.from({ length: 250 }, (_, index) => task(250 - index))
      })
      const { error, out } = yield* invoke(server, "tasks", "--limit", "220")
      expect(out).toHaveLength(221)
      expect(error).toMatch(/\b220\b.*--limit\b/)
    })
  )

  it.live("approves by number what was read, and by id", () =>
    Effect.gen(function* () {
      const server = yield* fakeServer({ tasks })
      const { exitCode, out } = yield* invoke(server, "tasks", "approve", "3", id("task", 1))
      expect(exitCode).toBe(0)
      expect(out).toEqual([updated(3), updated(1)])
      const posts = server.requests.filter(({ line }) => line.startsWith("POST"))
      expect(posts.map(({ body }) => JSON.parse(body))).toEqual([
        { digest: "digest-3" },
        { digest: "digest-1" }
      ])
    })
  )

  it.live("rejects with a reason", () =>
    Effect.gen(function* () {
      const server = yield* fakeServer({ tasks })
      expect((yield* invoke(server, "tasks", "reject", "3", "--reason", "It has one")).out).toEqual([
        expect.stringMatching(/\b3: Package node_modules\/left\b/)
      ])
      expect(server.state.tasks[0]).toMatchObject({ status: "rejected", resolutionNote: "It has one" })
    })
  )

  it.live("says of a suggestion that its agent may not do it any more, in the list and alone", () =>
    Effect.gen(function* () {
      const denial = "The agent's capability canUpdateObjects is false"
      const server = yield* fakeServer({ tasks: [task(4, { denial }), task(3)] })
      const { out: listed } = yield* invoke(server, "tasks")
      expect(listed.map((line) => line.includes("not permitted"))).toEqual([false, true, false])
      expect((yield* invoke(server, "tasks", "show", "4")).out.join("\n")).toContain(denial)
      expect((yield* invoke(server, "tasks", "show", "3")).out.join("\n")).not.toContain("Denied")
    })
  )

  it.live(
    "rejects all of an agent in one go, also of one that is deleted, and says of each task whose agent is",
    () =>
      Effect.gen(function* () {
        const live = agent(1, { name: "live" })
        const deleted = { agentName: "gone", agentId: id("agent", 9), agentState: "deleted" } as const
        const server = yield* fakeServer({
          agents: [live],
          tasks: [task(4, deleted), task(3, deleted), task(2, { agentId: live.id, agentName: live.name })]
        })
        const { out: listed } = yield* invoke(server, "tasks")
        expect(listed[1]).toMatch(/ deleted /)
        expect(listed[3]).not.toMatch(/ deleted /)
        expect((yield* invoke(server, "tasks", "show", "4")).out.join("\n")).toContain("deleted")
        for (const name of ["gone", live.name, id("agent", 9)]) {
          const { exitCode, out } = yield* invoke(
            server,
            "tasks",
            "reject",
            "--all-of",
            name,
            "--reason",
            "No"
          )
          expect([exitCode, out]).toEqual([0, [expect.stringContaining(name)]])
        }
        expect(server.state.tasks.map(({ resolutionNote, status }) => [status, resolutionNote])).toEqual(
          server.state.tasks.map(() => ["rejected", "No"])
        )
        expect((yield* invoke(server, "tasks", "reject", "--all-of", "nobody")).exitCode).toBe(1)
        for (const wrong of [[], ["3", "--all-of", "gone"]])
          expect((yield* invoke(server, "tasks", "reject", ...wrong)).exitCode).toBe(2)
      })
  )

  it.live("lists questions among the tasks, with the answers to choose from", () =>
    Effect.gen(function* () {
      const server = yield* fakeServer({ tasks: [question(4, { options: ["MIT", "ISC"] }), question(3)] })
      const { out } = yield* invoke(server, "tasks")
      expect(out[1]).toMatch(/^ 4 {2}question {2}Which licence is it\? \(MIT \| ISC\) +licence-review/)
      expect((yield* invoke(server, "tasks", "show", "3")).out).toContain("Question  Which licence is it?")
    })
  )

  it.live("answers the question that was named, by number or by id", () =>
    Effect.gen(function* () {
      const server = yield* fakeServer({
        runs: [run(1)],
        tasks: [question(4, { options: ["MIT", "ISC"] }), question(3)]
      })
      expect((yield* invoke(server, "tasks", "answer", "4", "ISC")).out).toEqual([
        expect.stringMatching(/\b4: licence-review\b/)
      ])
      expect((yield* invoke(server, "tasks", "answer", id("task", 3), "two words")).exitCode).toBe(0)
      const posts = server.requests.filter(({ line }) => line.startsWith("POST"))
      expect(posts.map(({ body }) => JSON.parse(body))).toEqual([
        { answer: "ISC", taskId: id("task", 4) },
        { answer: "two words", taskId: id("task", 3) }
      ])
      expect((yield* invoke(server, "tasks", "show", "4")).out).toContain("Answer    ISC")
    })
  )

  it.live("sends no blank answer, and says so", () =>
    Effect.gen(function* () {
      const server = yield* fakeServer({ tasks: [question(4)], runs: [run(1)] })
      const { error, exitCode } = yield* invoke(server, "tasks", "answer", "4", " ")
      expect(error).toMatch(/\banswer: /)
      expect(exitCode).toBe(2)
      expect(server.requests.filter(({ line }) => line.startsWith("POST"))).toEqual([])
    })
  )

  it.live("says why an answer is not taken", () =>
    Effect.gen(function* () {
      const options = ["MIT", "ISC"]
      const server = yield* fakeServer({ runs: [run(1)], tasks: [question(4, { options }), task(3)] })
      const wrong = yield* invoke(server, "tasks", "answer", "4", "GPL", "--json")
      expect([wrong.exitCode, JSON.parse(wrong.error).error.problem.errors]).toEqual([
        1,
        [expect.objectContaining({ pointer: "/answer" })]
      ])
      const noQuestion = yield* invoke(server, "tasks", "answer", "3", "yes")
      expect([noQuestion.exitCode, noQuestion.error]).toEqual([1, expect.stringMatching(/\b3\b/)])
      expect((yield* invoke(server, "tasks", "approve", "4")).exitCode).toBe(1)
      expect(server.state.tasks.map(({ status }) => status)).toEqual(["pending", "pending"])
    })
  )

  it.live("decides what it can and names what it cannot", () =>
    Effect.gen(function* () {
      const server = yield* fakeServer({ tasks })
      const { error, exitCode, out } = yield* invoke(server, "tasks", "approve", "2", "3", "77", "x")
      expect(exitCode).toBe(1)
      expect(out).toEqual([updated(3)])
      expect(error.split("\n")).toEqual([
        expect.stringMatching(/^\w+ 2: /),
        expect.stringMatching(/^\w+ 77: .*"tropism tasks --status all"/),
        expect.stringMatching(/^\w+ x: .*"x".*"tropism tasks"/)
      ])
      const decided = yield* invoke(server, "tasks", "approve", "2", "--json")
      expect(JSON.parse(decided.error).error.problem).toMatchObject({ status: 409, reason: "alreadyDecided" })
      // Where nothing was named that could be a task, it was called wrongly.
      expect((yield* invoke(server, "tasks", "approve", "x", "y")).exitCode).toBe(2)
      expect((yield* invoke(server, "tasks", "reject", "x", "77")).exitCode).toBe(1)
    })
  )

  it.live("shows one task with its reason", () =>
    Effect.gen(function* () {
      const server = yield* fakeServer({ tasks })
      const { out } = yield* invoke(server, "tasks", "show", "3")
      expect(out).toContainEqual(expect.stringMatching(/^Change +licenseReview: "missing"$/))
      expect(out).toContainEqual(expect.stringMatching(/^Reason +left states no licence\.$/))
    })
  )

  it.live("prints nothing that could steer the terminal", () =>
    Effect.gen(function* () {
      const evil = task(1, { agentName: "a\u001B]0;owned\u0007", title: "\u001B[2J" })
      const server = yield* fakeServer({
        tasks: [{ ...evil, payload: { ...evil.payload, reasoning: "\u001B[31m" } }]
      })
      const shown = [
        ...(yield* invoke(server, "tasks")).out,
        ...(yield* invoke(server, "tasks", "show", "1")).out
      ].join("\n")
      // eslint-disable-next-line no-control-regex -- the test is about them
      expect(shown).not.toMatch(/[\u0000-\u0009\u000B-\u001F]/)
    })
  )
})

/**
 * How a run stands as a task, in the words of both revisions.
 */
import { describe, expect, it } from "@effect/vitest"
import type { RunId, TaskId } from "@tropism/domain/ids"
import { PauseReason, type Run, RunStatus } from "@tropism/domain/run"
import { askedBy, handleOf, keyOf, keysOf, listedTaskOf, taskOf, type Terms, taskBounds } from "./run-task.ts"
import { coreTaskOf, isOver, relatedTo, showsForms } from "./tasks.ts"

const id = "01990000-0000-7000-8000-000000000001"
const taskId = "01990000-0000-7000-8000-000000000002" as TaskId
const digest = "a".repeat(64)

const runOf = (status: RunStatus, more: Partial<Run> = {}): Run =>
  ({
    id: id as RunId,
    agentName: "worker",
    status,
    pauseReason: null,
    summary: null,
    errorMessage: null,
    stepCount: 3,
    attempt: 1,
    createdAt: "2026-01-01T00:00:00.000Z",
    startedAt: null,
    completedAt: null,
    ...more
  }) as Run

const anybody: Terms = { canElicit: true, mayWrite: true, declined: new Set() }
const nothing = { questions: [], suggestions: [] }
const waits = {
  questions: [{ id: taskId, payload: { question: "Which?", options: ["a", "b"] } as never }],
  suggestions: [{ id: taskId, digest, agentName: "worker", title: "A note", payload: {} } as never]
}
const question = keyOf({ type: "question", taskId })
const review = keyOf({ type: "review", taskId, digest })

describe("A run as a task", () => {
  it("stands as its row says, whatever that is", () => {
    const standing = (status: RunStatus, terms = anybody) =>
      listedTaskOf(runOf(status), nothing, terms).status
    expect(RunStatus.literals.map((status) => [status, standing(status)])).toEqual([
      ["queued", "working"],
      ["running", "working"],
      ["completed", "completed"],
      ["failed", "completed"],
      ["cancelled", "cancelled"],
      ["paused", "working"],
      ["skipped", "completed"]
    ])
  })

  it("waits for a word after a limit, and is done for whoever shows no forms", () => {
    const standing = (terms: Terms) =>
      Object.fromEntries(
        PauseReason.literals.map((pauseReason) => [
          pauseReason,
          listedTaskOf(runOf("paused", { pauseReason }), waits, terms).status
        ])
      )
    expect(standing(anybody)).toEqual({
      stepLimit: "input_required",
      timeout: "input_required",
      budget: "input_required",
      question: "input_required",
      subAgents: "working",
      killSwitch: "working",
      toolResult: "working"
    })
    expect(standing({ ...anybody, canElicit: false })).toEqual({
      stepLimit: "completed",
      timeout: "completed",
      budget: "completed",
      question: "working",
      subAgents: "working",
      killSwitch: "working",
      toolResult: "working"
    })
  })

  it("asks each only what they may decide and have not declined", () => {
    const asking = runOf("paused", { pauseReason: "question" })
    const done = runOf("completed")
    expect(keysOf(asking, waits, anybody)).toEqual([question])
    expect(keysOf(done, waits, anybody)).toEqual([review])
    expect(keysOf(asking, waits, { ...anybody, mayWrite: false })).toEqual([])
    expect(keysOf(done, waits, { ...anybody, mayWrite: false })).toEqual([])
    expect(keysOf(done, waits, { ...anybody, declined: new Set([review]) })).toEqual([])
    expect(taskOf(done, waits, { ...anybody, declined: new Set([review]) }).status).toBe("completed")
  })

  it("shows forms while it asks, a result when it has ended, and neither in its handle", () => {
    const asking = taskOf(runOf("paused", { pauseReason: "question" }), waits, anybody)
    expect(Object.keys(asking.inputRequests ?? {})).toEqual([question])
    expect(asking).not.toHaveProperty("result")
    const failed = taskOf(runOf("failed", { errorMessage: "x".repeat(5_000) }), nothing, anybody)
    expect(failed.result).toMatchObject({ resultType: "complete", isError: true })
    expect(failed.statusMessage).toHaveLength(taskBounds.messageMaxChars)
    for (const task of [asking, failed]) {
      expect(handleOf(task)).toMatchObject({ taskId: id, status: "working", resultType: "task" })
      expect(Object.keys(handleOf(task))).not.toContain("result")
      expect(Object.keys(handleOf(task))).not.toContain("inputRequests")
    }
  })

  it("names what it asks so that the name says what an answer decides", () => {
    for (const asked of [
      { type: "question", taskId },
      { type: "review", taskId, digest },
      { type: "resume", stop: "3.1" }
    ] as const)
      expect(askedBy(keyOf(asked))).toEqual(asked)
    for (const key of [
      "",
      "question:",
      `question:${taskId}:${digest}`,
      `review:${taskId}`,
      "resume:3",
      "other:1"
    ])
      expect(askedBy(key)).toBeUndefined()
  })
})

describe("A task in the words of 2025-11-25", () => {
  it("has other names, and failed when its run has", () => {
    const task = listedTaskOf(runOf("failed"), nothing, anybody)
    expect(coreTaskOf(task, true)).toMatchObject({ taskId: id, status: "failed", ttl: null })
    expect(coreTaskOf(task, false).status).toBe("completed")
    expect(Object.keys(coreTaskOf(task, true))).not.toContain("ttlMs")
    expect(coreTaskOf({ ...task, status: "cancelled" }, true).status).toBe("cancelled")
    expect(relatedTo(id)).toEqual({ "io.modelcontextprotocol/related-task": { taskId: id } })
    expect(
      (["working", "input_required", "completed", "failed", "cancelled"] as const).filter(isOver)
    ).toEqual(["completed", "failed", "cancelled"])
  })

  it("is asked of clients that show forms, and of none that only opens pages", () => {
    expect([{}, { form: {} }, { form: {}, url: {} }].map(showsForms)).toEqual([true, true, true])
    expect([undefined, null, { url: {} }, "yes"].map(showsForms)).toEqual([false, false, false, false])
  })
})

describe("The bounds of tasks", () => {
  it("let one request answer all that is asked at once, and a stream say it within its size", () => {
    expect(taskBounds.answers).toBeGreaterThanOrEqual(taskBounds.suggestionsAtOnce)
    expect(taskBounds.restPollIntervalMs).toBeGreaterThan(taskBounds.pollIntervalMs)
    expect(taskBounds.sweepIntervalMs).toBeLessThanOrEqual(taskBounds.restPollIntervalMs)
  })
})

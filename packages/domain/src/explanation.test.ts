/**
 * Why an event did or did not wake an agent, from what was recorded and else from the rules.
 */
import { describe, expect, it } from "@effect/vitest"
import { type AgentDefinition, defineAgent } from "./agent.ts"
import { type ExplainedAgent, explainEvent } from "./explanation.ts"
import type { GraphEvent } from "./graph.ts"
import { AgentId, EntryId, GraphEventId, ObjectId, RunId } from "./ids.ts"
import type { ProcessingEntry } from "./processing.ts"

const uuid = (n: number): string => `01990000-0000-7000-8000-${String(n).padStart(12, "0")}`
const at = (minute: number): string => new Date(Date.UTC(2026, 10, 20, 12, minute)).toISOString()

const definition: AgentDefinition = defineAgent({
  name: "watcher",
  prompt: "Look",
  triggerType: "reaction",
  reactionConfig: { objectTypes: ["Person"], events: ["created"] }
})

const agent: ExplainedAgent = {
  id: AgentId.make(uuid(1)),
  createdAt: at(0),
  deletedAt: null,
  definition,
  enabledSince: at(0),
  stopped: null,
  loggedSince: at(0)
}

const event: GraphEvent = {
  id: GraphEventId.make(uuid(2)),
  position: 1,
  entityType: "graphObject",
  objectType: "Person",
  entityId: uuid(3),
  version: 1,
  type: "created",
  changedProperties: [],
  snapshot: {},
  actorType: "user",
  actorId: "ada",
  approvedBy: null,
  runId: null,
  toolCallId: null,
  taskId: null,
  rootEventId: GraphEventId.make(uuid(2)),
  depth: 0,
  refusals: [],
  createdAt: at(10)
}

const entry: ProcessingEntry = {
  id: EntryId.make(uuid(4)),
  agentId: agent.id,
  entityType: "graphObject",
  graphObjectId: ObjectId.make(uuid(3)),
  subject: null,
  objectVersion: 1,
  eventType: "created",
  eventId: event.id,
  attempt: 1,
  status: "pending",
  runId: null,
  reason: null,
  dueAt: null,
  errorMessage: null,
  failureReason: null,
  deadLetteredAt: null,
  startedAt: null,
  completedAt: null,
  createdAt: at(10)
}

const dispatchedAt = at(11)

describe("what was recorded comes first", () => {
  const wokenBy = (more: Partial<ProcessingEntry>, runStatus: "queued" | "failed" | null) =>
    explainEvent(agent, event, dispatchedAt, { entry: { ...entry, ...more }, runStatus, waitMessage: null })
  const runId = RunId.make(uuid(5))

  it("an entry with a run has woken the agent, whatever came of it", () => {
    expect(wokenBy({ runId }, "queued")).toEqual({
      outcome: "woke",
      rule: null,
      reason: expect.stringContaining("queued")
    })
    const failed = { runId, status: "failed", attempt: 2, errorMessage: "No key." } as const
    expect(wokenBy(failed, "failed")).toEqual({
      outcome: "woke",
      rule: null,
      reason: expect.stringMatching(/2.*failed.* No key\.$/)
    })
  })

  it("an entry without a run waits, with its reason", () => {
    const reason = "The object is not quiet yet."
    expect(wokenBy({ reason }, null)).toMatchObject({ outcome: "waiting", reason })
    const due = wokenBy({ reason, dueAt: at(12) }, null).reason
    expect([due.startsWith(reason), due.includes(at(12))]).toEqual([true, true])
  })

  it("a skipped entry says why", () => {
    const reason = "Busy elsewhere."
    expect(wokenBy({ status: "skipped", reason }, null)).toMatchObject({ outcome: "skipped", reason })
  })

  it("a refusal kept with the event holds, whatever the rules would say now", () => {
    const refusals = [{ agentId: agent.id, rule: "chainRuns", reason: "100 of at most 100." }]
    expect(explainEvent(agent, { ...event, refusals }, dispatchedAt, undefined)).toEqual({
      outcome: "refused",
      rule: "chainRuns",
      reason: "100 of at most 100."
    })
  })

  it("an entry that waited until a cap was reached is a refusal", () => {
    const refusals = [{ agentId: agent.id, rule: "chainRuns", reason: "2 of at most 2." }]
    const handling = {
      entry: { ...entry, status: "skipped", reason: "2 of at most 2." },
      runStatus: null,
      waitMessage: null
    } as const
    expect(explainEvent(agent, { ...event, refusals }, dispatchedAt, handling)).toMatchObject({
      outcome: "refused",
      rule: "chainRuns"
    })
  })

  it("an event that is not dispatched waits", () => {
    expect(explainEvent(agent, event, null, undefined).outcome).toBe("waiting")
  })
})

describe("what nobody recorded is judged as it was", () => {
  const silent = (more: Partial<ExplainedAgent>, what: Partial<GraphEvent> = {}) =>
    explainEvent({ ...agent, ...more }, { ...event, ...what }, dispatchedAt, undefined)

  it.each([
    ["deleted", { deletedAt: at(11) }, {}],
    ["madeLater", { definition: null }, {}],
    ["madeLater", { createdAt: at(11) }, {}],
    ["triggerType", { definition: { ...definition, triggerType: "manual" } }, {}],
    ["relationshipType", {}, { entityType: "relationship" }],
    ["objectType", {}, { objectType: "Company" }],
    ["eventType", {}, { type: "deleted" }],
    ["disabled", { stopped: { since: at(9), reason: "It failed 10 times in a row." } }, {}],
    ["disabled", { enabledSince: null }, {}],
    ["enabledLater", { enabledSince: at(11) }, {}],
    ["forgotten", { loggedSince: at(12) }, {}],
    ["changed", {}, {}]
  ] as const)("%s", (rule, more, what) => {
    const said = silent(more, what)
    expect(said).toMatchObject({ outcome: "refused", rule })
    expect(said.reason).toMatch(/^[A-Z].+\.$/)
  })

  it("an agent that was deleted afterwards is judged as if it were there", () => {
    expect(silent({ deletedAt: at(12) }, { objectType: "Company" })).toEqual({
      outcome: "refused",
      rule: "objectType",
      reason: expect.stringMatching(/Company.*Person/)
    })
  })
})

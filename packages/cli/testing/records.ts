/**
 * Records as the server would answer them, each with what a test does not care about filled in.
 */
import type { Agent, AgentInput } from "@tropism/domain/agent"
import { defineAgent } from "@tropism/domain/agent"
import type { GraphEvent } from "@tropism/domain/graph"
import { AgentId, GraphEventId, ObjectId, ProjectId, RunId, TaskId, UserId } from "@tropism/domain/ids"
import type { Run } from "@tropism/domain/run"
import type { QuestionTask, SuggestionTask, Task, TodoTask } from "@tropism/domain/task"

const kinds = {
  project: ProjectId,
  agent: AgentId,
  run: RunId,
  task: TaskId,
  event: GraphEventId,
  object: ObjectId
} as const
type Kind = keyof typeof kinds

/** The n-th id of a kind. */
export const id = <K extends Kind>(kind: K, number: number): (typeof kinds)[K]["Type"] =>
  kinds[kind].make(
    `00000000-0000-7000-800${Object.keys(kinds).indexOf(kind)}-${String(number).padStart(12, "0")}`
  )

/** So many seconds after the beginning of the test's time. */
export const at = (seconds: number): string => new Date(Date.UTC(2026, 10, 20, 12, 0, seconds)).toISOString()

export const agent = (number: number, input: Partial<AgentInput> & { readonly name: string }): Agent => ({
  ...defineAgent({ prompt: "Do it", triggerType: "manual", ...input }),
  id: id("agent", number),
  version: 1,
  disabledReason: null,
  nextFireAt: null,
  warnings: [],
  createdAt: at(0),
  updatedAt: at(0)
})

export const run = (number: number, more: Partial<Run> = {}): Run => ({
  id: id("run", number),
  agentId: id("agent", 1),
  agentName: "licence-review",
  agentVersion: 1,
  status: "completed",
  pauseReason: null,
  waitingFor: null,
  trigger: {
    type: "reaction",
    events: [
      {
        id: id("event", number),
        type: "created",
        objectId: id("object", number),
        objectType: "Package",
        version: 1
      }
    ]
  },
  subject: { objectId: id("object", number), type: "Package", name: null },
  summary: "Nothing to do.",
  isSummaryTruncated: false,
  errorMessage: null,
  failureReason: null,
  finishReason: "stop",
  cancelledBy: null,
  taintedBy: [],
  missingTools: [],
  stepCount: 1,
  attempt: 1,
  usage: { inputTokens: 10, outputTokens: 2 },
  costUsd: 0,
  total: { usage: { inputTokens: 10, outputTokens: 2 }, costUsd: 0 },
  limits: { maxSteps: null, timeoutMs: null, maxTokens: null, maxCostUsd: null },
  parentRunId: null,
  backtestId: null,
  spawnDepth: 0,
  owner: null,
  model: "scripted:licence-review",
  rootEventId: id("event", number),
  depth: 1,
  contextName: `run-${number}`,
  createdAt: at(number),
  startedAt: at(number),
  completedAt: at(number + 1),
  durationMs: 1_000,
  ...more
})

export const task = (number: number, more: Partial<SuggestionTask> = {}): SuggestionTask => ({
  id: id("task", number),
  number,
  type: "object_update_suggestion",
  status: "pending",
  title: "Update node_modules/left",
  description: null,
  payload: {
    agentId: id("agent", 1),
    agentRunId: id("run", 1),
    confidence: 0.9,
    reasoning: "left states no licence.",
    suggestedChanges: { type: "update", objectId: id("object", 1), data: { licenseReview: "missing" } }
  },
  digest: `digest-${number}`,
  agentId: id("agent", 1),
  agentName: "licence-review",
  agentState: "enabled",
  agentVersion: 1,
  revision: 1,
  refinedAt: null,
  expiresAt: null,
  runId: id("run", 1),
  assignee: null,
  baseVersion: 1,
  evidence: [],
  untrusted: [],
  target: {
    id: id("object", 1),
    type: "Package",
    key: "node_modules/left",
    properties: { version: "1.0.0" },
    untrusted: [],
    version: 1,
    actorType: "user",
    actorId: "local",
    createdAt: at(0),
    updatedAt: at(0)
  },
  relationship: null,
  staleness: null,
  denial: null,
  rerun: null,
  resolvedBy: null,
  resolutionNote: null,
  outcome: null,
  createdAt: at(0),
  resolvedAt: null,
  ...more
})

export const todo = (number: number, more: Partial<TodoTask> = {}): TodoTask => ({
  id: id("task", 100 + number),
  number,
  type: "todo",
  owner: UserId.make("ada"),
  status: "pending",
  title: `Todo ${number}`,
  description: null,
  resolvedBy: null,
  resolutionNote: null,
  createdAt: at(0),
  resolvedAt: null,
  ...more
})

/** What becomes of a todo by a request; undefined when it is deleted. */
export const changedTodo = (line: string, task: TodoTask, body: string): TodoTask | undefined => {
  if (line === "DELETE ") return undefined
  if (line !== "PATCH ") return { ...task, status: "completed" }
  const words = Object.entries(JSON.parse(body)).filter(([, value]) => value !== null)
  return { ...task, ...Object.fromEntries(words) }
}

/** Whether a list of tasks that asks for this shows the task. */
export const isWanted = (task: Task, query: URLSearchParams): boolean =>
  (["status", "type", "assignee", "agentId"] as const).every((name) => {
    const wanted = query.get(name)
    return wanted === null || (name in task && (task as Readonly<Record<string, unknown>>)[name] === wanted)
  })

export const question = (number: number, payload: Partial<QuestionTask["payload"]> = {}): QuestionTask => ({
  ...task(number, { title: "Which licence is it?", baseVersion: null, target: null }),
  type: "question",
  payload: { agentId: id("agent", 1), agentRunId: id("run", 1), question: "Which licence is it?", ...payload }
})

export const graphEvent = (position: number, more: Partial<GraphEvent> = {}): GraphEvent => ({
  id: id("event", position),
  position,
  entityType: "graphObject",
  objectType: "Package",
  entityId: id("object", position),
  version: 1,
  type: "created",
  changedProperties: [],
  snapshot: { key: `node_modules/p${position}`, properties: {} },
  actorType: "user",
  actorId: "local",
  approvedBy: null,
  runId: null,
  toolCallId: null,
  taskId: null,
  rootEventId: id("event", position),
  depth: 0,
  refusals: [],
  createdAt: at(position),
  ...more
})

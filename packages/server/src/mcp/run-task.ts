/**
 * Maps a run to a task of the Tasks extension: its status and its input requests.
 *
 * Pure, and computed from rows alone, so every server gives the same answer. **Invariant**: a finished task never changes. A run paused at
 * a limit may resume, so it waits for input like a run with a question, and counts as completed only for a client that cannot be asked. A
 * failed run is a result with an error; `failed` is reserved for protocol faults.
 */
import { includesRole, type Principal } from "@tropism/api/authorization"
import type { RunId, TaskId, ProjectId, UserId } from "@tropism/domain/ids"
import { isResumable, isTerminal, type Run } from "@tropism/domain/run"
import type { QuestionPayload, SuggestionTask } from "@tropism/domain/task"
import { beginningOf } from "@tropism/domain/text-beginning"
import { type Schema, Context, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { orDie, ProjectTransaction } from "../database/database.ts"
import { bounded, smallFirst } from "../tools/arguments.ts"

/** The keys of everything in a run that waits for a person. */
export interface WaitNames {
  readonly questions: ReadonlyArray<{ readonly id: TaskId }>
  readonly suggestions: ReadonlyArray<{ readonly id: TaskId; readonly digest: string }>
}

/** Everything in a run that waits for a person. */
export interface Waits extends WaitNames {
  readonly questions: ReadonlyArray<{ readonly id: TaskId; readonly payload: QuestionPayload }>
  readonly suggestions: ReadonlyArray<SuggestionTask>
}

/** What a client and its person can be asked. */
export interface Terms {
  /** Whether the client can show forms. */
  readonly canElicit: boolean
  readonly mayWrite: boolean
  /** The keys that this person declined; they are not asked again. */
  readonly declined: ReadonlySet<string>
}

/** A form for a person. */
export interface InputRequest {
  readonly method: "elicitation/create"
  readonly params: {
    readonly mode: "form"
    readonly message: string
    readonly requestedSchema: {
      readonly type: "object"
      readonly properties: Readonly<Record<string, object>>
      readonly required: ReadonlyArray<string>
    }
  }
}

/** The subject of an answer, decoded from its key. */
export type Asked =
  | { readonly type: "question"; readonly taskId: TaskId }
  | { readonly type: "review"; readonly taskId: TaskId; readonly digest: string }
  | { readonly type: "resume"; readonly stop: string }

/** A task as in `tasks/get` and notifications. */
export interface DetailedTask {
  readonly taskId: string
  readonly status: "working" | "input_required" | "completed" | "cancelled"
  readonly statusMessage: string
  readonly createdAt: string
  readonly lastUpdatedAt: string
  readonly ttlMs: null
  readonly pollIntervalMs: number
  readonly inputRequests?: Readonly<Record<string, InputRequest>>
  readonly result?: {
    readonly resultType: "complete"
    readonly content: ReadonlyArray<{ readonly type: "text"; readonly text: string }>
    /** The run as `run`, within the size of a tool result. */
    readonly structuredContent: Readonly<Record<string, Schema.Json>>
    readonly isError: boolean
  }
}

/** A task as a list item: without input requests and result. */
export type ListedTask = Omit<DetailedTask, "inputRequests" | "result">

/** A run as a task. */
export const taskOf = (run: Run, waits: Waits, terms: Terms): DetailedTask => {
  const task = listedTaskOf(run, waits, terms)
  return {
    ...task,
    ...(task.status === "input_required" ? { inputRequests: inputRequestsOf(run, waits, terms) } : {}),
    ...(task.status === "completed" ? { result: resultOf(run) } : {})
  }
}

/** The same as a list item. */
export const listedTaskOf = (run: Run, waits: WaitNames, terms: Terms): ListedTask => {
  const status = statusOf(run, keysOf(run, waits, terms).length > 0, terms)
  return {
    taskId: run.id,
    status,
    statusMessage: beginningOf(messageOf(run, status), taskBounds.messageMaxChars),
    createdAt: run.createdAt,
    lastUpdatedAt: run.completedAt ?? run.startedAt ?? run.createdAt,
    ttlMs: null,
    pollIntervalMs: status === "working" ? taskBounds.pollIntervalMs : taskBounds.restPollIntervalMs
  }
}

/** The handle that answers a call: the task without input requests and result. */
export const handleOf = ({ inputRequests: _asked, result: _result, ...task }: DetailedTask) => ({
  ...task,
  // The first poll returns the current status.
  status: "working" as const,
  resultType: "task" as const
})

/** The handle of a run of which only its start is known. */
export const begunHandleOf = (runId: RunId, now: string) =>
  handleOf({
    taskId: runId,
    status: "working",
    statusMessage: "The run has begun.",
    createdAt: now,
    lastUpdatedAt: now,
    ttlMs: null,
    pollIntervalMs: taskBounds.pollIntervalMs
  })

const statusOf = (run: Run, isAsking: boolean, { canElicit }: Terms): DetailedTask["status"] => {
  if (run.status === "cancelled") return "cancelled"
  if (isAsking) return "input_required"
  if (isTerminal(run.status)) return "completed"
  return isStopped(run) && !canElicit ? "completed" : "working"
}

/** Whether the run is paused at a limit and needs a person to resume it. */
const isStopped = ({ pauseReason, status }: Run): boolean =>
  status === "paused" && pauseReason !== null && isResumable(pauseReason)

/** The keys of everything in a run that this client and its person can decide now. */
export const keysOf = (
  run: Run,
  { questions, suggestions }: WaitNames,
  { canElicit, declined, mayWrite }: Terms
): ReadonlyArray<string> => {
  if (!canElicit) return []
  const asked: ReadonlyArray<Asked> = [
    ...(mayWrite && run.pauseReason === "question"
      ? questions.map(({ id }): Asked => ({ type: "question", taskId: id }))
      : []),
    ...(mayWrite && isStopped(run) ? [{ type: "resume", stop: stopOf(run) } as const] : []),
    ...(mayWrite && isTerminal(run.status)
      ? suggestions.map(({ digest, id }): Asked => ({ type: "review", taskId: id, digest }))
      : [])
  ]
  return asked.map(keyOf).filter((key) => !declined.has(key))
}

/** The same as forms. */
const inputRequestsOf = (run: Run, waits: Waits, terms: Terms) => {
  const forms = new Map([
    ...waits.questions.map(
      ({ id, payload }) => [keyOf({ type: "question", taskId: id }), questionForm(payload)] as const
    ),
    ...waits.suggestions.map(
      (task) => [keyOf({ type: "review", taskId: task.id, digest: task.digest }), reviewForm(task)] as const
    ),
    [keyOf({ type: "resume", stop: stopOf(run) }), resumeForm(run)] as const
  ])
  return Object.fromEntries([...forms].filter(([key]) => keysOf(run, waits, terms).includes(key)))
}

/** Identifies one stop of a run; a later stop has another id. */
export const stopOf = ({ attempt, stepCount }: Run): string => `${stepCount}.${attempt}`

/** The key of a request, stable while the same question is open. */
export const keyOf = (asked: Asked): string => {
  switch (asked.type) {
    case "question":
      return `question:${asked.taskId}`
    case "review":
      return `review:${asked.taskId}:${asked.digest}`
    case "resume":
      return `resume:${asked.stop}`
  }
}

/** The subject of a key; undefined for an invalid key. */
export const askedBy = (key: string): Asked | undefined => {
  const { digest, id, stop, type } =
    /^(?<type>question|review|resume):(?:(?<id>[0-9a-f-]{36})(?::(?<digest>[0-9a-f]{64}))?|(?<stop>\d+\.\d+))$/.exec(
      key
    )?.groups ?? {}
  if (type === "resume" && stop !== undefined) return { type, stop }
  if (type === "question" && id !== undefined && digest === undefined) return { type, taskId: id as TaskId }
  return type === "review" && id !== undefined && digest !== undefined
    ? { type, taskId: id as TaskId, digest }
    : undefined
}

const form = (
  message: string,
  properties: Readonly<Record<string, object>>,
  required: ReadonlyArray<string>
): InputRequest => ({
  method: "elicitation/create",
  params: {
    mode: "form",
    message: beginningOf(message, taskBounds.questionMaxChars),
    requestedSchema: { type: "object", properties, required }
  }
})

const questionForm = ({ options, question }: QuestionPayload): InputRequest =>
  form(
    question,
    { answer: { type: "string", title: "Answer", ...(options === undefined ? {} : { enum: [...options] }) } },
    ["answer"]
  )

const resumeForm = (run: Run): InputRequest =>
  form(
    `${messageOf(run, "input_required")} Let it go on, or stop it?`,
    { decision: { type: "string", title: "Decision", enum: ["resume", "stop"] } },
    ["decision"]
  )

const reviewForm = ({ agentName, payload, title }: SuggestionTask): InputRequest =>
  form(
    [
      `${agentName} suggests: ${title}`,
      ...(payload.reasoning === undefined ? [] : [payload.reasoning]),
      JSON.stringify(payload.suggestedChanges, null, 2)
    ].join("\n\n"),
    {
      decision: { type: "string", title: "Decision", enum: ["approve", "reject"] },
      reason: { type: "string", title: "Reason", description: "Why it is rejected; the agent is told" }
    },
    ["decision"]
  )

const messageOf = (run: Run, status: DetailedTask["status"]): string => {
  switch (run.status) {
    case "queued":
      return `${run.agentName} waits for its turn.`
    case "running":
      return `${run.agentName} is at work: ${run.stepCount} ${run.stepCount === 1 ? "step" : "steps"} so far.`
    case "paused":
      return pauses[run.pauseReason ?? "stepLimit"](run)
    case "failed":
      return `${run.agentName} failed: ${run.errorMessage ?? "nobody knows why"}`
    case "cancelled":
      return `${run.agentName} was stopped.`
    case "skipped":
      return `${run.agentName} had nothing to do.`
    case "completed":
      return status === "input_required"
        ? `${run.agentName} is done; what it suggests waits for a decision.`
        : `${run.agentName} is done.`
  }
}

const pauses: Readonly<Record<NonNullable<Run["pauseReason"]>, (run: Run) => string>> = {
  stepLimit: ({ agentName, stepCount }) => `${agentName} has used its ${stepCount} steps and rests.`,
  timeout: ({ agentName }) => `${agentName} has used its time and rests.`,
  budget: ({ agentName }) => `${agentName} has spent its budget and rests.`,
  question: ({ agentName }) => `${agentName} waits for a person's answer.`,
  subAgents: ({ agentName }) => `${agentName} waits for agents to which it handed a task.`,
  killSwitch: ({ agentName }) =>
    `${agentName} was stopped by a kill switch; it goes on when that is turned off.`,
  toolResult: ({ agentName }) => `${agentName} waits for a client to answer a tool call.`
}

const resultOf = (run: Run): NonNullable<DetailedTask["result"]> => {
  const isError = run.status === "failed"
  const said = isError ? messageOf(run, "completed") : (run.summary ?? "")
  const rest = isTerminal(run.status) ? "" : `${messageOf(run, "completed")} What it has so far:\n\n`
  const text = `${rest}${said}` === "" ? messageOf(run, "completed") : `${rest}${said}`
  return {
    resultType: "complete",
    content: [{ type: "text", text }],
    structuredContent: bounded({ run: smallFirst({ ...run }) }) as Readonly<Record<string, Schema.Json>>,
    isError
  }
}

// Limits of runs as MCP tasks; each unit is in its name.

export const taskBounds = {
  /** The poll interval for a running task, and for one that waits for a person. */
  pollIntervalMs: 1_000,
  restPollIntervalMs: 5_000,
  messageMaxChars: 1_000,
  /** One question to a person. */
  questionMaxChars: 8_000,
  /** Suggestions of one run that a person is asked about at once; more follow when these are decided. */
  suggestionsAtOnce: 20,
  /** Answers in one request. */
  answers: 40,
  /** Tasks in one page of a list. */
  listedTasks: 50,
  /** Tasks of one stream. */
  watchedTasks: 50,
  /** Between two sweeps of watched tasks, in case a notification was lost. */
  sweepIntervalMs: 4_000,
  /** Clients of 2025-11-25 that wait for a task: of one user in a project, and of all on this server. */
  waitsOfUser: 20,
  waits: 1_024,
  /** How long such a client waits before it must ask again. */
  waitMaxMs: 3_600_000
} as const

// The caller of task methods and its rights.

/** The caller, and whether its client can show forms. */
export interface TaskCaller {
  readonly principal: Principal
  readonly projectId: ProjectId
  readonly canElicit: boolean
}

/** What a caller can be asked, apart from declined requests of a run. */
export const termsOf = ({ canElicit, principal: { role } }: TaskCaller): Omit<Terms, "declined"> => ({
  canElicit,
  mayWrite: includesRole(role, "editor")
})

// Stores declined requests, so that each is asked once per person.
//
// Declining decides nothing. The question or suggestion still waits for others; only this person's clients are not asked again.

type InProject<A> = Effect.Effect<A, never, ProjectTransaction>

export class DeclinedInputs extends Context.Service<
  DeclinedInputs,
  {
    /** The keys that a person has declined in a run. */
    readonly of: (runId: RunId, by: UserId) => InProject<ReadonlySet<string>>
    /** Records that a person declined. */
    readonly decline: (runId: RunId, by: UserId, key: string) => InProject<void>
  }
>()("@tropism/server/mcp/DeclinedInputs") {
  static readonly layer = Layer.effect(
    DeclinedInputs,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient

      const of = Effect.fn("DeclinedInputs.of")(function* (runId: RunId, by: UserId) {
        const { projectId } = yield* ProjectTransaction
        const rows = yield* sql<{ readonly key: string }>`
          select key from kb.declined_inputs where project_id = ${projectId} and run_id = ${runId} and user_id = ${by}`
        return new Set(rows.map(({ key }) => key))
      }, orDie)

      const decline = Effect.fn("DeclinedInputs.decline")(function* (runId: RunId, by: UserId, key: string) {
        const { projectId } = yield* ProjectTransaction
        yield* sql`
          insert into kb.declined_inputs (project_id, run_id, user_id, key) values (${projectId}, ${runId}, ${by}, ${key})
          on conflict do nothing`
      }, orDie)

      return DeclinedInputs.of({ of, decline })
    })
  )
}

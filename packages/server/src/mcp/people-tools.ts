/**
 * The MCP tools for people: `graph`, `tasks` and `agents`, by their bare names.
 *
 * The caller comes from the token; the client's `_meta` is not read.
 */
import type { CallToolResult } from "@modelcontextprotocol/server"
import { CurrentPrincipal } from "@tropism/api/authorization"
import { AnswerInput } from "@tropism/api/runs-api"
import { RejectionReason } from "@tropism/api/tasks-api"
import type { Agent } from "@tropism/domain/agent"
import type { ContextName } from "@tropism/domain/context-event"
import { AgentId, GraphEventId, RunId, TaskId } from "@tropism/domain/ids"
import { isJsonObject, mergePatch, Properties } from "@tropism/domain/json"
import { diffJson } from "@tropism/domain/json-diff"
import { type Run, RunStatus } from "@tropism/domain/run"
import { isQuestion, isSuggestion, isTodo, type SuggestionTask, type Task } from "@tropism/domain/task"
import { Effect, Schema, Layer } from "effect"
import { Agents } from "../agents/agents.ts"
import type { BroughtContexts, Conversations } from "../chat/conversations.ts"
import { Contexts } from "../contexts/contexts.ts"
import { isPassing } from "../database/connection-errors.ts"
import { Database } from "../database/database.ts"
import { readableRun, shownRun, spokenRun } from "../http/access.ts"
import { Closing } from "../http/listener.ts"
import { pageById } from "../http/paging.ts"
import { orNotFound } from "../http/problems.ts"
import { deciderOf } from "../http/review-routes.ts"
import { cancelling } from "../http/runs-routes.ts"
import { logPage } from "../http/streams.ts"
import { Outbox } from "../outbox/outbox.ts"
import { Explanations } from "../reactions/explain.ts"
import { Triggers } from "../reactions/manual-triggers.ts"
import { Tasks } from "../review/tasks.ts"
import { Undos } from "../review/undo.ts"
import { RunCancellation } from "../runs/cancellation.ts"
import { Answers } from "../runs/questions.ts"
import { Runs } from "../runs/run-store.ts"
import { Descendants } from "../runs/sub-runs.ts"
import { Denials, whyDenied } from "../tools/denials.ts"
import {
  type ListedTool,
  type PersonPrincipal,
  type PersonOutcome,
  PersonTools,
  adds,
  personTool,
  reads,
  takesAway,
  sets,
  AgentToolsPort
} from "../tools/person-tools.ts"
import {
  type McpCaller,
  type McpCapability,
  asJson,
  failed,
  known,
  opt,
  pageArguments,
  pageOf,
  pageShape,
  principalOf
} from "./capability.ts"

/** A caller as the inner modules know it. */
export const personOf = ({ principal: { role, userId }, projectId }: McpCaller): PersonPrincipal => ({
  projectId,
  role,
  userId
})

export const peopleTools: Effect.Effect<McpCapability, never, PersonTools> = Effect.map(
  PersonTools,
  (tools): McpCapability => {
    const listed = tools.listed.map(asListed)
    return {
      name: "people",
      offerTo: (caller) => ({
        tools: listed.map((tool) => ({
          listed: tool,
          call: (args) => Effect.map(tools.call(personOf(caller), tool.name, args), toldResult)
        }))
      })
    }
  }
)

const asListed = (tool: ListedTool) => ({ ...tool, annotations: { ...tool.annotations, title: tool.title } })

/**
 * A tool's result in MCP's format: as text, and as structured content where it is an object; an error does not match the tool's output
 * schema.
 */
const toldResult = ({ isError, result }: PersonOutcome): CallToolResult => ({
  content: [{ type: "text", text: JSON.stringify(result) }],
  ...(!isError && isJsonObject(result) ? { structuredContent: result } : {}),
  isError
})

// Tools for agents: read one, trigger it, and explain why it did or did not trigger.

const AgentWord = Schema.String.check(Schema.isBetweenLength(1, 200)).annotate({
  description: "The agent's name or its id"
})

/** An agent as a list item. */
const shownAgent = (agent: Agent) => ({
  id: agent.id,
  name: agent.name,
  role: agent.role,
  enabled: agent.enabled,
  triggerType: agent.triggerType,
  executionMode: agent.executionMode,
  version: agent.version,
  tools: agent.tools
})

/** The agent with a name or an id; never a deleted one. */
const makeFindAgent = Effect.map(
  Agents,
  (agents) => (word: string) =>
    known("agent")(
      Schema.is(AgentId)(word)
        ? agents.get(word)
        : Effect.map(agents.named([word]), (named) => named.get(word))
    )
)

const listAgents = {
  name: "list_agents",
  title: "List agents",
  description: "Lists the agents of the project, newest first.",
  arguments: Schema.Struct(pageArguments),
  outputSchema: pageShape,
  annotations: reads,
  role: "viewer"
} as const

const getAgent = {
  name: "get_agent",
  title: "Read an agent",
  description:
    "Reads an agent's whole definition: prompt, model, tools, trigger, mode, capabilities and limits.",
  arguments: Schema.Struct({ agent: AgentWord }),
  annotations: reads,
  role: "viewer"
} as const

const triggerAgent = {
  name: "trigger_agent",
  title: "Set an agent to work",
  description:
    "Begins a run of an agent, as yours. Waits for its end, at most a minute, and answers the run; with wait false it answers at once. Ask get_run for one that goes on.",
  arguments: Schema.Struct({
    agent: AgentWord,
    input: opt(Schema.Json.annotate({ description: "What its prompt sees as input" })),
    wait: opt(Schema.Boolean.annotate({ description: "False to answer as soon as the run is queued" }))
  }),
  annotations: adds,
  execution: { taskSupport: "optional" },
  role: "editor"
} as const

const explainEvent = {
  name: "explain",
  title: "Explain why agents woke",
  description:
    "Says why an event of the graph, or what an MCP server told, did or did not wake an agent, or, without an agent, each of them. get_object and the project's events know the ids of events, the trigger of a run those of what was told.",
  arguments: Schema.Struct({ eventId: GraphEventId, agent: opt(AgentWord), ...pageArguments }),
  annotations: reads,
  role: "viewer"
} as const

const makeAgentTools = Effect.gen(function* () {
  const agents = yield* Agents
  const triggers = yield* Triggers
  const explanations = yield* Explanations
  const outbox = yield* Outbox
  const findAgent = yield* makeFindAgent
  const { lastCall } = yield* Closing

  return [
    personTool(listAgents, (args) =>
      pageById(pageOf("agents", args), agents.list).pipe(
        Effect.mapError(failed),
        Effect.map(({ items, nextCursor }) => ({
          result: asJson({ items: items.map(shownAgent), nextCursor })
        }))
      )
    ),
    personTool(getAgent, ({ agent }) => Effect.map(findAgent(agent), (found) => ({ result: asJson(found) }))),
    personTool(triggerAgent, ({ agent: word, input, wait }, { principal: { projectId, userId } }) =>
      Effect.gen(function* () {
        const agent = yield* findAgent(word)
        const runId = yield* Effect.mapError(triggers.byHand(agent, input ?? undefined, userId), failed)
        const now = triggers.look(projectId, runId)
        const run =
          wait === false
            ? now
            : Effect.raceFirst(triggers.settled(projectId, runId), Effect.as(lastCall, undefined))
        const begun = { id: runId, agentId: agent.id, agentName: agent.name, status: "queued" }
        return {
          result: begun,
          // The run has begun even if it cannot be read now. The caller would trigger it again after an error, so answer.
          afterwards: Effect.map(
            Effect.catchDefect(run, (defect) =>
              isPassing(defect) ? Effect.succeed(undefined) : Effect.die(defect)
            ),
            (seen) => asJson(seen ?? begun)
          )
        }
      })
    ),
    personTool(explainEvent, ({ agent: word, eventId, ...page }) =>
      Effect.gen(function* () {
        const event = yield* outbox.get(eventId)
        if (typeof word === "string") {
          const { id } = yield* findAgent(word)
          const explanation =
            event === undefined
              ? known("event")(explanations.ofOccurrence(eventId, id))
              : known("agent")(explanations.one(event, id))
          return { result: asJson(yield* explanation) }
        }
        const all = pageById(pageOf(`explanations of ${eventId}`, page), (before, limit) =>
          event === undefined
            ? orNotFound("event")(explanations.listOfOccurrence(eventId, before, limit))
            : explanations.list(event, before, limit)
        )
        return { result: asJson(yield* Effect.mapError(all, failed)) }
      })
    )
  ]
})

// Tools for runs: read one and its log, cancel it, plan its undo.
//
// The text of a private conversation is visible to its owner and admins; others see the run without text.

const knownRun = known("run")

/** A run as a list item, without text. */
export const listedRun = (run: Run) => ({
  id: run.id,
  agentId: run.agentId,
  agentName: run.agentName,
  status: run.status,
  pauseReason: run.pauseReason,
  trigger: run.trigger.type,
  stepCount: run.stepCount,
  createdAt: run.createdAt,
  completedAt: run.completedAt
})

/** Reads runs for one person. */
export const makeRunReading = Effect.gen(function* () {
  const runs = yield* Runs
  const contexts = yield* Contexts

  const seen = (run: Run, person: PersonPrincipal) => asJson(shownRun(principalOf(person), run))

  const get = (id: RunId, person: PersonPrincipal) =>
    Effect.map(knownRun(runs.get(id)), (run) => seen(run, person))

  /** A page of a run's log, in order; empty for another person's private conversation. */
  const log = (id: RunId, person: PersonPrincipal, page: Parameters<typeof logPage>[1]) =>
    readableRun(id).pipe(
      Effect.flatMap(({ contextName }) => logPage(contextName as ContextName, page)),
      Effect.provideService(CurrentPrincipal, principalOf(person)),
      Effect.provideService(Runs, runs),
      Effect.provideService(Contexts, contexts),
      Effect.mapError(failed)
    )

  return { get, log, seen }
})

const getRun = {
  name: "get_run",
  title: "Read a run",
  description: "Reads a run: its state, what woke it, what it came to, and what it used.",
  arguments: Schema.Struct({ runId: RunId }),
  annotations: reads,
  role: "viewer"
} as const

const listRuns = {
  name: "list_runs",
  title: "List runs",
  description: "Lists runs, newest first.",
  arguments: Schema.Struct({
    agent: opt(
      Schema.String.check(Schema.isBetweenLength(1, 200)).annotate({
        description: "Of this agent: its name or its id"
      })
    ),
    status: opt(RunStatus),
    ...pageArguments
  }),
  outputSchema: pageShape,
  annotations: reads,
  role: "viewer"
} as const

const getRunLog = {
  name: "get_run_log",
  title: "Read a run's log",
  description:
    "Reads what happened in a run, event by event: messages, model answers, tool calls and their outcomes.",
  arguments: Schema.Struct({ runId: RunId, ...pageArguments }),
  outputSchema: pageShape,
  annotations: reads,
  role: "viewer"
} as const

const cancelRun = {
  name: "cancel_run",
  title: "Cancel a run",
  description: "Ends a run that has not ended, with all that it spawned. What it has done stays done.",
  arguments: Schema.Struct({ runId: RunId }),
  annotations: takesAway,
  role: "editor"
} as const

const planUndo = {
  name: "plan_undo",
  title: "Plan to undo a run",
  description:
    "Plans to take back what a run changed in the graph. Nothing changes yet: the answer is a task that approve_suggestion carries out.",
  arguments: Schema.Struct({ runId: RunId }),
  annotations: adds,
  role: "reviewer"
} as const

const makeRunTools = Effect.gen(function* () {
  const runs = yield* Runs
  const descendants = yield* Descendants
  const undos = yield* Undos
  const findAgent = yield* makeFindAgent
  const reading = yield* makeRunReading
  const services = yield* Effect.context<Runs | RunCancellation>()

  return [
    personTool(getRun, ({ runId }, { principal }) =>
      Effect.map(reading.get(runId, principal), (result) => ({ result }))
    ),
    personTool(listRuns, ({ agent: word, status, ...page }) =>
      Effect.gen(function* () {
        const agent = typeof word === "string" ? yield* findAgent(word) : undefined
        const filter = { agentId: agent?.id, status: status ? [status] : undefined }
        const found = pageById(pageOf("runs", page), (before, limit) => runs.list(filter, before, limit))
        const { items, nextCursor } = yield* Effect.mapError(found, failed)
        return { result: asJson({ items: items.map(listedRun), nextCursor }) }
      })
    ),
    personTool(getRunLog, ({ runId, ...page }, { principal }) =>
      Effect.map(reading.log(runId, principal, pageOf(`log of ${runId}`, page)), (events) => ({
        result: asJson(events)
      }))
    ),
    personTool(cancelRun, ({ runId }, { principal }) =>
      Effect.gen(function* () {
        const run = yield* cancelling(runId).pipe(
          Effect.provideService(CurrentPrincipal, principalOf(principal)),
          Effect.provide(services),
          Effect.mapError(failed)
        )
        const result = reading.seen(run, principal)
        // When this answers, no run below writes any more.
        return {
          result,
          afterwards: Effect.as(descendants.cancelBelow(principal.projectId, run.id), result)
        }
      })
    ),
    personTool(planUndo, ({ runId }, { principal: { userId } }) =>
      undos.plan({ type: "run", runId }, userId).pipe(
        Effect.mapError(failed),
        knownRun,
        Effect.map(({ task }) => ({ result: asJson(task) }))
      )
    )
  ]
})

// Tools for review: list pending tasks, decide, answer.
//
// **Invariant**: an approval requires the digest of what the person was shown. Agents do not have these tools, so none can approve its own
// or another's work.

const knownTask = known("task")

/** A task as a list item: enough to choose by. */
const listedTask = (task: Task) => ({
  taskId: task.id,
  number: task.number,
  type: task.type,
  status: task.status,
  title: task.title,
  description: task.description,
  createdAt: task.createdAt,
  ...("agentName" in task ? { agentName: task.agentName } : {}),
  ...("assignee" in task ? { assignee: task.assignee } : {}),
  ...("digest" in task ? { digest: task.digest } : {}),
  ...(isSuggestion(task)
    ? { staleness: task.staleness?.state ?? null, agentState: task.agentState, denial: task.denial }
    : {})
})

/** The changes that an approval would make, field by field. */
const diffOf = ({ payload: { suggestedChanges: change }, relationship, target }: SuggestionTask) => {
  const before = (target ?? relationship)?.properties ?? {}
  if (change.type === "delete" || change.type === "deleteRelationship") return diffJson(before, {})
  return diffJson(
    before,
    change.type === "create" || change.type === "createRelationship"
      ? change.data
      : mergePatch(before, change.data)
  )
}

/** A task with everything that a decision needs. */
export const shownTask = (task: Task) => asJson(isSuggestion(task) ? { ...task, diff: diffOf(task) } : task)

/** Reads pending tasks. */
export const makeReviewReading = Effect.gen(function* () {
  const tasks = yield* Tasks

  /** Pending suggestions and questions, newest first, without todos. */
  const waiting = ({ userId }: PersonPrincipal, isMine: boolean, page: Parameters<typeof pageOf>[1]) =>
    pageById(pageOf(isMine ? "mine" : "waiting", page), (before, limit) =>
      tasks.list(
        { status: "pending", isOfProject: true, ...(isMine ? { assignee: userId } : {}) },
        userId,
        before,
        limit
      )
    ).pipe(
      Effect.mapError(failed),
      Effect.map(({ items, nextCursor }) => ({ items: items.map(listedTask), nextCursor }))
    )

  /** One task that is not a todo. */
  const get = (id: TaskId, { userId }: PersonPrincipal) =>
    knownTask(Effect.map(tasks.get(id, userId), (task) => (task && isTodo(task) ? undefined : task)))

  return { get, waiting }
})

const listReview = {
  name: "list_review",
  title: "List what waits for people",
  description:
    "Lists what agents ask people to decide or to answer, newest first: suggestions, undos, questions, promotions.",
  arguments: Schema.Struct({
    mine: opt(Schema.Boolean.annotate({ description: "True for what is assigned to you alone" })),
    ...pageArguments
  }),
  outputSchema: pageShape,
  annotations: reads,
  role: "viewer"
} as const

const getSuggestion = {
  name: "get_suggestion",
  title: "Read a suggestion",
  description:
    "Reads a suggestion, question or undo with all that a decision needs: the change, its difference to the present, the agent's reasoning, the evidence, whether anything moved since, and in denial why the agent's capabilities forbid it by now, if they do. Its digest binds an approval to what you saw.",
  arguments: Schema.Struct({ taskId: TaskId }),
  annotations: reads,
  role: "viewer"
} as const

const approveSuggestion = {
  name: "approve_suggestion",
  title: "Approve a suggestion",
  description:
    "Makes the suggested change, or, for a reviewer, carries out an undo. Read it first, and give the digest that you were shown.",
  arguments: Schema.Struct({
    taskId: TaskId,
    digest: Schema.String.check(Schema.isBetweenLength(1, 200)).annotate({
      description: "digest of get_suggestion: another state of the suggestion is not approved"
    }),
    properties: opt(
      Properties.annotate({ description: "Your own properties in place of the suggested ones" })
    ),
    leaveOut: opt(
      Schema.Array(Schema.String.check(Schema.isMaxLength(200)))
        .check(Schema.isMaxLength(1_000))
        .annotate({ description: "Of an undo: ids of items that stay as they are" })
    )
  }),
  annotations: sets,
  role: "editor"
} as const

const rejectSuggestion = {
  name: "reject_suggestion",
  title: "Reject a suggestion",
  description: "Ends a suggestion or an undo with no change. The agent learns the reason.",
  arguments: Schema.Struct({
    taskId: TaskId,
    digest: opt(Schema.String.check(Schema.isBetweenLength(1, 200))),
    reason: opt(RejectionReason.annotate({ description: "Why, for the agent" }))
  }),
  annotations: sets,
  role: "editor"
} as const

const answerQuestion = {
  name: "answer_question",
  title: "Answer an agent's question",
  description:
    "Gives an agent the answer that its run waits for; where it named answers to choose from, one of them.",
  arguments: Schema.Struct({
    taskId: TaskId,
    answer: AnswerInput.fields.answer
  }),
  annotations: sets,
  role: "editor"
} as const

const makeReviewTools = Effect.gen(function* () {
  const database = yield* Database
  const tasks = yield* Tasks
  const services = yield* Effect.context<BroughtContexts | Conversations | Runs>()
  const answers = yield* Answers
  const denials = yield* Denials
  const { get, waiting } = yield* makeReviewReading

  return [
    personTool(listReview, ({ mine, ...page }, { principal }) =>
      Effect.map(waiting(principal, mine === true, page), (found) => ({ result: asJson(found) }))
    ),
    personTool(getSuggestion, ({ taskId }, { principal }) =>
      Effect.map(get(taskId, principal), (task) => ({ result: shownTask(task) }))
    ),
    personTool(approveSuggestion, ({ digest, leaveOut, properties, taskId }, { principal }) =>
      Effect.gen(function* () {
        yield* get(taskId, principal)
        const edit = properties ? { data: properties, baseVersion: null } : null
        const approval = tasks.approve(taskId, deciderOf(principal), digest, edit, leaveOut ?? [])
        return yield* Effect.matchEffect(database.attempt(approval), {
          onSuccess: (task) =>
            Effect.map(knownTask(Effect.succeed(task)), (done) => ({ result: shownTask(done) })),
          onFailure: (refusal) =>
            Effect.gen(function* () {
              // The approval rolls back; the record that the agent lost the right is kept.
              const why = refusal._tag === "ChangeRefused" ? whyDenied(refusal) : undefined
              if (why) yield* denials.ofApproval(taskId, principal.userId, properties ?? null, why)
              const { result } = failed(refusal)
              return { result, isError: true, ...(why ? { decision: "refuse" as const } : {}) }
            })
        })
      })
    ),
    personTool(rejectSuggestion, ({ digest, reason, taskId }, { principal }) =>
      Effect.gen(function* () {
        yield* get(taskId, principal)
        const rejection = tasks.reject(taskId, deciderOf(principal), reason ?? null, digest ?? null)
        return { result: shownTask(yield* knownTask(Effect.mapError(rejection, failed))) }
      })
    ),
    personTool(answerQuestion, ({ answer, taskId }, { principal }) =>
      Effect.gen(function* () {
        const task = yield* get(taskId, principal)
        if (!isQuestion(task))
          return yield* failed({
            _tag: "Conflict",
            reason: "state",
            detail: `Task ${task.number} is no question: approve or reject it`
          })
        yield* spokenRun(task.runId).pipe(
          Effect.flatMap((run) => answers.give(run, answer, taskId, principal.userId)),
          Effect.provideService(CurrentPrincipal, principalOf(principal)),
          Effect.provide(services),
          Effect.mapError(failed)
        )
        return { result: shownTask(yield* get(taskId, principal)) }
      })
    )
  ]
})

// Implements the port through which people's tools reach agents, runs and tasks.

/** The tools of the `agents` server; agents never have them (decision 0053). */
export const agentToolsPort = Layer.effect(
  AgentToolsPort,
  Effect.map(Effect.all([makeAgentTools, makeRunTools, makeReviewTools]), (tools) => ({
    tools: tools.flat()
  }))
)

/**
 * Runs and contexts: read them, watch them live, speak to them, stop them.
 *
 * Flow: **http** → dispatch → run → tool → task
 */
import { Api } from "@tropism/api/api"
import { Conflict } from "@tropism/api/problems"
import type { ToolCallRecord } from "@tropism/api/runs-api"
import { type ContextName, eventNumber, type NewEvent } from "@tropism/domain/context-event"
import type { ProjectId, RunId } from "@tropism/domain/ids"
import { findFault } from "@tropism/domain/json"
import { isTerminal } from "@tropism/domain/run"
import { Effect, Stream } from "effect"
import { HttpServerResponse } from "effect/http"
import { HttpApiBuilder } from "effect/http-api"
import { Agents } from "../agent/agents.ts"
import type { LoggedJson } from "../agent/appending.ts"
import { Contexts } from "../agent/contexts.ts"
import { Database } from "../database/database.ts"
import { Triggers } from "../dispatch/triggers.ts"
import { Endings } from "../run/endings.ts"
import { Runs } from "../run/runs.ts"
import { type RecordedCall, ToolCalls } from "../tool/tool-calls.ts"
import { inProject, reading } from "./access.ts"
import { pageById, pageByNumber } from "./paging.ts"
import { invalid, orNotFound, triggerProblem } from "./refusals.ts"
import { type SseEvent, sseResponse, startAfter, wantsStream } from "./sse.ts"

const knownRun = orNotFound("run")
const knownContext = orNotFound("context")

/** A call as the API shows it: what it read is evidence, not part of the answer. */
const shownCall = ({ reads: _reads, ...call }: RecordedCall): ToolCallRecord => call

const numberOf = (event: LoggedJson): number => eventNumber(event.id)

/** A page of a context's log, in order. */
const logPage = (
  name: ContextName,
  query: {
    readonly cursor?: string | undefined
    readonly limit?: number | undefined
    readonly after?: number | undefined
  }
) =>
  Effect.flatMap(Contexts, (contexts) =>
    pageByNumber(query, numberOf, (cursor, limit) => contexts.read(name, cursor ?? query.after ?? 0, limit))
  )

/** A context's log, live: kept events with their numbers, pieces of text without. */
const liveLog = Effect.fnUntraced(function* (
  projectId: ProjectId,
  name: ContextName,
  after: number,
  runId: RunId | undefined
) {
  const database = yield* Database
  const contexts = yield* Contexts
  const runs = yield* Runs
  const ephemeral = Stream.unwrap(
    Effect.map(contexts.deltas, (deltas) =>
      Stream.fromSubscription(deltas).pipe(
        Stream.filter((shown) => shown.projectId === projectId && shown.delta.agentName === name),
        Stream.map(({ delta }): SseEvent => ({ number: undefined, name: delta.type, json: delta }))
      )
    )
  )
  const isOver =
    runId === undefined
      ? Effect.succeed(false)
      : Effect.map(
          database.inProject(projectId, runs.get(runId)),
          (run) => run === undefined || isTerminal(run.status)
        )
  return yield* sseResponse(
    {
      topic: `context:${projectId}/${name}`,
      read: (from, limit) =>
        Effect.map(database.inProject(projectId, contexts.read(name, from, limit)), (events) =>
          events.map((event) => ({ number: numberOf(event), name: event.type, json: event }))
        ),
      isOver,
      ephemeral
    },
    after
  )
})

export const runsHandlers = HttpApiBuilder.group(Api, "runs", (handlers) =>
  handlers
    .handle(
      "list",
      Effect.fn("http.runs.list")(function* ({ params, query }) {
        const runs = yield* Runs
        const { status, agentId } = query
        return yield* reading(
          params.projectId,
          pageById(query, (before, limit) => runs.list({ status, agentId }, before, limit))
        )
      })
    )
    .handle(
      "get",
      Effect.fn("http.runs.get")(function* ({ params }) {
        const runs = yield* Runs
        return yield* knownRun(reading(params.projectId, runs.get(params.runId)))
      })
    )
    .handleRaw(
      "events",
      Effect.fn("http.runs.events")(function* ({ params, query }) {
        const runs = yield* Runs
        const run = yield* knownRun(reading(params.projectId, runs.get(params.runId)))
        const name = run.contextName as ContextName
        if (yield* wantsStream)
          return yield* liveLog(params.projectId, name, yield* startAfter(query.after), run.id)
        return yield* Effect.orDie(
          HttpServerResponse.json(yield* reading(params.projectId, logPage(name, query)))
        )
      })
    )
    .handle(
      "toolCalls",
      Effect.fn("http.runs.toolCalls")(function* ({ params, query }) {
        const runs = yield* Runs
        const toolCalls = yield* ToolCalls
        return yield* reading(
          params.projectId,
          Effect.andThen(
            knownRun(runs.get(params.runId)),
            Effect.map(
              pageById(query, (before, limit) => toolCalls.list(params.runId, before, limit)),
              (page) => ({
                ...page,
                items: page.items.map(shownCall)
              })
            )
          )
        )
      })
    )
    .handle(
      "cancel",
      Effect.fn("http.runs.cancel")(function* ({ params }) {
        const runs = yield* Runs
        const endings = yield* Endings
        return yield* inProject(params.projectId, "editor", () =>
          Effect.gen(function* () {
            const run = yield* knownRun(runs.get(params.runId))
            // Read again: it ended after it was read, or before.
            yield* Effect.catchTag(endings.cancel(run), "RunNotInState", () =>
              Effect.flatMap(knownRun(runs.get(run.id)), ({ status }) =>
                Effect.fail(new Conflict({ reason: "state", detail: `The run is ${status} already` }))
              )
            )
            return yield* knownRun(runs.get(run.id))
          })
        )
      })
    )
)

export const contextsHandlers = HttpApiBuilder.group(Api, "contexts", (handlers) =>
  handlers
    .handle(
      "create",
      Effect.fn("http.contexts.create")(function* ({ params, payload }) {
        const agents = yield* Agents
        const triggers = yield* Triggers
        return yield* inProject(params.projectId, "editor", () =>
          Effect.gen(function* () {
            const agent = yield* agents.get(payload.agentId)
            if (!agent) return yield* invalid("/agentId", `There is no agent ${payload.agentId}`)
            return yield* Effect.catchTags(triggers.openContext(payload.name, agent), {
              ContextExists: () =>
                new Conflict({
                  reason: "nameTaken",
                  detail: `There is already a context named ${payload.name}`
                }),
              PromptFailed: ({ detail }) => invalid("/agentId", detail)
            })
          })
        )
      })
    )
    .handle(
      "get",
      Effect.fn("http.contexts.get")(function* ({ params }) {
        const contexts = yield* Contexts
        return yield* knownContext(reading(params.projectId, contexts.get(params.name)))
      })
    )
    .handle(
      "addEvent",
      Effect.fn("http.contexts.addEvent")(function* ({ params, payload }) {
        const fault = findFault(payload)
        if (fault) return yield* invalid(fault.pointer, fault.message)
        const contexts = yield* Contexts
        const triggers = yield* Triggers
        const event: NewEvent = {
          type: "UserMessageEvent",
          content: payload.content,
          triggersAgentTurn: payload.triggersAgentTurn ?? true
        }
        yield* inProject(params.projectId, "editor", ({ userId }) =>
          Effect.flatMap(knownContext(contexts.get(params.name)), (context) =>
            Effect.catchTag(triggers.byEvent(context, event, userId), "TriggerRefused", triggerProblem)
          )
        )
      })
    )
    .handleRaw(
      "events",
      Effect.fn("http.contexts.events")(function* ({ params, query }) {
        const contexts = yield* Contexts
        yield* knownContext(reading(params.projectId, contexts.get(params.name)))
        if (yield* wantsStream)
          return yield* liveLog(params.projectId, params.name, yield* startAfter(query.after), undefined)
        return yield* Effect.orDie(
          HttpServerResponse.json(yield* reading(params.projectId, logPage(params.name, query)))
        )
      })
    )
)

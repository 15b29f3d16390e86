/**
 * Contexts: begin a conversation, speak in it, fork it, read it and watch it live.
 *
 * Flow: **http** → dispatch → run → tool → task
 */
import { Api } from "@tropism/api/api"
import { CurrentPrincipal } from "@tropism/api/authorization"
import { Conflict } from "@tropism/api/problems"
import type { ContextState, ForkInput, ToolResultInput } from "@tropism/api/contexts-api"
import { promptOf, type ReducedContext } from "@tropism/domain/context"
import { type DefinedTool, isClientTool } from "@tropism/domain/context-config"
import type { ContextName, NewEvent } from "@tropism/domain/context-event"
import { promptTokens, reducerOf } from "@tropism/domain/context-window"
import type { AgentId, ProjectId, UserId } from "@tropism/domain/ids"
import { findFault } from "@tropism/domain/json"
import type { Stop } from "@tropism/domain/kill-switch"
import { Effect, Option, type Schema } from "effect"
import { HttpServerResponse } from "effect/http"
import { HttpApiBuilder } from "effect/http-api"
import { Agents } from "../agent/agents.ts"
import { Contexts } from "../agent/contexts.ts"
import { replayContext } from "../agent/replaying.ts"
import { TodoAssistants } from "../agent/todo-assistants.ts"
import { ContextBeginnings } from "../dispatch/context-beginnings.ts"
import { ofBacktestSentence, Triggers } from "../dispatch/triggers.ts"
import { inProject, looking, reading, unlessRecalled } from "./access.ts"
import { ClientResults, type ClientOutcome } from "../run/client-results.ts"
import { addedEvent, type KeptInput } from "./added-event.ts"
import { checkModels } from "./model-checks.ts"
import { liveLog, logPage } from "./context-log.ts"
import { makeJudgedEvent } from "./judged-event.ts"
import { readableContext, spokenContext } from "./owned.ts"
import { invalid, triggerProblem } from "./refusals.ts"
import { pageByPlace } from "./paging.ts"
import { wantsStream } from "./sse.ts"
import { taggedByDigest } from "./conditions.ts"

/** An instant and a name: where a context stands in the list. */
const contextPlaces = /^\d{1,18}\.[A-Za-z0-9][A-Za-z0-9_.-]{0,99}$/

const noAgent = (id: string) => invalid("/agentId", `There is no agent ${id}`)

const nobody = invalid(
  "/agentId",
  "This project's TodoAssistant was deleted: say who answers, and name an agent by its id"
)

const isNamed = (id: AgentId | null | undefined): id is AgentId => id !== undefined && id !== null

/** Why a context was not begun. */
const notBegun = {
  ContextExists: ({ name }: { readonly name: string }) =>
    new Conflict({ reason: "nameTaken", detail: `There is already a context named ${name}` }),
  PromptFailed: ({ detail }: { readonly detail: string }) => invalid("/agentId", detail)
}

/** Adds an event that somebody sent, when all that it names is there. */
const adding = Effect.fnUntraced(function* (
  { name, projectId }: { readonly name: ContextName; readonly projectId: ProjectId },
  payload: KeptInput
) {
  const triggers = yield* Triggers
  const event = yield* addedEvent(projectId, payload)
  yield* checkModels(projectId, name, event)
  const judged = yield* makeJudgedEvent
  return yield* inProject(projectId, "editor", ({ userId }) =>
    Effect.flatMap(spokenContext(name, event.type === "UserMessageEvent"), (context) =>
      triggers
        .byEvent(context, event, userId, judged(context, event))
        .pipe(Effect.catchTag("TriggerRefused", triggerProblem), Effect.as(null))
    )
  )
})

/** Brings the result of a tool call to the run that waits for it. */
const answering = (
  { name, projectId }: { readonly name: ContextName; readonly projectId: ProjectId },
  { callId, error, result, untrusted }: ToolResultInput
) =>
  Effect.gen(function* () {
    const results = yield* ClientResults
    const hasError = error !== undefined && error !== null
    if (result === undefined && !hasError)
      return yield* invalid("/result", "Send the result of the call, or an error")
    if (result !== undefined && hasError)
      return yield* invalid("/error", "Send either a result or an error, and not both")
    const outcome: ClientOutcome = {
      ...(hasError ? { error } : { result: result ?? null }),
      isUntrusted: untrusted === true
    }
    return yield* inProject(projectId, "editor", ({ userId }) =>
      Effect.andThen(
        spokenContext(name),
        results.give(name, callId, outcome, userId).pipe(
          Effect.mapError(({ detail, reason }) => new Conflict({ reason, detail })),
          Effect.as(null)
        )
      )
    )
  })

/** Makes a fork, and says in it what is to be said: both, or neither. */
const forking = Effect.fnUntraced(function* (
  name: ContextName,
  { agentId: named, at, message, name: wanted }: typeof ForkInput.Type,
  by: UserId
) {
  const agents = yield* Agents
  const beginnings = yield* ContextBeginnings
  const from = yield* spokenContext(name)
  const agentId = named ?? from.agentId
  const agent = yield* agents.get(agentId)
  if (!agent) return yield* noAgent(agentId)
  const fork = yield* Effect.catchTags(beginnings.fork(wanted, agent, { from, at: at ?? undefined }), {
    ...notBegun,
    ForkRefused: ({ detail }) => invalid("/at", detail)
  })
  if (message === undefined || message === null) return fork
  const triggers = yield* Triggers
  const said: NewEvent = { type: "UserMessageEvent", content: message, triggersAgentTurn: true }
  yield* triggers
    .byEvent(yield* spokenContext(wanted, true), said, by)
    .pipe(Effect.catchTag("TriggerRefused", triggerProblem))
  return yield* readableContext(wanted)
})

/** Why a turn was not asked to end. */
const notInterrupted = {
  noTurn: "No turn is open: there is nothing to end",
  ofBacktest: ofBacktestSentence,
  underWay:
    "An interrupt of this turn is under way: it ends as soon as what has begun is recorded, and no kill switch is on"
}

const interruptedLater = ({ reason, scope, stoppedBy }: Stop) =>
  Effect.orDie(
    HttpServerResponse.json(
      {
        detail: `The turn ends when no kill switch is on any more; ${stoppedBy} has turned on the one of this ${scope}: ${reason}`
      },
      { status: 202 }
    )
  )

const shownState = (name: ContextName, context: ReducedContext): ContextState => ({
  name,
  nextEventNumber: context.nextEventNumber,
  lastEventId: Option.getOrNull(context.lastEventId),
  currentTurnNumber: context.currentTurnNumber,
  agentTurnStartedAtEventId: Option.getOrNull(context.agentTurnStartedAtEventId),
  isTurnDue: context.isTurnDue,
  isSessionOpen: context.isSessionOpen,
  config: {
    primary: Option.getOrNull(context.config.primary),
    fallback: Option.getOrNull(context.config.fallback),
    timeoutMs: Option.getOrNull(context.config.timeoutMs),
    retry: Option.getOrNull(context.config.retry),
    isRacing: context.config.isRacing,
    guard: Option.getOrNull(context.config.guard),
    memory: Option.getOrNull(context.config.memory),
    reducer: reducerOf(context.config),
    tools: context.config.tools.map(shownTool),
    workflow: Option.getOrNull(context.config.workflow)
  },
  flow: Option.getOrNull(context.flow),
  summary: Option.getOrNull(context.summary),
  notes: Option.getOrNull(context.notes.content),
  droppedMessages: context.droppedMessages,
  promptTokens: promptTokens(context),
  messages: promptOf(context) as ContextState["messages"],
  pendingCalls: context.pendingCalls
})

const shownTool = (tool: DefinedTool): ContextState["config"]["tools"][number] => {
  const { description = null, name } = tool
  return isClientTool(tool)
    ? {
        name,
        description,
        tool: null,
        arguments: {},
        inputSchema: tool.inputSchema,
        timeoutMs: tool.timeoutMs
      }
    : {
        name,
        description,
        tool: tool.tool,
        arguments: tool.arguments as Record<string, Schema.Json>,
        inputSchema: null,
        timeoutMs: null
      }
}

export const contextsHandlers = HttpApiBuilder.group(Api, "contexts", (handlers) =>
  handlers
    .handle(
      "list",
      Effect.fn("http.contexts.list")(function* ({ params, query }) {
        const contexts = yield* Contexts
        return yield* reading(
          params.projectId,
          Effect.flatMap(CurrentPrincipal, ({ role, userId }) =>
            pageByPlace(query, contextPlaces, (after, limit) =>
              contexts.list(
                { agentId: query.agentId, reader: role === "admin" ? undefined : userId },
                after,
                limit
              )
            )
          )
        )
      })
    )
    .handle(
      "create",
      Effect.fn("http.contexts.create")(function* ({ params, payload }) {
        const agents = yield* Agents
        const assistants = yield* TodoAssistants
        const beginnings = yield* ContextBeginnings
        return yield* inProject(params.projectId, "editor", () =>
          Effect.gen(function* () {
            const { agentId } = payload
            const agent = yield* isNamed(agentId) ? agents.get(agentId) : assistants.ensure
            if (!agent) return yield* isNamed(agentId) ? noAgent(agentId) : nobody
            return yield* Effect.catchTags(beginnings.open(payload.name, agent), notBegun)
          })
        )
      })
    )
    .handle(
      "get",
      Effect.fn("http.contexts.get")(function* ({ params }) {
        return yield* Effect.flatMap(reading(params.projectId, readableContext(params.name)), taggedByDigest)
      })
    )
    .handle(
      "state",
      Effect.fn("http.contexts.state")(function* ({ params }) {
        const contexts = yield* Contexts
        return yield* reading(
          params.projectId,
          Effect.andThen(
            readableContext(params.name),
            Effect.map(contexts.load(params.name), (context) => shownState(params.name, context))
          )
        )
      })
    )
    .handle(
      "replay",
      Effect.fn("http.contexts.replay")(function* ({ params: { name, projectId } }) {
        const { eventCount } = yield* reading(projectId, readableContext(name))
        return yield* replayContext(projectId, name, eventCount)
      })
    )
    .handle(
      "fork",
      Effect.fn("http.contexts.fork")(function* ({ params, payload }) {
        const fault = findFault(payload)
        if (fault) return yield* invalid(fault.pointer, fault.message)
        return yield* inProject(params.projectId, "editor", ({ userId }) =>
          forking(params.name, payload, userId)
        )
      })
    )
    .handle(
      "interrupt",
      Effect.fn("http.contexts.interrupt")(function* ({ params }) {
        const triggers = yield* Triggers
        const stop = yield* inProject(params.projectId, "editor", ({ userId }) =>
          Effect.gen(function* () {
            const context = yield* readableContext(params.name)
            const found = yield* Effect.mapError(
              triggers.interrupt(context, userId),
              ({ reason }) => new Conflict({ reason: "state", detail: notInterrupted[reason] })
            )
            // Nothing is an outcome as well, and is kept under a key only as null.
            return found ?? null
          })
        )
        return stop ? yield* interruptedLater(stop) : undefined
      })
    )
    .handle(
      "addEvent",
      Effect.fn("http.contexts.addEvent")(function* ({ params, payload }) {
        const fault = findFault(payload)
        if (fault) return yield* invalid(fault.pointer, fault.message)
        // Who may not speak here is refused before anything is fetched or looked up.
        if (payload.type !== "UserMessageEvent")
          yield* looking(params.projectId, "editor", () => spokenContext(params.name))
        yield* payload.type === "ToolResultEvent"
          ? answering(params, payload)
          : unlessRecalled(params.projectId, "editor", adding(params, payload))
      })
    )
    .handleRaw(
      "events",
      Effect.fn("http.contexts.events")(function* ({ params, query }) {
        yield* reading(params.projectId, readableContext(params.name))
        if (yield* wantsStream) return yield* liveLog(params.projectId, params.name, query.after, undefined)
        return yield* Effect.orDie(
          HttpServerResponse.json(yield* reading(params.projectId, logPage(params.name, query)))
        )
      })
    )
)

/** Endpoints for contexts: start, write, fork, read and watch one. */
import { Api } from "@tropism/api/api"
import { CurrentPrincipal } from "@tropism/api/authorization"
import type {
  ContextState,
  ForkInput,
  ToolResultInput,
  ConfigInput,
  EventInput,
  FileInput
} from "@tropism/api/contexts-api"
import { Conflict, type InvalidInput, NotFound } from "@tropism/api/problems"
import type { Agent } from "@tropism/domain/agent"
import type { Attachment, MimeType } from "@tropism/domain/attachment"
import { type ComparisonInput, findActingTools } from "@tropism/domain/comparison"
import { clientToolBounds, findRetryFault } from "@tropism/domain/config-event"
import { promptOf, type ReducedContext } from "@tropism/domain/context"
import { type DefinedTool, isClientTool, definedTool, type Workflow } from "@tropism/domain/context-config"
import {
  type ContextName,
  type NewEvent,
  type FileAttachmentEvent,
  type ContextEventId,
  eventNumber
} from "@tropism/domain/context-event"
import { promptTokens, reducerOf } from "@tropism/domain/context-window"
import { defineFlowStep, flowBounds } from "@tropism/domain/flow"
import type { AgentId, ProjectId, UserId } from "@tropism/domain/ids"
import { findFault } from "@tropism/domain/json"
import type { Stop } from "@tropism/domain/kill-switch"
import { findReducerFault } from "@tropism/domain/prompt-window"
import { Effect, Option, type Schema } from "effect"
import { HttpServerResponse } from "effect/http"
import { HttpApiBuilder } from "effect/http-api"
import { Agents } from "../agents/agents.ts"
import { findWorkflowFault } from "../agents/definition-checks.ts"
import { fetchFile } from "../agents/outside-network.ts"
import { TodoAssistants } from "../agents/todo-assistants.ts"
import { Attachments } from "../contexts/attachments.ts"
import { Contexts, replayContext, type ContextHead } from "../contexts/contexts.ts"
import { ProjectTransaction } from "../database/database.ts"
import { Comparisons } from "../reactions/comparisons.ts"
import { ContextBeginnings } from "../reactions/new-contexts.ts"
import { ofBacktestSentence, Triggers } from "../reactions/manual-triggers.ts"
import { ClientResults, type ClientOutcome } from "../runs/client-results.ts"
import { findMixedFault, findToolDefinitionFault } from "../tools/external-mcp/registry.ts"
import { ToolServers } from "../tools/offered-tools.ts"
import {
  inProject,
  looking,
  reading,
  unlessRecalled,
  readableContext,
  spokenContext,
  readableFile
} from "./access.ts"
import { checkModels, checkModel } from "./agents-routes.ts"
import { judged, readDataUrl } from "./chat-routes.ts"
import { pageByPlace, taggedByDigest } from "./paging.ts"
import { invalid, triggerProblem, orNotFound } from "./problems.ts"
import { liveLog, logPage, wantsStream } from "./streams.ts"

/** A cursor of the context list: an instant and a name. */
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

/** Appends an event that a caller sent, if everything it refers to exists. */
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

/** Delivers the result of a tool call to the run that waits for it. */
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

/** Forks a context and appends events to the fork, in one transaction. */
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

/** Why an interruption was refused. */
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
            // No run is a result as well; under a key it is stored as null.
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
        // Authorization comes before any fetch or look-up.
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

// Builds the event that a caller adds to a context from the request.
//
// Events that only the server writes (turns, answers, tool calls) cannot be sent: the contract has no such input. A file is stored before
// its event.

/** Inputs that are stored as sent. A tool's result is stored as the outcome of its call instead. */
type KeptInput = Exclude<EventInput, ToolResultInput>

const addedEvent = Effect.fnUntraced(function* (projectId: ProjectId, input: KeptInput) {
  const event = yield* ownEvent(projectId, input)
  const { parentEventId } = input
  return parentEventId === undefined || parentEventId === null ? event : { ...event, parentEventId }
})

/** The event without its place in a causal chain. */
const ownEvent = Effect.fnUntraced(function* (projectId: ProjectId, input: KeptInput) {
  switch (input.type) {
    case "UserMessageEvent":
    case "SystemPromptEvent": {
      const triggersAgentTurn = input.triggersAgentTurn ?? input.type === "UserMessageEvent"
      const event: NewEvent = { type: input.type, content: input.content, triggersAgentTurn }
      return event
    }
    case "FileAttachmentEvent":
      return yield* fileEvent(projectId, input)
    case "SetReducerEvent": {
      const fault = findReducerFault(input.reducer)
      return fault ? yield* invalid(`/reducer/${fault.field}`, fault.message) : configEvent(input)
    }
    case "SetRetryConfigEvent": {
      const fault = findRetryFault(input)
      return fault ? yield* invalid("/maxMs", fault) : configEvent(input)
    }
    case "DefineToolEvent": {
      const { inputSchema, timeoutMs, ...named } = input
      const isClients = inputSchema !== null && inputSchema !== undefined
      return configEvent({
        ...named,
        ...(isClients ? { inputSchema, timeoutMs: timeoutMs ?? clientToolBounds.defaultTimeoutMs } : {}),
        ...(!isClients && timeoutMs !== null && timeoutMs !== undefined ? { timeoutMs } : {})
      })
    }
    case "SetMemoryConfigEvent": {
      const { embeddingModel, ...memory } = input
      return embeddingModel === undefined || embeddingModel === null
        ? configEvent(memory)
        : yield* invalid("/embeddingModel", noEmbeddings, "embeddingUnavailable")
    }
    default:
      return configEvent(input)
  }
})

const noEmbeddings =
  "Search by meaning is not available yet. Leave embeddingModel out: passages are recalled by shared words"

/** The event that configures the agent in this context; omitted fields get their defaults. */
const configEvent = ({ parentEventId: _parent, triggersAgentTurn, ...input }: ConfigInput): NewEvent => {
  const triggers = { triggersAgentTurn: triggersAgentTurn ?? false }
  if (input.type !== "DefineWorkflowEvent") return { ...input, ...triggers }
  const { flowType, steps, type } = input
  const maxIterations = input.maxIterations ?? (flowType === "loop" ? flowBounds.defaultIterations : null)
  return { type, flowType, maxIterations, steps: (steps ?? []).map(defineFlowStep), ...triggers }
}

/** The event of a file: an already stored one, or one that is sent or fetched and stored before the event (S004-R25). */
const fileEvent = Effect.fnUntraced(function* (projectId: ProjectId, input: FileInput) {
  const { attachment, fileName, mimeType, source, triggersAgentTurn, untrusted: isDoubted, url } = input
  const [place, ...others] = (["attachment", "source", "url"] as const).filter((name) => Boolean(input[name]))
  if (place === undefined)
    return yield* invalid("/attachment", "Name the attachment by its digest, the url of a file or its source")
  if (others.length > 0)
    return yield* invalid(`/${others[0]}`, "Name one of attachment, source and url, and not several")
  const shared = { fileName: fileName ?? null, triggersAgentTurn: triggersAgentTurn ?? false }
  const check = (found: MimeType) =>
    mimeType === undefined || mimeType === null || mimeType === found
      ? Effect.void
      : Effect.fail(invalid("/mimeType", `The file is ${found} and not ${mimeType}`))
  const attachments = yield* Attachments
  // Authorization comes before any fetch or look-up.
  if (attachment) {
    const file = yield* looking(projectId, "editor", () =>
      readableFile(attachment, attachments.find(attachment))
    )
    if (!file) return yield* invalid("/attachment", `There is no attachment ${attachment}: send it first`)
    yield* check(file.mimeType)
    return fileEventOf({ type: "upload" }, file, { ...shared, isDoubted: isDoubted === true })
  }
  yield* looking(projectId, "editor", Effect.succeed)
  const address = source ?? url ?? ""
  const isData = place === "source" && /^data:/i.test(address)
  const sent = yield* isData
    ? Effect.fromResult(readDataUrl(address)).pipe(Effect.mapError((fault) => invalid("/source", fault)))
    : Effect.mapError(fetchFile(address), ({ detail }) => invalid(`/${place}`, detail))
  yield* check(sent.mimeType)
  const file = yield* judged({ ...sent, untrusted: isDoubted === true }, `/${place}`)
  const kept = { ...file, bytes: sent.bytes }
  const untrusted = yield* looking(projectId, "editor", ({ userId }) =>
    typeof isDoubted === "boolean"
      ? Effect.as(attachments.keep(kept, userId), isDoubted)
      : attachments.keepAsKnown(kept, userId)
  )
  const from: FileAttachmentEvent["source"] = isData ? { type: "upload" } : { type: "url", url: address }
  return fileEventOf(from, { ...file, untrusted }, { ...shared, isDoubted: false })
})

/** A file is untrusted if it was uploaded as such or the caller marks it so. */
const fileEventOf = (
  source: FileAttachmentEvent["source"],
  { untrusted, ...file }: Attachment,
  { isDoubted, ...shared }: FileWords
): NewEvent => ({
  type: "FileAttachmentEvent",
  source,
  ...file,
  ...shared,
  ...(untrusted || isDoubted ? { untrusted: true } : {})
})

/** The fields of a file event beside the file itself. */
interface FileWords {
  readonly fileName: string | null
  readonly triggersAgentTurn: boolean
  readonly isDoubted: boolean
}

// Validates an event against the log that it is added to.
//
// Runs in the transaction that appends the event, with the log locked, so that two concurrent events are validated one after the other.

type NewTool = Extract<NewEvent, { readonly type: "DefineToolEvent" }>

/** Succeeds when the log allows the event. */
const makeJudgedEvent = Effect.gen(function* () {
  const agents = yield* Agents
  const contexts = yield* Contexts
  const toolServers = yield* ToolServers

  const judgeTool = Effect.fnUntraced(function* (
    { agentId, name: contextName }: ContextHead,
    event: NewTool
  ) {
    const mixed = findMixedFault(event)
    if (mixed) return yield* invalid(mixed.pointer, mixed.message)
    const tool = definedTool(event)
    const { projectId } = yield* ProjectTransaction
    yield* contexts.lock(contextName)
    const { config } = yield* contexts.load(contextName)
    if (tool === undefined) {
      if (config.tools.some(({ name }) => name === event.name)) return
      return yield* new NotFound({
        detail: `This context defines no tool ${event.name}: there is nothing to take back`
      })
    }
    const agent = yield* agents.get(agentId)
    const terms = {
      isLoop: false,
      maySpawn: (agent?.subAgents ?? []).length > 0,
      maySuggest: agent?.executionMode !== "execute"
    }
    const fault = findToolDefinitionFault(tool, {
      agentName: agent?.name ?? "of this context",
      defined: config.tools,
      offered: yield* toolServers.offered(projectId, agent?.tools ?? [], terms)
    })
    if (fault) return yield* invalid(fault.pointer, fault.message)
  })

  /** The tools of a step are checked again when the step begins, because an agent may lose tools later. */
  const judgeWorkflow = Effect.fnUntraced(function* ({ agentId }: ContextHead, workflow: Workflow) {
    const agent = yield* agents.get(agentId)
    // A deleted agent runs nothing.
    const fault = agent && findWorkflowFault(agent, workflow)
    if (fault) return yield* invalid(fault.pointer, fault.message)
  })

  /** A log only grows, so a parent event that exists stays. */
  const judgeParent = Effect.fnUntraced(function* ({ name }: ContextHead, parent: ContextEventId) {
    const [found] = yield* contexts.read(name, eventNumber(parent) - 1, 1)
    if (found?.id !== parent)
      return yield* invalid("/parentEventId", `The log has no event ${parent}`, "unknownParent")
  })

  const judgeOwn = (
    context: ContextHead,
    event: NewEvent
  ): Effect.Effect<void, InvalidInput | NotFound, ProjectTransaction> => {
    switch (event.type) {
      case "DefineToolEvent":
        return judgeTool(context, event)
      case "DefineWorkflowEvent":
        return judgeWorkflow(context, event)
      default:
        return Effect.void
    }
  }

  return (context: ContextHead, event: NewEvent) =>
    event.parentEventId === undefined
      ? judgeOwn(context, event)
      : Effect.andThen(judgeParent(context, event.parentEventId), judgeOwn(context, event))
})

// Comparisons: send the same message to variants of a context and read the answers side by side.

const knownComparison = orNotFound("comparison")

export const comparisonsHandlers = HttpApiBuilder.group(Api, "comparisons", (handlers) =>
  handlers.handleAll({
    compare: Effect.fn("http.comparisons.compare")(function* ({ params, payload }) {
      const fault = findFault(payload) ?? findTwin(payload)
      if (fault) return yield* invalid(fault.pointer, fault.message)
      const [agents, comparisons, contexts] = [yield* Agents, yield* Comparisons, yield* Contexts]
      const context = yield* looking(params.projectId, "editor", () => spokenContext(params.name))
      for (const [index, { model }] of payload.variants.entries())
        if (model) yield* checkModel(params.projectId, context, model, `/variants/${index}/model`)
      return yield* inProject(params.projectId, "editor", ({ userId }) =>
        Effect.gen(function* () {
          const from = yield* spokenContext(params.name)
          const agent = yield* agents.get(from.agentId)
          if (!agent) return yield* new Conflict({ reason: "state", detail: "The agent is deleted" })
          const { config } = yield* contexts.load(params.name)
          const mayAct = findUnallowed(agent, config.tools, payload)
          if (mayAct) return yield* invalid("/allowWrites", mayAct)
          const id = yield* Effect.catchTags(comparisons.start(from, agent, payload, userId), {
            TriggerRefused: triggerProblem,
            ForkRefused: ({ detail }) => Effect.fail(invalid("/at", detail)),
            PromptFailed: ({ detail }) => Effect.fail(invalid("", detail)),
            ContextExists: ({ name }) =>
              Effect.fail(
                new Conflict({ reason: "nameTaken", detail: `There is already a context named ${name}` })
              )
          })
          return yield* knownComparison(comparisons.get(params.name, id))
        })
      )
    }),
    comparison: Effect.fn("http.comparisons.comparison")(function* ({ params }) {
      const comparisons = yield* Comparisons
      return yield* knownComparison(
        reading(
          params.projectId,
          Effect.andThen(readableContext(params.name), comparisons.get(params.name, params.comparisonId))
        )
      )
    })
  })
)

const findTwin = ({ variants }: ComparisonInput) => {
  const index = variants.findIndex(({ label }, place) =>
    variants.slice(0, place).some((other) => other.label.toLowerCase() === label.toLowerCase())
  )
  return index === -1
    ? undefined
    : {
        pointer: `/variants/${index}/label`,
        message: `There are two variants ${variants[index]?.label}: give each a label of its own`
      }
}

/** Why a comparison needs confirmation: each variant would run the agent's tools for itself. */
const findUnallowed = (
  { steps, tools }: Agent,
  defined: ReadonlyArray<DefinedTool>,
  { allowWrites, variants }: ComparisonInput
) => {
  const acting = [
    ...findActingTools([...tools, ...steps.flatMap((step) => step.tools ?? [])]),
    // The server does not know the side effects of a client's tool.
    ...defined.filter(isClientTool).map(({ name }) => name)
  ]
  return allowWrites === true || acting.length === 0
    ? undefined
    : `The agent has tools that act (${[...new Set(acting)].join(", ")}), and each of the ${variants.length} variants would act for itself: send allowWrites true if they may, or compare with an agent that only reads`
}

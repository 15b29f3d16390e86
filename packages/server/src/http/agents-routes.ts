/** Endpoints for agents: definitions, triggers, entries, backtests and earned autonomy. */
import { Api } from "@tropism/api/api"
import { clampLimit } from "@tropism/api/page"
import { Unauthorized, InvalidInput, Conflict, NotFound } from "@tropism/api/problems"
import type { BatchTriggerInput } from "@tropism/api/processing-api"
import type { AgentVersionSummary } from "@tropism/domain/agent-version"
import type { BacktestResult } from "@tropism/domain/backtest"
import { emptyConfig } from "@tropism/domain/context-config"
import type { ContextName, NewEvent } from "@tropism/domain/context-event"
import type { FlowStep } from "@tropism/domain/flow"
import type { AgentId, ProjectId } from "@tropism/domain/ids"
import type { ModelProvider, ModelRef } from "@tropism/domain/model-config"
import type { ProcessingEntry } from "@tropism/domain/processing"
import { isAtRest, type Run } from "@tropism/domain/run"
import { Effect, identity, Option } from "effect"
import { HttpServerResponse } from "effect/http"
import { HttpApiBuilder } from "effect/http-api"
import { Agents } from "../agents/agents.ts"
import { firesOf, previewSchedule } from "../agents/cron-schedules.ts"
import { Declarations, type DeclarationsRefused, Versions } from "../agents/versions.ts"
import type { ContextHead } from "../contexts/contexts.ts"
import { isPassing } from "../database/connection-errors.ts"
import type { ProjectTransaction } from "../database/database.ts"
import { Models } from "../models/models.ts"
import { retryDuringOutages } from "../outbox/outages.ts"
import { BacktestReading } from "../reactions/backtest-reports.ts"
import { type BacktestRefused, Backtests } from "../reactions/backtests.ts"
import { PendingEvents } from "../reactions/explain.ts"
import { AgentHealths, ReactionQueues } from "../reactions/health.ts"
import { Retries } from "../reactions/manual-retries.ts"
import { Triggers, BatchTriggers, type Wanted } from "../reactions/manual-triggers.ts"
import { Autonomy } from "../review/autonomy.ts"
import { makeRecordings } from "../runs/attempt-context.ts"
import { AgentDays } from "../runs/budgets.ts"
import { ProcessingLog } from "../runs/processing-log.ts"
import { inProject, keepingAnswer, reading, currentLoss, looking, spokenContext } from "./access.ts"
import { CurrentKey } from "./idempotency.ts"
import { Closing } from "./listener.ts"
import { triggerInput } from "./optional-body.ts"
import { onVersion, taggedLoosely, pageById, pageByNumber, cursorAt, cursorId, markOf } from "./paging.ts"
import { definitionProblem, invalid, keepable, orNotFound, triggerProblem } from "./problems.ts"

const known = orNotFound("agent")

export const agentsHandlers = HttpApiBuilder.group(Api, "agents", (handlers) =>
  handlers
    .handle(
      "list",
      Effect.fn("http.agents.list")(function* ({ params, query }) {
        const agents = yield* Agents
        return yield* reading(params.projectId, pageById(query, agents.list))
      })
    )
    .handle(
      "create",
      Effect.fn("http.agents.create")(function* ({ params, payload }) {
        yield* keepable(payload)
        const agents = yield* Agents
        const created = inProject(params.projectId, "admin", ({ userId }) =>
          Effect.mapError(agents.create(payload, userId), definitionProblem)
        )
        return yield* Effect.flatMap(created, taggedLoosely)
      })
    )
    .handle(
      "get",
      Effect.fn("http.agents.get")(function* ({ params }) {
        const agents = yield* Agents
        const agent = known(reading(params.projectId, agents.get(params.agentId)))
        return yield* Effect.flatMap(agent, taggedLoosely)
      })
    )
    .handle(
      "update",
      Effect.fn("http.agents.update")(function* ({ params, headers, payload }) {
        yield* keepable(payload)
        const agents = yield* Agents
        const { expectedVersion, ...patch } = payload
        const updated = onVersion(headers, expectedVersion, (terms) =>
          inProject(params.projectId, "admin", ({ userId }) =>
            Effect.mapError(agents.update(params.agentId, patch, userId, terms), definitionProblem)
          )
        )
        return yield* Effect.flatMap(known(updated), taggedLoosely)
      })
    )
    .handle(
      "delete",
      Effect.fn("http.agents.delete")(function* ({ params, headers }) {
        const agents = yield* Agents
        const deleted = onVersion(headers, null, ({ expectedVersion }) =>
          inProject(params.projectId, "admin", () =>
            Effect.mapError(agents.delete(params.agentId, expectedVersion), definitionProblem)
          )
        ).pipe(Effect.catchTag("Conflict", Effect.die))
        yield* known(Effect.map(deleted, (done) => done || undefined))
      })
    )
    .handle(
      "health",
      Effect.fn("http.agents.health")(function* ({ params, query }) {
        const healths = yield* AgentHealths
        return yield* reading(
          params.projectId,
          pageById(query, (before, limit) => healths.list(before, limit, query.agentId))
        )
      })
    )
    .handle(
      "fires",
      Effect.fn("http.agents.fires")(function* ({ params, query }) {
        const fires = firesOf(query.cronSchedule, query.timezone ?? "UTC").pipe(
          Effect.mapError(({ pointer, detail }) => invalid(pointer.slice(1), detail))
        )
        return { fires: yield* reading(params.projectId, fires) }
      })
    )
    .handle(
      "schedule",
      Effect.fn("http.agents.schedule")(function* ({ params }) {
        const agents = yield* Agents
        return yield* orNotFound("schedule: the agent has no cronSchedule")(
          reading(params.projectId, Effect.flatMap(known(agents.get(params.agentId)), previewSchedule))
        )
      })
    )
    .handle(
      "usage",
      Effect.fn("http.agents.usage")(function* ({ params, query }) {
        const agents = yield* Agents
        const agentDays = yield* AgentDays
        const items = Effect.andThen(
          known(agents.get(params.agentId)),
          agentDays.last(params.agentId, query.days ?? 30)
        )
        return { items: yield* reading(params.projectId, items) }
      })
    )
    .handle(
      "modelUsage",
      Effect.fn("http.agents.modelUsage")(function* ({ params, query }) {
        const agents = yield* Agents
        const agentDays = yield* AgentDays
        const items = Effect.andThen(
          known(agents.get(params.agentId)),
          agentDays.byModel(params.agentId, query.days ?? 30)
        )
        return { items: yield* reading(params.projectId, items) }
      })
    )
    .handleRaw(
      "trigger",
      Effect.fn("http.agents.trigger")(function* ({ params, query }) {
        const input = yield* triggerInput
        yield* keepable(input)
        const agents = yield* Agents
        const triggers = yield* Triggers
        const isKeyed = (yield* CurrentKey) !== undefined
        let begun: Run | undefined
        const runId = yield* inProject(params.projectId, "editor", ({ userId }) =>
          Effect.gen(function* () {
            const agent = yield* known(agents.get(params.agentId))
            const id = yield* Effect.catchTag(
              triggers.byHand(agent, input, userId),
              "TriggerRefused",
              triggerProblem
            )
            if (!isKeyed) begun = yield* triggers.seen(id)
            return id
          })
        )
        const isAwaited = query.wait !== "false"
        const lost = yield* currentLoss(params.projectId)
        const now = triggers.look(params.projectId, runId)
        const { lastCall } = yield* Closing
        const awaited = Effect.raceAllFirst([
          triggers.settled(params.projectId, runId),
          Effect.andThen(lost, Effect.fail(lostToken)),
          // With a key, another server can deliver the result. Without one, only steps that finish quickly may follow.
          Effect.andThen(lastCall, begun === undefined ? Effect.never : Effect.succeed(begun))
        ])
        const answer = keepingAnswer(
          params.projectId,
          "editor",
          isAwaited ? "awaited" : "at once",
          known(isAwaited ? awaited : now),
          isAwaited ? retryDuringOutages : identity
        )
        // The run has begun even if it cannot be read now. A client without a key would trigger it again after an error, so answer.
        const run = yield* Effect.catchDefect(answer, (defect) =>
          begun !== undefined && isPassing(defect) ? Effect.succeed(begun) : Effect.die(defect)
        )
        return yield* Effect.orDie(HttpServerResponse.json(run, { status: isAtRest(run) ? 200 : 202 }))
      })
    )
)

/** The answer to a waiting caller whose token may no longer read the result. */
const lostToken = new Unauthorized({
  detail: "Your token is not good any more, or has another role by now: the run was begun and goes on"
})

// Agent definitions: versions over time and import from files.

const knownVersion = orNotFound("version of this agent")

export const definitionsHandlers = HttpApiBuilder.group(Api, "definitions", (handlers) =>
  handlers.handleAll({
    apply: Effect.fn("http.definitions.apply")(function* ({ params, payload }) {
      yield* keepable(payload)
      const declarations = yield* Declarations
      const agents = yield* inProject(params.projectId, "admin", ({ userId }) =>
        Effect.mapError(declarations.apply(payload, userId), (refused) =>
          refused._tag === "DeclarationsRefused" ? faultsProblem(refused) : definitionProblem(refused)
        )
      )
      return { dryRun: payload.dryRun === true, agents }
    }),
    versions: Effect.fn("http.definitions.versions")(function* ({ params, query }) {
      const [agents, versions] = [yield* Agents, yield* Versions]
      return yield* reading(
        params.projectId,
        Effect.andThen(
          // Runs outlive their agent and refer to its versions, so a deleted agent is found by them.
          known(agents.version(params.agentId, 1)),
          pageByNumber(
            query,
            ({ version }: AgentVersionSummary) => version,
            (before, limit) => versions.list(params.agentId, before, limit)
          )
        )
      )
    }),
    version: Effect.fn("http.definitions.version")(function* ({ params }) {
      const versions = yield* Versions
      return yield* knownVersion(reading(params.projectId, versions.get(params.agentId, params.version)))
    }),
    diff: Effect.fn("http.definitions.diff")(function* ({ params, query }) {
      const versions = yield* Versions
      return yield* knownVersion(
        reading(params.projectId, versions.diff(params.agentId, query.from, params.version))
      )
    }),
    restore: Effect.fn("http.definitions.restore")(function* ({ params, headers }) {
      const versions = yield* Versions
      const restored = onVersion(headers, null, ({ expectedVersion }) =>
        inProject(params.projectId, "admin", ({ userId }) =>
          Effect.mapError(
            versions.restore(params.agentId, params.version, userId, expectedVersion),
            definitionProblem
          )
        )
      )
      return yield* Effect.flatMap(knownVersion(restored), taggedLoosely)
    })
  })
)

const faultsProblem = ({ faults }: DeclarationsRefused): InvalidInput => {
  const [first] = faults
  const others = faults.length > 1 ? `, and ${faults.length - 1} more` : ""
  return new InvalidInput({
    detail: first ? `${first.pointer}: ${first.message}${others}` : "The definitions cannot be right",
    errors: faults
  })
}

// Backtests: start one, read its result, cancel it.

const knownAgent = orNotFound("agent")
const knownBacktest = orNotFound("backtest")

/** Backtests outlive their agent, which is then found by its versions. */
const ofAgent = <A, E, R>(
  { agentId, projectId }: { readonly agentId: AgentId; readonly projectId: ProjectId },
  read: Effect.Effect<A, E, R>
) =>
  Effect.flatMap(Agents, (agents) =>
    reading(projectId, Effect.andThen(knownAgent(agents.version(agentId, 1)), read))
  )

const refusal = ({ detail, index, reason }: BacktestRefused): Conflict | InvalidInput => {
  if (reason === "noVersion") return invalid("/version", detail)
  if (reason === "noWindow") return invalid("/days", detail)
  if (reason === "noObject") return invalid(`/objectIds/${index}`, detail)
  return new Conflict({ reason: "state", detail })
}

export const backtestsHandlers = HttpApiBuilder.group(Api, "backtests", (handlers) =>
  handlers.handleAll({
    begin: Effect.fn("http.backtests.begin")(function* ({ params, payload }) {
      const [agents, backtests] = [yield* Agents, yield* Backtests]
      return yield* inProject(params.projectId, "editor", ({ userId }) =>
        Effect.gen(function* () {
          const agent = yield* knownAgent(agents.get(params.agentId))
          return yield* Effect.mapError(backtests.begin(agent, payload, userId), refusal)
        })
      )
    }),
    list: Effect.fn("http.backtests.list")(function* ({ params, query }) {
      const backtests = yield* Backtests
      return yield* ofAgent(
        params,
        pageById(query, (before, limit) => backtests.list(params.agentId, before, limit))
      )
    }),
    get: Effect.fn("http.backtests.get")(function* ({ params }) {
      const [backtests, results] = [yield* Backtests, yield* BacktestReading]
      return yield* reading(
        params.projectId,
        Effect.gen(function* () {
          const backtest = yield* knownBacktest(backtests.get(params.agentId, params.backtestId))
          return { ...backtest, report: yield* results.report(backtest.id) }
        })
      )
    }),
    results: Effect.fn("http.backtests.results")(function* ({ params, query }) {
      const [backtests, results] = [yield* Backtests, yield* BacktestReading]
      return yield* reading(
        params.projectId,
        Effect.andThen(
          knownBacktest(backtests.get(params.agentId, params.backtestId)),
          pageByNumber(
            query,
            ({ number }: BacktestResult) => number,
            (after, limit) => results.page(params.backtestId, after ?? 0, limit)
          )
        )
      )
    }),
    cancel: Effect.fn("http.backtests.cancel")(function* ({ params }) {
      const backtests = yield* Backtests
      return yield* inProject(params.projectId, "editor", () =>
        knownBacktest(backtests.cancel(params.agentId, params.backtestId)).pipe(
          Effect.catchTag("BacktestRefused", ({ detail }) =>
            Effect.fail(new Conflict({ reason: "state", detail }))
          )
        )
      )
    })
  })
)

// An agent's entries: read them and retry them.

const noEntry = new NotFound({ detail: "There is no such entry" })

/** A page of an agent's entries. The log outlives its agent, which is then found by its versions (S001-R20). */
const entriesOf = <A extends ProcessingEntry>(
  { agentId, projectId }: { readonly agentId: AgentId; readonly projectId: ProjectId },
  query: Parameters<typeof pageById>[0],
  read: (
    before: string | undefined,
    limit: number
  ) => Effect.Effect<ReadonlyArray<A>, never, ProjectTransaction>
) =>
  Effect.flatMap(Agents, (agents) =>
    reading(projectId, Effect.andThen(known(agents.version(agentId, 1)), pageById(query, read)))
  )

export const processingHandlers = HttpApiBuilder.group(Api, "processing", (handlers) =>
  handlers
    .handle(
      "queues",
      Effect.fn("http.processing.queues")(function* ({ params, query }) {
        const queues = yield* ReactionQueues
        return yield* reading(
          params.projectId,
          pageById(query, (before, limit) => queues.list(before, limit))
        )
      })
    )
    .handle(
      "log",
      Effect.fn("http.processing.log")(function* ({ params, query }) {
        const log = yield* ProcessingLog
        return yield* entriesOf(params, query, (before, limit) =>
          log.list(params.agentId, query.status, before, limit)
        )
      })
    )
    .handle(
      "retry",
      Effect.fn("http.processing.retry")(function* ({ params }) {
        const agents = yield* Agents
        const log = yield* ProcessingLog
        const retries = yield* Retries
        return yield* inProject(params.projectId, "editor", ({ userId }) =>
          Effect.gen(function* () {
            const agent = yield* known(agents.get(params.agentId))
            const entry = yield* orNotFound("entry")(log.get(params.entryId))
            if (entry.agentId !== agent.id) return yield* noEntry
            return yield* retries.retry(agent, entry, userId).pipe(
              Effect.catchTag("RetryRefused", ({ detail }) =>
                Effect.fail(new Conflict({ reason: "state", detail }))
              ),
              Effect.catchTag("TriggerRefused", triggerProblem)
            )
          })
        )
      })
    )
    .handle(
      "deadLetters",
      Effect.fn("http.processing.deadLetters")(function* ({ params, query }) {
        const log = yield* ProcessingLog
        return yield* entriesOf(params, query, (before, limit) => log.listDead(params.agentId, before, limit))
      })
    )
    .handle(
      "redrive",
      Effect.fn("http.processing.redrive")(function* ({ params, payload }) {
        const agents = yield* Agents
        const retries = yield* Retries
        return yield* inProject(params.projectId, "editor", ({ userId }) =>
          Effect.gen(function* () {
            const agent = yield* known(agents.get(params.agentId))
            return yield* Effect.catchTag(
              retries.redrive(agent, payload.ids ?? undefined, userId),
              "TriggerRefused",
              triggerProblem
            )
          })
        )
      })
    )
    .handle(
      "pendingEvents",
      Effect.fn("http.processing.pendingEvents")(function* ({ params, query }) {
        const agents = yield* Agents
        const pending = yield* PendingEvents
        const mark = yield* markOf(query)
        const before = yield* cursorId(query, mark)
        return yield* reading(
          params.projectId,
          Effect.flatMap(known(agents.get(params.agentId)), (agent) =>
            Effect.map(pending.page(agent, before, clampLimit(query.limit)), (page) => ({
              ...page,
              nextCursor: page.nextCursor === null ? null : cursorAt(page.nextCursor, mark)
            }))
          )
        )
      })
    )
    .handle(
      "batchTrigger",
      Effect.fn("http.processing.batchTrigger")(function* ({ params, payload }) {
        const agents = yield* Agents
        const batches = yield* BatchTriggers
        const wanted = yield* wantedOf(payload)
        return yield* inProject(params.projectId, "editor", ({ userId }) =>
          Effect.flatMap(known(agents.get(params.agentId)), (agent) =>
            Effect.catchTag(batches.trigger(agent, wanted, userId), "TriggerRefused", triggerProblem)
          )
        )
      })
    )
)

/** Objects or events, never both: the same item would be queued twice. */
const wantedOf = ({
  eventIds,
  objectIds
}: typeof BatchTriggerInput.Type): Effect.Effect<Wanted, InvalidInput> => {
  if (objectIds && !eventIds) return Effect.succeed({ type: "objects", ids: objectIds })
  if (eventIds && !objectIds) return Effect.succeed({ type: "events", ids: eventIds })
  return Effect.fail(
    invalid(objectIds ? "/eventIds" : "/objectIds", "Name either objectIds or eventIds, and not both")
  )
}

// Earned autonomy: read it and revoke it.

export const autonomyHandlers = HttpApiBuilder.group(Api, "autonomy", (handlers) =>
  handlers
    .handle(
      "get",
      Effect.fn("http.autonomy.get")(function* ({ params, query }) {
        const autonomy = yield* Autonomy
        const earned = autonomy.of(params.agentId, query.version)
        return yield* orNotFound("agent, or version of it")(reading(params.projectId, earned))
      })
    )
    .handle(
      "reverse",
      Effect.fn("http.autonomy.reverse")(function* ({ params, payload }) {
        yield* keepable(payload)
        const autonomy = yield* Autonomy
        return yield* inProject(params.projectId, "reviewer", ({ userId }) =>
          Effect.filterOrFail(
            orNotFound("promotion")(
              autonomy.reverse(params.agentId, params.promotionId, userId, payload.reason ?? null)
            ),
            (reversed) => reversed !== false,
            () =>
              new Conflict({
                reason: "alreadyDecided",
                detail: "The promotion has ended already: the agent asks for such changes"
              })
          )
        )
      })
    )
)

// Refuses a model that could not be used when its turn comes.
//
// Otherwise the run fails minutes after the model was set. The check calls no provider, and no transaction is open while it looks for the
// model.

/** Checks each model that an event sets. */
export const checkModels = Effect.fnUntraced(function* (
  projectId: ProjectId,
  name: ContextName,
  event: NewEvent
) {
  if (
    event.type !== "SetLlmConfigEvent" &&
    event.type !== "SetGuardEvent" &&
    event.type !== "DefineWorkflowEvent"
  )
    return
  // Authorization comes before any look-up.
  const context = yield* looking(projectId, "editor", () => spokenContext(name))
  if (event.type === "SetLlmConfigEvent") return yield* checkModel(projectId, context, event, "")
  if (event.type === "DefineWorkflowEvent") return yield* checkSteps(projectId, context, event.steps)
  const agents = yield* Agents
  const agent = yield* looking(projectId, "editor", () => agents.get(context.agentId))
  if (agent?.model?.guard)
    return yield* invalid("/guard", `The guard of ${agent.name} is in its definition: change it there`)
  if (event.guard?.provider === "replay")
    return yield* invalid("/guard/provider", "A recorded run cannot judge: name a model that can be asked")
  if (event.guard) yield* checkModel(projectId, context, event.guard, "/guard", true)
})

/** Checks the models of a workflow's steps; a script is validated with the workflow itself. */
const checkSteps = Effect.fnUntraced(function* (
  projectId: ProjectId,
  context: ContextHead,
  steps: ReadonlyArray<FlowStep>
) {
  for (const [index, { model }] of steps.entries())
    if (model !== null && model.provider !== "scripted")
      yield* checkModel(projectId, context, model, `/steps/${index}/model`)
})

/** Refuses a model that is not available in a context; `pointer` is its place in the request. */
export const checkModel = Effect.fnUntraced(function* (
  projectId: ProjectId,
  { agentId, name: contextName }: ContextHead,
  { name, provider }: ModelRef,
  pointer: string,
  isGuard = false
) {
  const agents = yield* Agents
  const models = yield* Models
  const recordingsOf = yield* makeRecordings
  const agent = yield* looking(projectId, "editor", () => agents.get(agentId))
  // A deleted agent runs nothing.
  if (!agent) return
  const set = { provider, name }
  yield* models
    .resolve({
      agentName: agent.name,
      // The agent's own script answers for the agent and cannot act as its guard.
      model: isGuard ? null : agent.model,
      settings: { ...emptyConfig, primary: Option.some(set) },
      readRecord: recordingsOf(projectId, contextName)
    })
    .pipe(Effect.mapError(({ message }) => invalid(`${pointer}/${wrongPart(provider)}`, message)))
})

/** For a model inside this program the name is wrong; for all others, the provider is not configured. */
const wrongPart = (provider: ModelProvider): "name" | "provider" =>
  provider === "scripted" || provider === "replay" ? "name" : "provider"

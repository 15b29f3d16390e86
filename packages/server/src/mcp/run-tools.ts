/**
 * Runs as people meet them through MCP: look at one, read its log, stop it, plan to take back what it did.
 *
 * Flow: **mcp** → graph → outbox → dispatch → run → tool → task
 *
 * What is said in somebody's own conversation is there for that person and for
 * admins; others see that the run is there, and none of its words.
 */
import type { ContextName } from "@tropism/domain/context-event"
import { CurrentPrincipal } from "@tropism/api/authorization"
import { RunId } from "@tropism/domain/ids"
import { type Run, RunStatus } from "@tropism/domain/run"
import { Effect, Schema } from "effect"
import { Contexts } from "../agent/contexts.ts"
import { cancelling } from "../http/cancelling.ts"
import { logPage } from "../http/context-log.ts"
import { readableRun, shownRun } from "../http/owned.ts"
import { pageById } from "../http/paging.ts"
import { Descendants } from "../run/descendants.ts"
import { Endings } from "../run/endings.ts"
import { Runs } from "../run/runs.ts"
import { Undos } from "../task/undos.ts"
import { adds, type PersonPrincipal, personTool, reads, takesAway } from "../tool/person-tool.ts"
import { makeFindAgent } from "./agent-tools.ts"
import { asJson, failed, known, opt, pageArguments, pageOf, pageShape, principalOf } from "./told.ts"

const knownRun = known("run")

/** A run in a list: what is said in it stands in the run itself. */
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

  /** A page of a run's log, in order; somebody else's conversation has none for this person. */
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

export const makeRunTools = Effect.gen(function* () {
  const runs = yield* Runs
  const descendants = yield* Descendants
  const undos = yield* Undos
  const findAgent = yield* makeFindAgent
  const reading = yield* makeRunReading
  const services = yield* Effect.context<Runs | Endings>()

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
        // When the answer is there, nothing below the run writes any more.
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

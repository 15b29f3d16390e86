/**
 * Holds runs back during a provider outage, with circuit breakers that decide which run probes the provider.
 *
 * A breaker belongs to a route, the servers and models that one request may reach, and is a row shared by all servers. A run whose request
 * fails because of an outage is queued again in one transaction with the breaker, fenced by its attempt's token: it uses no slot, and
 * claims skip it. While the breaker is open one run at a time is released as a probe; an answer closes the breaker and releases the others.
 * The in-memory copy only saves queries.
 */
import { Context, Effect, Layer, Stream } from "effect"
import { SqlClient } from "effect/sql"
import { orDie, type ProjectTransaction } from "../database/database.ts"
import { modelLimits, runLimits } from "../limits.ts"
import {
  isAway,
  ModelFailure,
  type ModelPart,
  type ModelRequest,
  type ResolvedModel
} from "../models/model-request.ts"
import { drive, survive, untilNotified, Notifier } from "../outbox/notifier.ts"
import { retryDuringOutages } from "../outbox/outages.ts"
import { makeFencing, RunNotInState } from "./fencing.ts"
import type { ClaimedRun } from "./run-types.ts"

/** A breaker as this server knows it. */
interface Known {
  readonly failures: number
  readonly isOpen: boolean
}

/** The database's decision on a request while a breaker is open. */
interface Admission {
  readonly isAdmitted: boolean
  readonly failures: number
  readonly since: Date
  readonly reason: string
}

/** The state of a run that has waited before. */
interface WaitedRow {
  readonly waitTries: number
  readonly waitsSince: Date | null
  /** Its last failure. */
  readonly waitMessage: string | null
  readonly isOver: boolean
}

export class ProviderWaits extends Context.Service<
  ProviderWaits,
  {
    /**
     * Wraps a run's model so that it makes no request while its breaker is open, unless the run is the probe. Conversations may always make
     * requests.
     */
    readonly watched: (run: ClaimedRun, model: ResolvedModel) => ResolvedModel
    /** Queues the run until the outage it met ends. After too long a wait it changes nothing and returns why the run fails. */
    readonly wait: (
      run: ClaimedRun,
      failure: ModelFailure,
      route: string
    ) => Effect.Effect<string | undefined, RunNotInState, ProjectTransaction>
    /** Releases runs that may continue, until interrupted. */
    readonly run: Effect.Effect<never>
  }
>()("@tropism/server/run/ProviderWaits") {
  static readonly layer = Layer.effect(
    ProviderWaits,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const notifier = yield* Notifier
      const breakers = yield* makeBreakers
      const wait = yield* makeWait

      const watched = (run: ClaimedRun, model: ResolvedModel): ResolvedModel => {
        const { route } = model
        if (route === null) return model
        const mayWait = run.trigger.type !== "context"
        const mayRetry = (failure: ModelFailure): boolean =>
          breakers.mayRetry(route, failure) && (failure.retryAfterMs ?? 0) <= runLimits.providerPauseMaxMs
        /** A breaker that opened while the request waited for its turn blocks it too. */
        const admitted = Effect.gen(function* () {
          if ((yield* breakers.find(route))?.isOpen !== true) return
          const admission = yield* breakers.admit(route, run)
          if (admission?.isAdmitted === false) return yield* heldBack(model, route, admission)
        })
        const ask = (request: ModelRequest, seen: Admission | Known | undefined) =>
          Stream.mapError(
            answered(model.request(mayWait ? { ...request, mayRetry, admitted } : request), route, seen),
            (failure) =>
              mayWait && isAway(failure)
                ? new ModelFailure({ ...failure, message: failure.message, waitsFor: route })
                : failure
          )
        const request = (wanted: ModelRequest) =>
          Stream.unwrap(
            Effect.gen(function* () {
              const known = yield* breakers.find(route)
              if (!mayWait || known?.isOpen !== true) return ask(wanted, known)
              const admission = yield* breakers.admit(route, run)
              return admission?.isAdmitted === false
                ? Stream.fail(heldBack(model, route, admission))
                : ask(wanted, admission)
            })
          )
        return { ...model, request }
      }

      /** Closes the breaker with the answer: at its first part, unless the failures were answers that broke off. */
      const answered = (
        parts: Stream.Stream<ModelPart, ModelFailure>,
        route: string,
        seen: Admission | Known | undefined
      ) => {
        const closed = breakers.close(route, seen?.failures)
        if (seen === undefined || !("reason" in seen) || seen.reason === "cut")
          return Stream.onEnd(parts, closed)
        let isClosed = false
        return Stream.tap(parts, () => {
          if (isClosed) return Effect.void
          isClosed = true
          return closed
        })
      }

      const round = Effect.gen(function* () {
        yield* breakers.refresh
        const [row] = yield* orDie(
          sql<{ woken: number }>`
            select kb.wake_waiting_runs(${runLimits.providerWakeRuns}, ${runLimits.leaseMs / 1_000}::float8, ${longestWait}) as woken`
        )
        const woken = row?.woken ?? 0
        if (woken > 0) yield* notifier.signal("runs")
        return false
      })

      return ProviderWaits.of({
        watched,
        wait,
        run: drive("Provider waits", "providers", untilNotified, round).pipe(
          Effect.provideService(Notifier, notifier)
        )
      })
    })
  )
}

const longestWait = runLimits.providerWaitMaxMs / 1_000

/** Keeps the breakers by route: database rows and an in-memory copy. */
const makeBreakers = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const notifier = yield* Notifier
  /** Undefined until the first read. */
  let known: Map<string, Known> | undefined
  /** Consecutive failed tries on this server, by route. */
  const failedInRow = new Map<string, number>()

  const refresh = Effect.gen(function* () {
    const rows = yield* sql<Known & { readonly route: string }>`
      select * from kb.known_outages(${runLimits.providerRoutes})`
    known = new Map(rows.map(({ failures, isOpen, route }) => [route, { failures, isOpen }]))
  }).pipe(orDie)

  const find = (route: string) =>
    known === undefined
      ? Effect.map(retryDuringOutages(refresh), () => known?.get(route))
      : Effect.sync(() => known?.get(route))

  const admit = Effect.fnUntraced(function* (route: string, { id }: ClaimedRun) {
    const probeSeconds = (modelLimits.firstPieceTimeoutMs + runLimits.leaseMs) / 1_000
    const [row] = yield* retryDuringOutages(
      orDie(sql<Admission>`select * from kb.admit_to_route(${route}, ${id}::uuid, ${probeSeconds}::float8)`)
    )
    if (row === undefined) known?.delete(route)
    return row
  })

  const close = (route: string, seenFailures: number | undefined) =>
    Effect.suspend(() => {
      failedInRow.delete(route)
      if (known?.has(route) !== true) return Effect.void
      const closed = sql<{
        closed: boolean
      }>`select kb.close_outage(${route}, ${seenFailures ?? -1}) as closed`
      // The answer is paid for, so it is kept even if the breaker stays open; the next probe closes it.
      return survive("Closing a circuit breaker", orDie(closed), []).pipe(
        Effect.flatMap(([row]) => {
          if (row?.closed !== true) return Effect.void
          known?.delete(route)
          return Effect.andThen(
            Effect.logInfo("A provider answers again: the runs that wait for it go on", { route }),
            notifier.signal("providers")
          )
        })
      )
    })

  /** Many consecutive failures here, or an open breaker, indicate an outage; the run then waits in the queue instead of retrying. */
  const mayRetry = (route: string, { reason }: ModelFailure): boolean => {
    if (failedInRow.size >= runLimits.providerRoutes) failedInRow.clear()
    const failed = (failedInRow.get(route) ?? 0) + 1
    failedInRow.set(route, failed)
    return (
      reason !== "silent" && failed < runLimits.providerFailuresInRow && known?.get(route)?.isOpen !== true
    )
  }

  return { admit, close, find, mayRetry, refresh }
})

const makeWait = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const notifier = yield* Notifier
  const { held } = yield* makeFencing

  /** Opens the breaker or postpones its next probe. */
  const note = Effect.fnUntraced(function* (run: ClaimedRun, failure: ModelFailure, route: string) {
    const pauseSeconds = (failure.retryAfterMs ?? 0) / 1_000
    const [row] = yield* sql<{ since: Date; isOpen: boolean }>`
      select * from kb.note_outage(${route}, ${failure.reason}, ${!failure.outputBegan}, ${run.id}::uuid, ${pauseSeconds}::float8,
        ${runLimits.providerPauseMs / 1_000}::float8, ${runLimits.providerProbeMaxMs / 1_000}::float8, ${runLimits.providerCutsInRow})`
    return row
  })

  /** A run's own tries lengthen its wait, so that others become the next probes; a run that was held back may continue at once. */
  const pauseMsOf = (waitTries: number, wasAsked: boolean): number =>
    wasAsked
      ? Math.min(runLimits.providerProbeMaxMs, runLimits.providerPauseMs * 2 ** Math.min(waitTries, 20))
      : 0

  return Effect.fn("ProviderWaits.wait")(function* (run: ClaimedRun, failure: ModelFailure, route: string) {
    const [row] = yield* sql<WaitedRow>`
      select wait_tries, waits_since, wait_message, coalesce(waits_since < now() - make_interval(secs => ${longestWait}::float8), false) as is_over
      from kb.agent_runs where ${held(run)} for no key update`
    if (row === undefined) return yield* new RunNotInState({ runId: run.id })
    const wasAsked = !failure.wasHeldBack
    const outage = wasAsked ? yield* note(run, failure, route) : undefined
    const { isOver, waitMessage, waitsSince, waitTries } = row
    const message = wasAsked ? failure.message : (waitMessage ?? failure.message)
    // The model has answered other runs since but never this one, so its request is at fault. Rate limits are excluded.
    const isAlone =
      outage !== undefined &&
      failure.reason !== "rateLimited" &&
      waitsSince !== null &&
      outage.since > waitsSince &&
      waitTries >= runLimits.providerTriesAlone
    if (isAlone) return `${message} (tried ${waitTries + 1} times, while the model answered others)`
    if (isOver) return `The provider was away for ${longestWait / 3_600} h: ${message}`
    const tries = wasAsked ? 1 : 0
    const waiting = sql`update kb.agent_runs set status = 'queued', attempt_token = null, lease_expires_at = null, partial_text = null,
        attempt = greatest(attempt - 1, 0), attempts_before_step = least(attempts_before_step, greatest(attempt - 1, 0)),
        time_left_ms = (extract(epoch from deadline_at - now()) * 1000)::bigint, deadline_at = null,
        waits_for = ${route}, waits_since = coalesce(waits_since, now()), wait_tries = wait_tries + ${tries}::int,
        waits_until = now() + make_interval(secs => ${pauseMsOf(waitTries, wasAsked) / 1_000}::float8),
        wait_message = ${message}
      where ${held(run)}`
    yield* waiting
    // The ancestors wait for the provider as well, so their deadlines stop until the run continues.
    if (run.ancestors.length > 0)
      yield* sql`
        update kb.agent_runs set time_left_ms = (extract(epoch from deadline_at - now()) * 1000)::bigint, deadline_at = null
        where id = any(array(
          select id from kb.agent_runs where id = any(${run.ancestors}::uuid[]) and status = 'paused' and pause_reason = 'subAgents'
            and deadline_at > now() order by id for no key update))`
    yield* sql.afterCommit(notifier.signal("providers"))
    yield* sql.afterCommit(notifier.signal(`run:${run.id}`))
    return undefined
  }, orDie)
})

/** Builds the failure of a request that is held back. */
const heldBack = ({ name, provider }: ResolvedModel, route: string, { reason, since }: Admission) =>
  new ModelFailure({
    provider,
    model: name,
    reason: "unavailable",
    message: `${provider}:${name} is away since ${since.toISOString()}: ${outageSentence(reason)}`,
    outputBegan: false,
    isRetryable: false,
    retryAfterMs: null,
    waitsFor: route,
    wasHeldBack: true
  })

/** Describes an outage for people; the provider's own text may belong to another project. */
export const outageSentence = (reason: string): string => outageSentences[reason] ?? "its requests fail"

const outageSentences: Readonly<Record<string, string>> = {
  rateLimited: "it refuses requests because there are too many",
  unavailable: "it fails requests with a server error",
  silent: "it takes requests and sends nothing",
  cut: "it cannot be reached, or its answers break off"
}

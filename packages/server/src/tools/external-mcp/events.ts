/**
 * Polls a foreign server for events and reads its answer.
 *
 * The answer is untrusted: what is read is bounded, storable and free of the connection's secrets. An invalid answer is a fault
 * and counts for nothing, so no event is lost and the poll is repeated.
 */
import { findFault, withoutForbiddenKeys } from "@tropism/domain/json"
import { keptChars } from "@tropism/domain/kept-size"
import { Context, Effect, Layer, Schema } from "effect"
import { type Connection, ExternalConnections } from "./connections.ts"
import { answered, type ExternalFault } from "./faults.ts"
import type { Whom } from "./oauth-grants.ts"
import { scrubAll } from "./results.ts"

export const sourceLimits = {
  /** Events requested per poll, and the maximum accepted. */
  pollEvents: 50,
  answerMaxEvents: 500,
  /** Poll interval when the server names none, and its bounds otherwise. */
  pollMs: 5_000,
  pollMinMs: 1_000,
  pollMaxMs: 3_600_000,
  /** Backoff after a poll without a usable answer; doubles each time. */
  backOffBaseMs: 1_000,
  backOffMaxMs: 60_000,
  /** A poll claimed by a silent program passes to another after this: longer than a connection and an answer may take. */
  claimMs: 90_000,
  /** Concurrent polls of one program, of those reserved for projects without any, and per project. */
  concurrentPolls: 16,
  sparePolls: 4,
  pollsPerProject: 4,
  cursorMaxChars: 4_000,
  eventIdMaxChars: 500,
  /** Maximum payload as JSON text; a larger one is left out. */
  payloadMaxChars: 65_536,
  /** Occurrences dated further ahead are skipped, because they would have to be remembered for as long. */
  occurrenceMaxAheadMs: 86_400_000
} as const

/** A poll request. */
export interface Question {
  readonly name: string
  readonly arguments: unknown
  /** Null starts now. */
  readonly cursor: string | null
}

/** One event from a server. */
export interface Told {
  readonly eventId: string
  readonly happenedAt: string
  readonly payload: Schema.Json
  /** The payload, or a part of it, was left out. */
  readonly payloadOmitted: boolean
}

/** A validated answer. */
export interface Telling {
  readonly events: ReadonlyArray<Told>
  readonly cursor: string
  readonly hasMore: boolean
  readonly truncated: boolean
  /** The poll interval that the server requests, not checked yet. */
  readonly nextPollMs: number | null
}

/** Polls a server; the simulation replaces it. */
export class EventQuestions extends Context.Reference<
  ((whom: Whom, params: Record<string, unknown>) => Effect.Effect<unknown, ExternalFault>) | undefined
>("@tropism/server/tool/EventQuestions", { defaultValue: () => undefined }) {}

export class ExternalEvents extends Context.Service<
  ExternalEvents,
  {
    /** Polls once; stores nothing. */
    readonly ask: (whom: Whom, question: Question) => Effect.Effect<Telling, ExternalFault>
  }
>()("@tropism/server/tool/ExternalEvents") {
  static readonly layer = Layer.effect(
    ExternalEvents,
    Effect.gen(function* () {
      const connections = yield* ExternalConnections
      const simulated = yield* EventQuestions

      /** Applies a fault to the connection, for later polls. */
      const heed = (connection: Connection, { isBroken, outcome }: ExternalFault) =>
        isBroken
          ? connections.drop(connection)
          : Effect.sync(() => {
              if (outcome === "unknown") connection.isDoubtful = true
            })

      const put = (whom: Whom, params: Record<string, unknown>) => {
        const over = (connection: Connection) =>
          connection.client.pollEvents(params).pipe(
            Effect.tapError((fault) => heed(connection, fault)),
            Effect.flatMap((answer) => scrubbed(answer, connection.client.scrub))
          )
        return Effect.flatMap(connections.get(whom), (connection) =>
          // A session that the server has forgotten is opened again, once.
          Effect.catchIf(
            over(connection),
            ({ isForgotten = false }) => isForgotten,
            () => Effect.flatMap(connections.get(whom), over)
          )
        ).pipe(Effect.scoped)
      }

      const ask = Effect.fn("ExternalEvents.ask")(function* (whom: Whom, question: Question) {
        const { cursor, name } = question
        const params = {
          name,
          arguments: question.arguments,
          maxEvents: sourceLimits.pollEvents,
          ...(cursor === null ? {} : { cursor })
        }
        const answer = yield* simulated ? simulated(whom, params) : put(whom, params)
        return yield* readTelling(answer, question)
      })

      return ExternalEvents.of({ ask })
    })
  )
}

/** Removes the connection's secrets from the answer, in case the server echoes them. */
const scrubbed = (answer: unknown, scrub: (text: string) => string): Effect.Effect<unknown, ExternalFault> =>
  Effect.try({
    try: (): unknown => scrubAll(answer, scrub),
    catch: () => unusable("it is no JSON")
  })

const nullable = <S extends Schema.Constraint>(schema: S) => Schema.optional(Schema.NullOr(schema))

const Answer = Schema.Struct({
  events: Schema.Array(
    Schema.Struct({
      eventId: Schema.String.check(Schema.isBetweenLength(1, sourceLimits.eventIdMaxChars)),
      name: Schema.String,
      timestamp: Schema.String,
      data: Schema.optional(Schema.Unknown)
    })
  ).check(Schema.isMaxLength(sourceLimits.answerMaxEvents)),
  cursor: Schema.String.check(Schema.isBetweenLength(1, sourceLimits.cursorMaxChars)),
  hasMore: nullable(Schema.Boolean),
  truncated: nullable(Schema.Boolean),
  nextPollMs: nullable(Schema.Finite)
})

const decode = Schema.decodeUnknownEffect(Answer)

const unusable = (why: string): ExternalFault =>
  answered(`The server's answer to events/poll cannot be used: ${why}`)

/** Validates an answer. */
export const readTelling = Effect.fnUntraced(function* (
  answer: unknown,
  { cursor, name }: Question
): Effect.fn.Return<Telling, ExternalFault> {
  const read = yield* Effect.mapError(decode(answer), ({ message }) => unusable(message))
  const texts = [read.cursor, ...read.events.map(({ eventId }) => eventId)]
  if (texts.some((text) => findFault(text) !== undefined))
    return yield* unusable("a text in it cannot be kept")
  if (read.events.some((event) => event.name !== name)) return yield* unusable("it tells of another event")
  if (read.events.some(({ timestamp }) => instantOf(timestamp) === undefined))
    return yield* unusable("an event has no timestamp that can be read")
  return {
    // A first poll returns no earlier events.
    events: cursor === null ? [] : read.events.map(toldOf),
    cursor: read.cursor,
    hasMore: read.hasMore === true,
    truncated: read.truncated === true,
    nextPollMs: read.nextPollMs ?? null
  }
})

/** Accepts years that PostgreSQL and JSON both write with four digits. */
const instantOf = (text: string): string | undefined => {
  const at = new Date(text)
  const year = at.getUTCFullYear()
  return year >= 1970 && year <= 9999 ? at.toISOString() : undefined
}

const toldOf = ({ data, eventId, timestamp }: (typeof Answer.Type)["events"][number]): Told => {
  const told = (data ?? null) as Schema.Json
  const payload = withoutForbiddenKeys(told)
  const isKept = findFault(payload) === undefined && keptChars(payload) <= sourceLimits.payloadMaxChars
  return {
    eventId,
    happenedAt: instantOf(timestamp) ?? "",
    payload: isKept ? payload : null,
    payloadOmitted: !isKept || payload !== told
  }
}

/**
 * Every bound of sources of foreign events, whose servers may be slow, dead, endless or lying.
 *
 */
import { findFault, withoutForbiddenKeys } from "@tropism/domain/json"
import { keptChars } from "@tropism/domain/kept-size"
import { Context, Effect, Layer, Schema } from "effect"
import { type Connection, ExternalConnections } from "./connections.ts"
import { answered, type ExternalFault } from "./faults.ts"
import type { Whom } from "./oauth-grants.ts"
import { scrubAll } from "./results.ts"

export const sourceLimits = {
  /** Events that one question asks for, and that an answer may have all the same. */
  pollEvents: 50,
  answerMaxEvents: 500,
  /** Where a server does not say when to ask again, and whatever it says. */
  pollMs: 5_000,
  pollMinMs: 1_000,
  pollMaxMs: 3_600_000,
  /** After a question without a usable answer the next waits, twice as long each time. */
  backOffBaseMs: 1_000,
  backOffMaxMs: 60_000,
  /** A program that is silent for so long has lost its question to another: longer than a connection and an answer may take. */
  claimMs: 90_000,
  /** Questions that one program has under way, of those kept free for projects that have none, and of one project. */
  concurrentPolls: 16,
  sparePolls: 4,
  pollsPerProject: 4,
  cursorMaxChars: 4_000,
  eventIdMaxChars: 500,
  /** Of one payload, in JSON text; a larger one is left out. */
  payloadMaxChars: 65_536,
  /** An occurrence that a server's clock says is further ahead is passed over: it would have to be remembered for so much longer. */
  occurrenceMaxAheadMs: 86_400_000
} as const

// Asks a foreign server what happened, and reads its answer.
//
// The server may say anything: what is read here is within its bounds, can be
// kept, and holds no secret of the connection. An answer that is none is a fault,
// and then nothing of it counts, so nothing is lost and it is asked for again.

/** What to ask for. */
export interface Question {
  readonly name: string
  readonly arguments: unknown
  /** Null begins now. */
  readonly cursor: string | null
}

/** One thing that a server tells. */
export interface Told {
  readonly eventId: string
  readonly happenedAt: string
  readonly payload: Schema.Json
  /** The payload, or a part of it, is left out. */
  readonly payloadOmitted: boolean
}

/** A server's answer, judged. */
export interface Telling {
  readonly events: ReadonlyArray<Told>
  readonly cursor: string
  readonly hasMore: boolean
  readonly truncated: boolean
  /** When the server wants to be asked again; it is not held to be sensible. */
  readonly nextPollMs: number | null
}

/** Who asks a server; a simulation says what its servers answer. */
export class EventQuestions extends Context.Reference<
  ((whom: Whom, params: Record<string, unknown>) => Effect.Effect<unknown, ExternalFault>) | undefined
>("@tropism/server/tool/EventQuestions", { defaultValue: () => undefined }) {}

export class ExternalEvents extends Context.Service<
  ExternalEvents,
  {
    /** Asks once; nothing is kept. */
    readonly ask: (whom: Whom, question: Question) => Effect.Effect<Telling, ExternalFault>
  }
>()("@tropism/server/tool/ExternalEvents") {
  static readonly layer = Layer.effect(
    ExternalEvents,
    Effect.gen(function* () {
      const connections = yield* ExternalConnections
      const simulated = yield* EventQuestions

      /** What a fault says of the connection counts for whoever asks next. */
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
          // A session that the server has forgotten is begun anew, once.
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

/** The answer without what the connection was given to say: a server that echoes it tells nobody else. */
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

/** Judges an answer. */
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
    // Who begins now is told of nothing before.
    events: cursor === null ? [] : read.events.map(toldOf),
    cursor: read.cursor,
    hasMore: read.hasMore === true,
    truncated: read.truncated === true,
    nextPollMs: read.nextPollMs ?? null
  }
})

/** Of years that PostgreSQL and JSON both write with four digits. */
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

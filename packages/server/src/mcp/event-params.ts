/**
 * What clients send to the methods of the Events extension.
 *
 * Flow: **mcp** → graph → outbox → dispatch → run → tool → task
 *
 * One event name and its arguments are one subscription, by whichever way it is
 * delivered. Arguments are read by the schema that the catalog shows.
 */
import { type ProtocolError, ProtocolErrorCode } from "@modelcontextprotocol/server"
import type { ProjectId } from "@tropism/domain/ids"
import { Effect, Schema } from "effect"
import { badParams, fault } from "./door-server.ts"
import { positionOf } from "./event-cursors.ts"
import { eventLimits } from "./event-limits.ts"
import type { Beginning, Listening } from "./event-reading.ts"
import { eventTypes } from "./event-types.ts"
import { readParams } from "./method-params.ts"

const nullable = <S extends Schema.Constraint>(schema: S) => Schema.optional(Schema.NullOr(schema))

const WholeMs = Schema.Int.check(Schema.isGreaterThanOrEqualTo(0))
const Arguments = Schema.Record(Schema.String, Schema.Unknown)

const listening = { name: Schema.String, arguments: nullable(Arguments) }
const beginning = { cursor: nullable(Schema.String), maxAgeMs: nullable(WholeMs) }

export const PollParams = Schema.Struct({
  ...listening,
  ...beginning,
  maxEvents: nullable(Schema.Int.check(Schema.isGreaterThanOrEqualTo(1)))
})
export const StreamParams = Schema.Struct({ ...listening, ...beginning })
export const SubscribeParams = Schema.Struct({
  ...listening,
  ...beginning,
  /** Null asks for no end; absent leaves it to the server. */
  ttlMs: nullable(Schema.Int.check(Schema.isGreaterThanOrEqualTo(1))),
  delivery: Schema.Struct({
    mode: Schema.optional(Schema.String),
    url: Schema.String,
    secret: Schema.String
  })
})
export const UnsubscribeParams = Schema.Struct({
  ...listening,
  delivery: Schema.Struct({ mode: Schema.optional(Schema.String), url: Schema.String })
})

/** The extension's own errors. */
export const eventFault = {
  notFound: (kind: "event" | "subscription", message: string) => numbered(-32_011, message, { kind }),
  exhausted: (limit: string, max: number, message: string) => numbered(-32_013, message, { limit, max }),
  unsupported: (feature: string, value: string, message: string) =>
    numbered(-32_014, message, { feature, value }),
  callback: (reason: string, message: string) => numbered(-32_015, message, { reason })
} as const

// The numbers are the extension's and stand in no list of the SDK's.
const numbered = (code: number, message: string, detail: object): ProtocolError =>
  fault(code as ProtocolErrorCode, message, detail)

/** What somebody listens for, by its name and arguments. */
export const readListening = Effect.fnUntraced(function* (asked: {
  readonly name: string
  readonly arguments?: Readonly<Record<string, unknown>> | null | undefined
}): Effect.fn.Return<Listening, ProtocolError> {
  const type = eventTypes.get(asked.name)
  if (type === undefined)
    return yield* Effect.fail(
      eventFault.notFound(
        "event",
        `There is no event of this name: ${[...eventTypes.keys()].join(", ")} are known`
      )
    )
  return { type, filter: yield* readParams(type.filter, asked.arguments ?? {}) }
})

/** Where somebody begins, by a cursor of this project. */
export const readBeginning = (
  projectId: ProjectId,
  {
    cursor,
    maxAgeMs
  }: { readonly cursor?: string | null | undefined; readonly maxAgeMs?: number | null | undefined }
): Effect.Effect<Beginning, ProtocolError> => {
  if (cursor === null || cursor === undefined) return Effect.succeed({ after: null, maxAgeMs: null })
  const after = positionOf(projectId, cursor)
  return after === undefined
    ? Effect.fail(
        badParams("Invalid params: /cursor: This is no cursor of this project: send one that it answered")
      )
    : Effect.succeed({ after, maxAgeMs: maxAgeMs ?? null })
}

/** How many events a poll is answered with at most. */
export const pollSize = (wanted: number | null | undefined): number =>
  Math.min(wanted ?? eventLimits.pollEvents, eventLimits.pollMaxEvents)

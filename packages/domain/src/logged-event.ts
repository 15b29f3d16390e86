/**
 * Reads the entries of a log: what the log itself gave an event is taken as it is, and what somebody said in it is judged.
 *
 * Id, time, context, parent and trigger come from columns that only an append
 * writes, so a long log is not opened by looking at ten thousand ids again. The
 * outcome is that of `decodeEvent`, which is for events that come from elsewhere.
 */
import { Option, Schema } from "effect"
import {
  ContextEvent,
  type ContextEventId,
  type ContextName,
  decodeEvent,
  type LoggedEvent
} from "./context-event.ts"
import { base } from "./event-base.ts"

/** An event as it stands in the log and on the wire. */
export interface LoggedJson {
  readonly type: string
  readonly id: ContextEventId
  readonly timestamp: string
  readonly agentName: ContextName
  readonly parentEventId: ContextEventId | null
  readonly triggersAgentTurn: boolean
  readonly [field: string]: unknown
}

/** How the events of one type are made. */
interface Reader {
  readonly prototype: object
  readonly read: (said: Readonly<Record<string, unknown>>) => Option.Option<object>
}

const ofTheLog: ReadonlySet<string> = new Set(["type", ...Object.keys(base)])

const readerOf = ({ fields, prototype }: (typeof ContextEvent.members)[number]): Reader => {
  const all: Readonly<Record<string, Schema.ConstraintDecoder<unknown>>> = fields
  const own = Object.fromEntries(Object.entries(all).filter(([name]) => !ofTheLog.has(name)))
  // A struct without fields would take whatever there is.
  if (Object.keys(own).length === 0) return { prototype, read: () => Option.some({}) }
  return { prototype, read: Schema.decodeUnknownOption(Schema.Struct(own)) }
}

const readers = new Map(
  ContextEvent.members.map((member): [string, Reader] => [member.identifier, readerOf(member)])
)

/** Reads one entry; one that says what its type does not is an event of a type that this version does not know. */
export const readLogged = (json: LoggedJson): LoggedEvent => makeLogged(json, json)

/** What the log itself gave an event. */
export type LogBase = Pick<
  LoggedJson,
  "type" | "id" | "timestamp" | "agentName" | "parentEventId" | "triggersAgentTurn"
>

/** The same of an entry of which what was said stands apart. */
export const makeLogged = (given: LogBase, said: Readonly<Record<string, unknown>>): LoggedEvent => {
  const { agentName, id, parentEventId, timestamp, triggersAgentTurn, type } = given
  const reader = readers.get(type)
  const own = reader?.read(said)
  if (reader === undefined || own === undefined || Option.isNone(own))
    return decodeEvent({ ...said, ...given })
  const event: LoggedEvent = Object.create(reader.prototype)
  return Object.assign(event, own.value, {
    type,
    id,
    timestamp,
    agentName,
    parentEventId: Option.fromNullishOr(parentEventId),
    triggersAgentTurn
  })
}

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
  /** What is its own, beside what the log gives every event. */
  readonly names: ReadonlyArray<string>
  readonly read: (said: Readonly<Record<string, unknown>>) => Option.Option<Readonly<Record<string, unknown>>>
}

const ofTheLog: ReadonlySet<string> = new Set(["type", ...Object.keys(base)])

const readerOf = ({ fields, prototype }: (typeof ContextEvent.members)[number]): Reader => {
  const all: Readonly<Record<string, Schema.ConstraintDecoder<unknown>>> = fields
  const own = Object.fromEntries(Object.entries(all).filter(([name]) => !ofTheLog.has(name)))
  // A struct without fields would take whatever there is.
  const names = Object.keys(own)
  if (names.length === 0) return { prototype, names, read: () => Option.some({}) }
  return { prototype, names, read: Schema.decodeUnknownOption(Schema.Struct(own)) }
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
  // Set one by one: lists of fields that are copied cost more than all else that is done here.
  const event = Object.create(reader.prototype)
  for (const name of reader.names) if (name in own.value) event[name] = own.value[name]
  event.type = type
  event.id = id
  event.timestamp = timestamp
  event.agentName = agentName
  event.parentEventId = Option.fromNullishOr(parentEventId)
  event.triggersAgentTurn = triggersAgentTurn
  return event
}

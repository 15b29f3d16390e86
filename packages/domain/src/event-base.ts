/**
 * What every event of a context has, and how its id is written.
 *
 * Ids are `{agentName}:{counter}`; the counter is contiguous in each log and
 * given by the append transaction alone (S004-R14).
 */
import { Schema } from "effect"
import { AgentName } from "./agent.ts"
import { Timestamp, UserId } from "./ids.ts"

/** A context's name; it stands before the `:` of every event id of its log. */
export const ContextName = AgentName.pipe(Schema.brand("ContextName"))
export type ContextName = typeof ContextName.Type

export const ContextEventId = Schema.String.check(
  Schema.isPattern(/^[A-Za-z0-9][A-Za-z0-9_.-]{0,99}:[1-9][0-9]{0,9}$/, {
    message: "Expected an event id: {agentName}:{counter}"
  })
).pipe(Schema.brand("ContextEventId"))
export type ContextEventId = typeof ContextEventId.Type

/** The id of a context's event; a name and a counter have been judged by then. */
export const contextEventId = (name: string, number: number): ContextEventId =>
  `${name}:${number}` as ContextEventId

/** The counter of an event's id. */
export const eventNumber = (id: ContextEventId): number => {
  let number = 0
  // Read digit by digit: a long log has many ids, and a piece of each would be made for nothing.
  for (let at = id.indexOf(":") + 1; at < id.length; at++) number = number * 10 + id.charCodeAt(at) - zero
  return number
}

const zero = 48

/** What every event has (S004-R14…R21). `agentName` is the context's name. */
export const base = {
  id: ContextEventId,
  timestamp: Timestamp,
  agentName: ContextName,
  parentEventId: Schema.OptionFromNullOr(ContextEventId),
  triggersAgentTurn: Schema.Boolean
}

/** Who brings the outcome of a call that comes later: a run that was spawned, a person who was asked, or a client that watches the context. */
export const WaitsFor = Schema.Literals(["run", "person", "client"])
export type WaitsFor = typeof WaitsFor.Type

/** What every event has besides that a person may add. */
export const added = {
  /** Who added it; absent where no person did, and in logs of an earlier version (S003-R44). */
  userId: Schema.optionalKey(UserId)
}

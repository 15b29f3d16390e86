/**
 * How it goes with a source of foreign events: what the project's page of a server, and the command line, tell of it.
 */
import { Schema } from "effect"
import { GraphEventId, Timestamp } from "./ids.ts"

/** A source that enabled agents listen to. */
export const EventSource = Schema.Struct({
  name: Schema.String,
  arguments: Schema.Json,
  /** `beginning`: the server has answered nothing yet; `failing`: the last question had no answer that could be used. */
  status: Schema.Literals(["beginning", "listening", "failing"]),
  /** The names of the agents that listen. */
  agents: Schema.Array(Schema.String),
  polledAt: Schema.NullOr(Timestamp),
  nextPollAt: Timestamp,
  failedSince: Schema.NullOr(Timestamp),
  lastFault: Schema.NullOr(Schema.String),
  /** When the server last said that it had left something out. */
  truncatedAt: Schema.NullOr(Timestamp),
  /** The newest occurrence: `explain` says of its id whom it woke. */
  lastOccurrence: Schema.NullOr(
    Schema.Struct({ id: GraphEventId, eventId: Schema.String, createdAt: Timestamp })
  )
}).annotate({ identifier: "EventSource" })
export type EventSource = typeof EventSource.Type

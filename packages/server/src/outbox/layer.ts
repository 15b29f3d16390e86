/** The log of committed events and its feed. Requires the database. */
import { Layer } from "effect"
import { FeedSearch, Outbox } from "./outbox.ts"
export const outboxLayer = Layer.mergeAll(Outbox.layer, FeedSearch.layer)

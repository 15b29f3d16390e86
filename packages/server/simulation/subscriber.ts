/**
 * Somebody elsewhere who is told at an address of his own of every object that comes into being.
 */
import type { ProjectId, UserId } from "@tropism/domain/ids"
import { Effect, Redacted } from "effect"
import { Database } from "../src/database/database.ts"
import { readKey } from "../src/database/sealing.ts"
import { Tokens } from "../src/http/tokens.ts"
import { EventSubscriptions } from "../src/mcp/event-subscriptions.ts"
import { digestOf } from "../src/review/task-digest.ts"

/** What he is told of. */
export const subscribedEvent = { name: "object.created", entityType: "graphObject", type: "created" } as const

/** With what all servers of a simulation seal his secret. */
const key = readKey("5".repeat(64))
export const sealingKeys = key === undefined ? [] : [key]

/** A day: longer than any simulation. */
const ttlMs = 86_400_000

/** Subscribes from the project's first event on. */
export const subscribe = Effect.fnUntraced(function* (projectId: ProjectId) {
  const token = Redacted.make(`the token of a subscriber of ${projectId}`)
  yield* (yield* Tokens).admit(token, false)
  const database = yield* Database
  const wanted = {
    userId: "susan" as UserId,
    handle: "sub_susan",
    name: subscribedEvent.name,
    arguments: {},
    url: "https://subscriber.example/inbox",
    secret: `whsec_${Buffer.alloc(32, "s").toString("base64")}`,
    tokenHash: yield* digestOf(Redacted.value(token)),
    position: 0,
    ttlMs
  }
  yield* database.inProject(
    projectId,
    Effect.flatMap(EventSubscriptions, (subscriptions) => subscriptions.keep(wanted))
  )
})

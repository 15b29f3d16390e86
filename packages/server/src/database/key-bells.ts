/**
 * The port by which whoever waits under a key hears that the work under it has ended.
 *
 * Flow: graph → outbox → dispatch → run → tool → task, all on **database**
 *
 * A ring says nothing of what came of the work and may be lost: whoever hears it
 * asks the database.
 */
import { Context, type Effect, type Queue, type Scope } from "effect"

export class KeyBells extends Context.Service<
  KeyBells,
  {
    /** Tells whoever waits for this key, here and at other servers. */
    readonly ring: (keyHash: string) => Effect.Effect<void>
    /** A mailbox that holds at most one ring, until the scope ends. */
    readonly listen: (keyHash: string) => Effect.Effect<Queue.Dequeue<void>, never, Scope.Scope>
  }
>()("@tropism/server/database/KeyBells") {}

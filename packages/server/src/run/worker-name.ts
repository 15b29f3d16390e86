/**
 * Who works at this server, where other servers know it; a server that is alone names its worker by itself.
 *
 * Flow: graph → outbox → dispatch → **run** → tool → task
 *
 * Other servers can tell by it whose runs nobody works on any more (`cluster/absent-servers.ts`).
 */
import { Context } from "effect"

/** `host:port#id`, with an id of its own at each start; null where the server is alone. */
export const WorkerName = Context.Reference<string | null>("@tropism/server/run/WorkerName", {
  defaultValue: () => null
})

/**
 * The addresses of what a person may put into a model's view, and which of it can be watched.
 *
 * Flow: **mcp** → graph → outbox → dispatch → run → tool → task
 */
import { ObjectId, RunId } from "@tropism/domain/ids"
import { Schema } from "effect"

/** What each kind of address looks like. */
export const addressPatterns = {
  objects: /^tropism:\/\/objects\/(?<id>[^/?#]+)$/,
  agents: /^tropism:\/\/agents\/(?<id>[^/?#]+)$/,
  runs: /^tropism:\/\/runs\/(?<id>[^/?#]+)\/log(?:\?after=(?<after>\d{1,9}))?$/
}

/** Something of which a client may be told when it changes. */
export type Watchable =
  | { readonly kind: "object"; readonly id: ObjectId }
  | { readonly kind: "log"; readonly id: RunId }

/** What an address means, if that can be watched: an object, or the log of a run from whichever event on. */
export const watchableAt = (uri: string): Watchable | undefined => {
  const object = addressPatterns.objects.exec(uri)?.groups?.["id"]
  if (object !== undefined && Schema.is(ObjectId)(object)) return { kind: "object", id: object }
  const run = addressPatterns.runs.exec(uri)?.groups?.["id"]
  return run !== undefined && Schema.is(RunId)(run) ? { kind: "log", id: run } : undefined
}

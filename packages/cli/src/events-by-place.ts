/**
 * An event of the graph, found by its id or by its place in the feed.
 *
 * The place is what "tropism tail" shows; it is looked up, because the server
 * knows an event by its id. Of an id nothing more is asked here.
 */
import type { GraphEvent } from "@tropism/domain/graph"
import { GraphEventId } from "@tropism/domain/ids"
import { Effect, Option, Schema } from "effect"
import type { Access } from "./access.ts"
import { failure } from "./failure.ts"
import { printable } from "./terminal/text.ts"

/** An event by its id, and what it says where it was found by its place. */
export interface FoundEvent {
  readonly id: GraphEventId
  readonly event: GraphEvent | undefined
}

export const findEvent = (access: Access, reference: string) =>
  Effect.gen(function* () {
    const id = Schema.decodeUnknownOption(GraphEventId)(reference)
    if (Option.isSome(id)) return { id: id.value, event: undefined }
    if (!/^[1-9]\d{0,14}$/.test(reference)) {
      return yield* failure(
        `"${printable(reference)}" is neither an event id nor a position in the feed. "tropism tail" shows both.`
      )
    }
    const { items } = yield* access.client.feed.events({
      params: access.params,
      query: { after: Number(reference) - 1, limit: 1 }
    })
    const event = items.find(({ position }) => position === Number(reference))
    return event
      ? { id: event.id, event }
      : yield* failure(`The feed of project "${access.project.name}" has no event ${reference}.`)
  })

/**
 * The feed of committed graph events, as a page or live.
 *
 * Flow: **http** → graph → outbox → dispatch → run → tool → task
 */
import { Api } from "@tropism/api/api"
import type { LogPlace } from "@tropism/api/page"
import type { GraphEvent } from "@tropism/domain/graph"
import type { ProjectId } from "@tropism/domain/ids"
import { Effect } from "effect"
import { HttpServerResponse } from "effect/http"
import { HttpApiBuilder } from "effect/http-api"
import { Database } from "../database/database.ts"
import { Outbox } from "../outbox/outbox.ts"
import { reading } from "./access.ts"
import { pageByNumber } from "./paging.ts"
import { orNotFound } from "./refusals.ts"
import { pageStart, sseResponse, wantsStream } from "./sse.ts"

export const feedHandlers = HttpApiBuilder.group(Api, "feed", (handlers) =>
  handlers
    .handleRaw(
      "events",
      Effect.fn("http.feed.events")(function* ({ params, query }) {
        const outbox = yield* Outbox
        if (!(yield* wantsStream)) {
          const read = (cursor: number | undefined, limit: number) =>
            query.order === "desc"
              ? outbox.newest(pageStart(query.after), cursor, limit)
              : outbox.feed(cursor ?? pageStart(query.after), limit)
          const page = yield* reading(params.projectId, pageByNumber(query, placeOf, read))
          return yield* Effect.orDie(HttpServerResponse.json(page))
        }
        yield* reading(params.projectId, Effect.void)
        return yield* liveFeed(params.projectId, query.after)
      })
    )
    .handle(
      "get",
      Effect.fn("http.feed.get")(function* ({ params }) {
        const outbox = yield* Outbox
        return yield* reading(params.projectId, orNotFound("event")(outbox.get(params.eventId)))
      })
    )
)

const placeOf = (event: GraphEvent): number => event.position ?? 0

/** The feed from a place on; ids are places. */
const liveFeed = Effect.fnUntraced(function* (projectId: ProjectId, after: LogPlace | undefined) {
  const database = yield* Database
  const outbox = yield* Outbox
  return yield* sseResponse(
    {
      key: `feed:${projectId}`,
      projectId,
      topic: `feed:${projectId}`,
      isPurgeable: true,
      end: database.inProject(projectId, outbox.lastPosition),
      read: (from, limit) =>
        Effect.map(database.inProject(projectId, outbox.feed(from, limit)), (events) =>
          events.map((event) => ({ number: placeOf(event), id: event.id, name: event.type, json: event }))
        )
    },
    after
  )
})

/**
 * The feed of committed graph events, as a page or live, and imports.
 *
 * Flow: **http** → graph → outbox → dispatch → run → tool → task
 */
import { Api } from "@tropism/api/api"
import type { ImportLine } from "@tropism/api/graph-api"
import type { GraphEvent } from "@tropism/domain/graph"
import type { ProjectId } from "@tropism/domain/ids"
import { Effect, Stream } from "effect"
import { HttpServerResponse } from "effect/http"
import { HttpApiBuilder } from "effect/http-api"
import { Database } from "../database/database.ts"
import { Importer } from "../graph/importer.ts"
import { readPackageLock } from "../graph/package-lock.ts"
import { Outbox } from "../outbox/outbox.ts"
import { inProject, reading } from "./access.ts"
import { pageByNumber } from "./paging.ts"
import { invalid, invalidLockfile } from "./refusals.ts"
import { readText } from "./request-judgement.ts"
import { sseResponse, startAfter, wantsStream } from "./sse.ts"

export const feedHandlers = HttpApiBuilder.group(Api, "feed", (handlers) =>
  handlers
    .handleRaw(
      "events",
      Effect.fn("http.feed.events")(function* ({ params, query }) {
        const outbox = yield* Outbox
        if (!(yield* wantsStream)) {
          const read = (cursor: number | undefined, limit: number) =>
            outbox.feed(cursor ?? query.after ?? 0, limit)
          const page = yield* reading(params.projectId, pageByNumber(query, placeOf, read))
          return yield* Effect.orDie(HttpServerResponse.json(page))
        }
        const newest = yield* reading(params.projectId, outbox.lastPosition)
        return yield* liveFeed(params.projectId, yield* startAfter(query.after ?? newest))
      })
    )
    .handle(
      "import",
      Effect.fn("http.import")(function* ({ params, payload, query }) {
        const text = yield* Effect.mapError(readText(yield* Stream.mkUint8Array(payload)), () =>
          invalid("", "The file is not UTF-8 text: send the package-lock.json itself, not compressed")
        )
        const lock = yield* Effect.mapError(readPackageLock(text, query.name), invalidLockfile)
        const importer = yield* Importer
        const principal = yield* inProject(params.projectId, "editor", Effect.succeed)
        return importer.importLock(params.projectId, lock, {
          actorType: "user",
          actorId: principal.userId
        }) satisfies Stream.Stream<ImportLine>
      })
    )
)

const placeOf = (event: GraphEvent): number => event.position ?? 0

/** The feed from a place on; ids are places. */
const liveFeed = Effect.fnUntraced(function* (projectId: ProjectId, after: number) {
  const database = yield* Database
  const outbox = yield* Outbox
  return yield* sseResponse(
    {
      topic: `feed:${projectId}`,
      read: (from, limit) =>
        Effect.map(database.inProject(projectId, outbox.feed(from, limit)), (events) =>
          events.map((event) => ({ number: placeOf(event), name: event.type, json: event }))
        )
    },
    after
  )
})

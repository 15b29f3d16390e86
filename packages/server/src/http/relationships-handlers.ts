/**
 * The doors of relationships: what a person or program reads of them and does to them.
 *
 * Flow: **http** → graph → outbox → dispatch → run → tool → task
 *
 * They are as the doors of objects are, and write as little themselves.
 */
import { Api } from "@tropism/api/api"
import { Effect } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { Relationships } from "../graph/relationships.ts"
import { Endings } from "../run/endings.ts"
import { reading } from "./access.ts"
import { onVersion, tagged } from "./conditions.ts"
import { pageById, pageByNumber } from "./paging.ts"
import { orNotFound } from "./refusals.ts"
import { change, marksOf, momentOf, readAt, relationshipOf, write } from "./user-change.ts"

export const relationshipsHandlers = HttpApiBuilder.group(Api, "relationships", (handlers) =>
  handlers.handleAll({
    list: Effect.fn("http.relationships.list")(function* ({ params, query }) {
      const relationships = yield* Relationships
      const { type, fromId, toId, objectId } = query
      const list = Effect.flatMap(momentOf(query.asOf), (asOf) =>
        pageById(query, (before, limit) =>
          relationships.list({ type, fromId, toId, objectId, asOf }, before, limit)
        )
      )
      return yield* reading(params.projectId, list)
    }),
    create: Effect.fn("http.relationships.create")(function* ({ params, payload }) {
      const { type, fromId, toId, properties, untrusted } = payload
      const done = yield* change(params.projectId, {
        type: "createRelationship",
        relationship: { type, fromId, toId },
        data: properties ?? {},
        ...(yield* marksOf(untrusted, properties ?? {}))
      })
      return yield* relationshipOf(done)
    }),
    get: Effect.fn("http.relationships.get")(function* ({ params: { projectId, relationshipId }, query }) {
      const relationships = yield* Relationships
      const read = readAt(query, {
        now: relationships.get(relationshipId),
        atVersion: (version) => relationships.atVersion(relationshipId, version),
        asOf: (moment) => relationships.asOf(relationshipId, moment)
      })
      return yield* Effect.flatMap(orNotFound("relationship")(reading(projectId, read)), tagged)
    }),
    update: Effect.fn("http.relationships.update")(function* ({ params, headers, payload }) {
      const { properties, untrusted, expectedVersion } = payload
      const marks = yield* marksOf(untrusted, properties)
      const done = yield* onVersion(headers, expectedVersion, (terms) =>
        change(params.projectId, {
          type: "updateRelationship",
          relationshipId: params.relationshipId,
          data: properties,
          ...marks,
          ...terms
        })
      )
      return yield* relationshipOf(done)
    }),
    delete: Effect.fn("http.relationships.delete")(function* ({ params, headers, query }) {
      const { projectId, relationshipId } = params
      const { cancelEmptied } = yield* Endings
      yield* onVersion(headers, null, (terms) => {
        const deletion = { type: "deleteRelationship", relationshipId, ...terms } as const
        return query.purge === "true"
          ? write(projectId, "admin", (gateway, author, { userId }) =>
              Effect.andThen(gateway.purgeRelationship(deletion, author, userId), cancelEmptied)
            )
          : change(projectId, deletion)
      })
    }),
    restore: Effect.fn("http.relationships.restore")(function* ({ params }) {
      const done = yield* write(params.projectId, "editor", (gateway, author) =>
        gateway.restoreRelationship(params.relationshipId, author)
      ).pipe(Effect.catchTag("InvalidInput", Effect.die))
      return yield* relationshipOf(done)
    }),
    history: Effect.fn("http.relationships.history")(function* ({ params, query }) {
      const relationships = yield* Relationships
      const read = (before: number | undefined, limit: number) =>
        orNotFound("relationship")(relationships.history(params.relationshipId, before, limit))
      return yield* reading(
        params.projectId,
        pageByNumber(query, (version) => version.version, read)
      )
    })
  })
)

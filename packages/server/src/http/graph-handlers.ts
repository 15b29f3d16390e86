/**
 * The doors of objects: what a person or program reads of them and does to them.
 *
 * Flow: **http** → graph → outbox → dispatch → run → tool → task
 *
 * A handler turns a request into a `Change` of a user and hands it to the
 * gateway; it writes nothing itself. Nothing here waits for an agent.
 */
import { Api } from "@tropism/api/api"
import { clampLimit } from "@tropism/api/page"
import { NotFound } from "@tropism/api/problems"
import { findFault } from "@tropism/domain/json"
import { Effect } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { Neighborhoods } from "../graph/neighborhoods.ts"
import { type ObjectOrder, placePatterns } from "../graph/object-orders.ts"
import { Objects } from "../graph/objects.ts"
import { Provenances } from "../graph/provenance.ts"
import { Purges } from "../graph/purges.ts"
import { Endings } from "../run/endings.ts"
import { reading } from "./access.ts"
import { onVersion, tagged } from "./conditions.ts"
import { pageById, pageByNumber, pageByPlace } from "./paging.ts"
import { invalid, orNotFound } from "./refusals.ts"
import { change, marksOf, momentOf, objectOf, readAt, write } from "./user-change.ts"

export const objectsHandlers = HttpApiBuilder.group(Api, "objects", (handlers) =>
  handlers.handleAll({
    list: Effect.fn("http.objects.list")(function* ({ params, query }) {
      const objects = yield* Objects
      const { type, key, where, sort, asOf } = query
      const fault = findFault(where)
      if (fault) return yield* Effect.fail(invalid("where", fault.message))
      const text = query.query?.trim() ? query.query : undefined
      const order: ObjectOrder = sort ?? (text === undefined ? "createdAt" : "relevance")
      if (order === "relevance" && text === undefined)
        return yield* Effect.fail(
          invalid("sort", "Only a search has a relevance: say what to look for in query")
        )
      if ((order === "name" || order === "type") && asOf !== undefined)
        return yield* Effect.fail(
          invalid("sort", "The graph as it was is not listed by name or type: leave sort or asOf away")
        )
      const list = Effect.flatMap(momentOf(asOf), (moment) =>
        pageByPlace(query, placePatterns[order], (after, limit) =>
          Effect.map(objects.list({ type, key, text, where, asOf: moment }, order, after, limit), (listed) =>
            listed.map(({ object, place }) => ({ item: object, place }))
          )
        )
      )
      return yield* reading(params.projectId, list)
    }),
    create: Effect.fn("http.objects.create")(function* ({ params, payload }) {
      const { type, key, properties, untrusted } = payload
      const done = yield* change(params.projectId, {
        type: "create",
        objectType: type,
        key: key ?? null,
        data: properties ?? {},
        ...(yield* marksOf(untrusted, properties ?? {}))
      })
      return yield* objectOf(done)
    }),
    get: Effect.fn("http.objects.get")(function* ({ params: { projectId, objectId }, query }) {
      const objects = yield* Objects
      const read = readAt(query, {
        now: objects.get(objectId),
        atVersion: (version) => objects.atVersion(objectId, version),
        asOf: (moment) => objects.asOf(objectId, moment)
      })
      return yield* Effect.flatMap(orNotFound("object")(reading(projectId, read)), tagged)
    }),
    update: Effect.fn("http.objects.update")(function* ({ params, headers, payload }) {
      const { properties, untrusted, expectedVersion } = payload
      const marks = yield* marksOf(untrusted, properties)
      const done = yield* onVersion(headers, expectedVersion, (terms) =>
        change(params.projectId, {
          type: "update",
          objectId: params.objectId,
          data: properties,
          ...marks,
          ...terms
        })
      )
      return yield* objectOf(done)
    }),
    delete: Effect.fn("http.objects.delete")(function* ({ params, headers, query }) {
      const { projectId, objectId } = params
      const { cancelEmptied } = yield* Endings
      yield* onVersion(headers, null, (terms) => {
        const deletion = { type: "delete", objectId, ...terms } as const
        return query.purge === "true"
          ? write(projectId, "admin", (gateway, author, { userId }) =>
              Effect.andThen(gateway.purgeObject(deletion, author, userId), cancelEmptied)
            )
          : change(projectId, deletion)
      })
    }),
    restore: Effect.fn("http.objects.restore")(function* ({ params }) {
      const done = yield* write(params.projectId, "editor", (gateway, author) =>
        gateway.restoreObject(params.objectId, author)
      ).pipe(Effect.catchTag("InvalidInput", Effect.die))
      return yield* objectOf(done)
    }),
    history: Effect.fn("http.objects.history")(function* ({ params, query }) {
      const objects = yield* Objects
      const read = (before: number | undefined, limit: number) =>
        orNotFound("object")(objects.history(params.objectId, before, limit))
      return yield* reading(
        params.projectId,
        pageByNumber(query, (version) => version.version, read)
      )
    }),
    neighbors: Effect.fn("http.objects.neighbors")(function* ({ params, query }) {
      const objects = yield* Objects
      const neighborhoods = yield* Neighborhoods
      const { depth, direction, type, limit } = query
      const around = Effect.gen(function* () {
        const asOf = yield* momentOf(query.asOf)
        yield* orNotFound("object")(
          asOf === undefined ? objects.get(params.objectId) : objects.asOf(params.objectId, asOf)
        )
        return yield* neighborhoods.around(params.objectId, {
          depth: depth ?? 1,
          direction: direction ?? "both",
          type,
          asOf,
          limit: clampLimit(limit)
        })
      })
      return yield* reading(params.projectId, around)
    }),
    provenance: Effect.fn("http.objects.provenance")(function* ({ params, query: { property } }) {
      const provenances = yield* Provenances
      const provenance = yield* orNotFound("object")(
        reading(params.projectId, provenances.of(params.objectId, property))
      )
      return property !== undefined && provenance.properties.length === 0
        ? yield* new NotFound({ detail: `The object never had a property ${property}` })
        : provenance
    }),
    purges: Effect.fn("http.objects.purges")(function* ({ params, query }) {
      const purges = yield* Purges
      return yield* reading(params.projectId, pageById(query, purges.list))
    })
  })
)

/**
 * Endpoints for objects: read and write them.
 *
 * A handler turns a request into a `Change` by a user and passes it to the gateway; it writes nothing itself. Nothing here waits for an
 * agent.
 */
import { Api } from "@tropism/api/api"
import { type Principal, type Role, CurrentPrincipal } from "@tropism/api/authorization"
import type { ChainLink } from "@tropism/api/chains-api"
import { clampLimit, type LogPlace } from "@tropism/api/page"
import { NotFound } from "@tropism/api/problems"
import { direct } from "@tropism/domain/actor"
import type { Change } from "@tropism/domain/change"
import type { GraphEvent } from "@tropism/domain/graph"
import type { ProjectId } from "@tropism/domain/ids"
import { findFault, type Properties } from "@tropism/domain/json"
import type { UndoCause, UndoItem } from "@tropism/domain/undo"
import { untrustedNames, type UntrustedWords } from "@tropism/domain/untrusted"
import { Effect, Result } from "effect"
import { HttpServerResponse, HttpEffect } from "effect/http"
import { HttpApiBuilder } from "effect/http-api"
import { CrashPoint } from "../crash-point.ts"
import { type ProjectTransaction, Database } from "../database/database.ts"
import type { ChangeRefused } from "../graph/change-refused.ts"
import { Gateway } from "../graph/gateway.ts"
import { Moments } from "../graph/moments.ts"
import { type ObjectOrder, placePatterns, Objects } from "../graph/objects.ts"
import { Provenances, Purges } from "../graph/provenance.ts"
import type { Applied, Author } from "../graph/recording.ts"
import { Neighborhoods, Relationships } from "../graph/relationships.ts"
import { Outbox } from "../outbox/outbox.ts"
import { Chains } from "../reactions/chains.ts"
import { Explanations } from "../reactions/explain.ts"
import { Undos } from "../review/undo.ts"
import { RunCancellation } from "../runs/cancellation.ts"
import { reading, inProject, permitted, shownRun } from "./access.ts"
import { CurrentKey } from "./idempotency.ts"
import { onVersion, tagged, pageById, pageByNumber, pageByPlace } from "./paging.ts"
import { invalid, orNotFound, changeProblem, undoProblem } from "./problems.ts"
import { pageStart, sseResponse, wantsStream } from "./streams.ts"

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
      const { cancelEmptied } = yield* RunCancellation
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

// Endpoints for relationships. They work as those for objects and write nothing themselves either.

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
      const { cancelEmptied } = yield* RunCancellation
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

// Shared by the graph endpoints: a user's change, its untrusted marks, and the instant of a query.

type Write<A> = Effect.Effect<A, ChangeRefused, ProjectTransaction>

/** Runs a user's direct write in its own transaction. */
const write = Effect.fn("http.write")(function* <A>(
  projectId: ProjectId,
  role: Role,
  act: (gateway: Gateway["Service"], author: Author, principal: Principal) => Write<A>
) {
  const gateway = yield* Gateway
  const done = yield* inProject(projectId, role, (principal) => {
    const author: Author = { actor: { actorType: "user", actorId: principal.userId }, cause: direct }
    return Effect.mapError(act(gateway, author, principal), changeProblem)
  })
  yield* CrashPoint.hit("graph.afterCommit")
  return done
})

/** Makes a user's change: in a group commit, or in its own transaction where it has a key or cannot join the group. */
const change = Effect.fn("http.change")(function* (projectId: ProjectId, wanted: Change) {
  const { submit } = yield* Gateway
  if ((yield* CurrentKey) === undefined) {
    const { userId } = yield* permitted(projectId, "editor")
    const done = yield* Effect.mapError(submit(projectId, wanted, userId), changeProblem)
    if (done !== undefined) return yield* Effect.as(CrashPoint.hit("graph.afterCommit"), done)
  }
  return yield* write(projectId, "editor", (gateway, author) => gateway.apply(wanted, author))
})

const objectOf = ({ entity }: Applied) =>
  entity.kind === "object"
    ? tagged(entity.object)
    : Effect.die(new Error("A change of an object answered a relationship"))

const relationshipOf = ({ entity }: Applied) =>
  entity.kind === "relationship"
    ? tagged(entity.relationship)
    : Effect.die(new Error("A change of a relationship answered an object"))

/** The untrusted marks of a write, from its body. */
const marksOf = Effect.fnUntraced(function* (words: UntrustedWords | null | undefined, written: Properties) {
  const names = untrustedNames(words, written)
  if (Result.isFailure(names)) return yield* invalid(names.failure.pointer, names.failure.message)
  return names.success.length === 0 ? {} : { untrusted: names.success }
})

/** Reads an entity as it is now, at a version, or at an instant. */
const readAt = Effect.fnUntraced(function* <A, E1, R1, E2, R2, E3, R3>(
  { version, asOf }: { readonly version?: number | undefined; readonly asOf?: string | undefined },
  read: {
    readonly now: Effect.Effect<A, E1, R1>
    readonly atVersion: (version: number) => Effect.Effect<A, E2, R2>
    readonly asOf: (moment: Date) => Effect.Effect<A, E3, R3>
  }
) {
  if (version !== undefined && asOf !== undefined)
    return yield* Effect.fail(invalid("asOf", "Ask for a version or for an instant, not for both"))
  if (version !== undefined) return yield* read.atVersion(version)
  const moment = yield* momentOf(asOf)
  return yield* moment === undefined ? read.now : read.asOf(moment)
})

/** The instant of a query; a future one is refused. */
export const momentOf = Effect.fnUntraced(function* (asOf: string | undefined) {
  if (asOf === undefined) return undefined
  const moment = new Date(asOf)
  const moments = yield* Moments
  const now = yield* moments.now
  if (moment <= now) return moment
  return yield* invalid(
    "asOf",
    `This instant is still to come: ask for one until now, ${now.toISOString()}, or name none to read what is now`
  )
})

// Explains why an event did or did not trigger an agent.

const knownEvent = orNotFound("event")

export const explanationsHandlers = HttpApiBuilder.group(Api, "explanations", (handlers) =>
  handlers
    .handle(
      "explain",
      Effect.fn("http.explanations.explain")(function* ({ params, query }) {
        const explanations = yield* Explanations
        const outbox = yield* Outbox
        const explanation = Effect.flatMap(outbox.get(query.eventId), (event) =>
          event === undefined
            ? knownEvent(explanations.ofOccurrence(query.eventId, params.agentId))
            : orNotFound("agent")(explanations.one(event, params.agentId))
        )
        return yield* reading(params.projectId, explanation)
      })
    )
    .handle(
      "list",
      Effect.fn("http.explanations.list")(function* ({ params, query }) {
        const explanations = yield* Explanations
        const outbox = yield* Outbox
        return yield* reading(
          params.projectId,
          Effect.flatMap(outbox.get(params.eventId), (event) =>
            pageById(query, (before, limit) =>
              event === undefined
                ? knownEvent(explanations.listOfOccurrence(params.eventId, before, limit))
                : explanations.list(event, before, limit)
            )
          )
        )
      })
    )
)

// The feed of committed graph events, as a page or a live stream.

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

/** The feed from an id on; ids are its cursors. */
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

// Chains: the effects of one event and their usage.

export const chainsHandlers = HttpApiBuilder.group(Api, "chains", (handlers) =>
  handlers
    .handle(
      "list",
      Effect.fn("http.chains.list")(function* ({ params, query }) {
        const chains = yield* Chains
        return yield* reading(
          params.projectId,
          pageById(query, (before, limit) => chains.list(before, limit))
        )
      })
    )
    .handle(
      "get",
      Effect.fn("http.chains.get")(function* ({ params, query }) {
        const chains = yield* Chains
        const outbox = yield* Outbox
        return yield* reading(
          params.projectId,
          Effect.gen(function* () {
            // The links are read first, so the counts of the head are at least as new as the page.
            const page = yield* pageById(query, (after, limit) =>
              chains.links(params.rootEventId, after, limit)
            )
            const head = yield* chains.find(params.rootEventId)
            if (!head) {
              const event = yield* outbox.get(params.rootEventId)
              return yield* new NotFound({
                detail: event
                  ? `This event begins no chain: it belongs to the chain of ${event.rootEventId}`
                  : "There is no such chain"
              })
            }
            const principal = yield* CurrentPrincipal
            return { ...head, ...page, items: page.items.map((link) => shownLink(principal, link)) }
          })
        )
      })
    )
)

const shownLink = (principal: Principal, link: ChainLink): ChainLink =>
  link.type === "run" ? { ...link, run: shownRun(principal, link.run) } : link

// Undo: a person rolls back a run, an agent version or a chain.

/** Plans the undo of a cause: 201 for a new plan; 200 with the plan that is already pending, refreshed against the graph. */
const plan = Effect.fnUntraced(function* (projectId: ProjectId, what: string, cause: UndoCause) {
  const undos = yield* Undos
  const { isNew, task } = yield* orNotFound(what)(
    inProject(projectId, "reviewer", ({ userId }) => Effect.mapError(undos.plan(cause, userId), undoProblem))
  )
  if (!isNew)
    yield* HttpEffect.appendPreResponseHandler((_request, response) =>
      Effect.succeed(HttpServerResponse.setStatus(response, 200))
    )
  return task
})

export const undosHandlers = HttpApiBuilder.group(Api, "undos", (handlers) =>
  handlers.handleAll({
    undoRun: Effect.fn("http.undos.undoRun")(({ params }) =>
      plan(params.projectId, "run", { type: "run", runId: params.runId })
    ),
    undoAgent: Effect.fn("http.undos.undoAgent")(({ params, payload }) =>
      plan(params.projectId, "version of an agent", {
        type: "agentVersion",
        agentId: params.agentId,
        version: payload.version
      })
    ),
    undoChain: Effect.fn("http.undos.undoChain")(({ params }) =>
      plan(params.projectId, "chain", { type: "chain", rootEventId: params.rootEventId })
    ),
    items: Effect.fn("http.undos.items")(function* ({ params, query }) {
      const undos = yield* Undos
      return yield* reading(
        params.projectId,
        pageByNumber(
          query,
          ({ place }: UndoItem) => place,
          (after, limit) => orNotFound("undo")(undos.items(params.taskId, after, limit))
        )
      )
    })
  })
)

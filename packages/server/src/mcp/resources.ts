/**
 * MCP resources: objects, agents, logs of runs, and the inbox.
 *
 * Each has its own address and a bounded size. What is missing, of another project or of another person gets the same answer.
 */
import { ResourceNotFoundError, type ProtocolError } from "@modelcontextprotocol/server"
import type { Principal } from "@tropism/api/authorization"
import type { ContextName } from "@tropism/domain/context-event"
import { AgentId, ObjectId, RunId, type ProjectId, type UserId } from "@tropism/domain/ids"
import { Effect, Schema, Stream, Context, Layer, type Scope } from "effect"
import { SqlClient } from "effect/sql"
import { Agents } from "../agents/agents.ts"
import { Database, orDie, ProjectTransaction, onlyRow } from "../database/database.ts"
import { placePatterns, Objects } from "../graph/objects.ts"
import { mayRead } from "../http/access.ts"
import { Tokens } from "../http/tokens.ts"
import { nextNotification, Notifier } from "../outbox/notifier.ts"
import { digestOf } from "../review/task-digest.ts"
import { Runs } from "../runs/run-store.ts"
import { bounded } from "../tools/arguments.ts"
import { shownObject } from "../tools/graph-effects.ts"
import {
  type Completing,
  type McpCaller,
  type McpCapability,
  type CapabilityResources,
  asJson
} from "./capability.ts"
import { mcpLimits } from "./limits.ts"
import { personOf, makeReviewReading, makeRunReading } from "./people-tools.ts"
import { type Listener, ResourceReaders, type Watched } from "./resource-readers.ts"
import { badParams, whoIs } from "./server.ts"

const inbox = {
  uri: "tropism://inbox",
  name: "inbox",
  title: "What waits for people",
  description: "Suggestions, undos, questions and promotions that wait, newest first",
  mimeType: "application/json"
}

const templates = [
  {
    uriTemplate: "tropism://objects/{objectId}",
    name: "object",
    title: "An object of the graph",
    mimeType: "application/json"
  },
  {
    uriTemplate: "tropism://agents/{agent}",
    name: "agent",
    title: "An agent's definition, by name or id",
    mimeType: "application/json"
  },
  {
    uriTemplate: "tropism://runs/{runId}/log{?after}",
    name: "run log",
    title: "What happened in a run",
    description: "Events in their order; after is the number of the last event that you know",
    mimeType: "application/json"
  }
]

export const peopleResources = Effect.gen(function* () {
  const database = yield* Database
  const objects = yield* Objects
  const agents = yield* Agents
  const runs = yield* Runs
  const updates = yield* ResourceUpdates
  const { log } = yield* makeRunReading
  const { waiting } = yield* makeReviewReading

  /** Reads the resource at an address; undefined where there is none. */
  const found = Effect.fnUntraced(function* (uri: string, caller: McpCaller) {
    if (uri === inbox.uri)
      return asJson(yield* waiting(personOf(caller), false, { limit: mcpLimits.resourceItems }))
    const object = addressPatterns.objects.exec(uri)?.groups?.["id"]
    if (object !== undefined && Schema.is(ObjectId)(object)) {
      const one = yield* objects.get(object)
      return one && asJson(shownObject(one))
    }
    const agent = wordOf(addressPatterns.agents.exec(uri)?.groups?.["id"])
    if (agent !== undefined) {
      const one = Schema.is(AgentId)(agent)
        ? yield* agents.get(agent)
        : (yield* agents.named([agent])).get(agent)
      return one && asJson(one)
    }
    const { after, id } = addressPatterns.runs.exec(uri)?.groups ?? {}
    if (id === undefined || !Schema.is(RunId)(id)) return undefined
    const page = { after: Number(after ?? 0), limit: mcpLimits.resourceItems }
    return asJson(yield* log(id, personOf(caller), page))
  })

  const read =
    (caller: McpCaller): CapabilityResources["read"] =>
    (uri) =>
      uri.startsWith("tropism://")
        ? database.inProject(caller.projectId, found(uri, caller)).pipe(
            Effect.catchTag("ToolFailed", () => Effect.succeed(undefined)),
            Effect.flatMap((value) =>
              value === undefined
                ? Effect.fail(new ResourceNotFoundError(uri))
                : Effect.succeed({
                    contents: [{ uri, mimeType: "application/json", text: JSON.stringify(bounded(value)) }]
                  })
            )
          )
        : Effect.succeed(undefined)

  /** The inbox and the newest objects; everything else has a template. */
  const list =
    ({ projectId }: McpCaller): CapabilityResources["list"] =>
    (cursor) =>
      cursor !== undefined && !placePatterns.createdAt.test(cursor)
        ? Effect.fail(badParams("Invalid cursor"))
        : Effect.map(
            database.inProject(projectId, objects.list({}, "createdAt", cursor, mcpLimits.resourceItems + 1)),
            (listed) => {
              const shown = listed.slice(0, mcpLimits.resourceItems)
              const place = listed.length > shown.length ? shown.at(-1)?.place : undefined
              return {
                resources: [
                  ...(cursor === undefined ? [inbox] : []),
                  ...shown.map(({ object: { id, key, type } }) => ({
                    uri: `tropism://objects/${id}`,
                    name: key === null ? `${type} ${id}` : `${type} ${key}`,
                    mimeType: "application/json"
                  }))
                ],
                ...(place === undefined ? {} : { nextCursor: place })
              }
            }
          )

  /** Names of agents, and ids of the newest objects and runs, that start with the value. */
  const complete = ({ projectId }: McpCaller) =>
    Effect.fnUntraced(function* ({ argument: { name, value } }: Completing) {
      const limit = mcpLimits.completionValues
      const values: Readonly<Record<string, Effect.Effect<ReadonlyArray<string>>>> = {
        agent: Effect.map(database.inProject(projectId, agents.list(undefined, limit)), (all) =>
          all.map((one) => one.name)
        ),
        objectId: Effect.map(
          database.inProject(projectId, objects.list({}, "createdAt", undefined, limit)),
          (all) => all.map(({ object }) => object.id)
        ),
        runId: Effect.map(database.inProject(projectId, runs.list({}, undefined, limit)), (all) =>
          all.map((one) => one.id)
        )
      }
      const known = Object.hasOwn(values, name) ? values[name] : undefined
      return known && (yield* known).filter((one) => one.startsWith(value))
    })

  return {
    name: "resources",
    offerTo: (caller) => ({
      resources: {
        list: list(caller),
        templates,
        read: read(caller),
        subscribe: (uri, sessionId) => updates.subscribe(caller, sessionId, uri),
        unsubscribe: (uri, sessionId) => updates.unsubscribe(caller, sessionId, uri)
      },
      listen: ({ resourceSubscriptions }) =>
        resourceSubscriptions === undefined
          ? Effect.undefined
          : Effect.map(updates.listen(caller, resourceSubscriptions), ({ changes, heard }) => ({
              honored: { resourceSubscriptions: heard },
              tell: (notify) =>
                Stream.runForEach(changes, (uri) => notify("notifications/resources/updated", { uri }))
            })),
      complete: complete(caller)
    })
  } satisfies McpCapability
})

/** A decoded segment of an address. */
const wordOf = (part: string | undefined): string | undefined => {
  if (part === undefined) return undefined
  const decoded = /%(?![0-9a-f]{2})/i.test(part) ? part : safelyDecoded(part)
  return decoded.length <= mcpLimits.toldNameMaxChars ? decoded : undefined
}

/** Percent signs that encode nothing stay as they are. */
const safelyDecoded = (part: string): string =>
  new URLSearchParams(`word=${part.replaceAll("+", "%2B")}`).get("word") ?? part

// The addresses of resources, and which of them can be watched.

/** The pattern of each kind of address. */
const addressPatterns = {
  objects: /^tropism:\/\/objects\/(?<id>[^/?#]+)$/,
  agents: /^tropism:\/\/agents\/(?<id>[^/?#]+)$/,
  runs: /^tropism:\/\/runs\/(?<id>[^/?#]+)\/log(?:\?after=(?<after>\d{1,9}))?$/
}

/** A resource with change notifications. */
export type Watchable =
  | { readonly kind: "object"; readonly id: ObjectId }
  | { readonly kind: "log"; readonly id: RunId }

/** The watchable resource at an address: an object, or a run's log from any event. */
const watchableAt = (uri: string): Watchable | undefined => {
  const object = addressPatterns.objects.exec(uri)?.groups?.["id"]
  if (object !== undefined && Schema.is(ObjectId)(object)) return { kind: "object", id: object }
  const run = addressPatterns.runs.exec(uri)?.groups?.["id"]
  return run !== undefined && Schema.is(RunId)(run) ? { kind: "log", id: run } : undefined
}

// Notifies clients of changed resources, over their open streams.
//
// A notification contains only the address; the client reads the rest. The permit is checked before each one, so a caller who loses the
// token or the right receives nothing more. A session that reconnects gets the changes since its subscription; a listener of 2026-07-28
// starts again and reads again.

/** The listener and its project, checked again before each notification. */
export interface Listening {
  readonly projectId: ProjectId
  /** SHA-256 of the token, hexadecimal. */
  readonly tokenHash: string
}

/** The addresses of changed resources; once the effect has succeeded nothing is missed. */
export type Updates = Effect.Effect<Stream.Stream<string>, never, Scope.Scope>

export class ResourceUpdates extends Context.Service<
  ResourceUpdates,
  {
    /** Subscribes a session to a resource, on whichever server it listens. */
    readonly subscribe: (
      caller: McpCaller,
      sessionId: string,
      uri: string
    ) => Effect.Effect<void, ProtocolError>
    readonly unsubscribe: (caller: McpCaller, sessionId: string, uri: string) => Effect.Effect<void>
    /** Deletes the subscriptions of a session of this project. */
    readonly forget: (projectId: ProjectId, sessionId: string) => Effect.Effect<void>
    /** Listens to those of the addresses that this caller can see, and returns which these are. */
    readonly listen: (
      caller: McpCaller,
      uris: ReadonlyArray<string>
    ) => Effect.Effect<
      { readonly heard: ReadonlyArray<string>; readonly changes: Stream.Stream<string> },
      ProtocolError,
      Scope.Scope
    >
    /** The changed addresses of a session's subscriptions; ends when its token is no longer valid here. */
    readonly ofSession: (listening: Listening, sessionId: string) => Updates
  }
>()("@tropism/server/mcp/ResourceUpdates") {
  static readonly layer = Layer.effect(
    ResourceUpdates,
    Effect.gen(function* () {
      const database = yield* Database
      const notifier = yield* Notifier
      const tokens = yield* Tokens
      const readers = yield* ResourceReaders
      const subscriptions = yield* SessionSubscriptions
      const visibleOf = yield* makeVisibleResources

      const visible = (
        principal: Principal,
        projectId: ProjectId,
        uris: ReadonlyArray<string>,
        was = false
      ) => database.inProject(projectId, visibleOf(principal, uris, was))

      const subscribe = Effect.fn("ResourceUpdates.subscribe")(function* (
        { principal, projectId }: McpCaller,
        sessionId: string,
        uri: string
      ) {
        if (watchableAt(uri) === undefined && uri.startsWith("tropism://"))
          return yield* Effect.fail(
            badParams("Only objects and logs of runs can be subscribed to: read any other resource again")
          )
        const watched =
          uri.length > mcpLimits.uriMaxChars
            ? undefined
            : (yield* visible(principal, projectId, [uri])).get(uri)
        if (watched === undefined) return yield* Effect.fail(new ResourceNotFoundError(uri))
        const place = yield* readers.placeOf(projectId, watched)
        const isKept = yield* database.inProject(
          projectId,
          subscriptions.keep(principal.userId, sessionId, { uri, place })
        )
        if (!isKept)
          return yield* Effect.fail(
            badParams(
              `You have ${mcpLimits.subscriptionsPerUser} subscriptions, as many as there may be: end one first`
            )
          )
      })

      /** The notifications for a listener's changes. */
      const tell = ({ projectId, tokenHash }: Listening, listener: Listener) =>
        Stream.fromEffectRepeat(
          Effect.gen(function* () {
            const changed = yield* listener.changed
            const principal = yield* whoIs(tokens, { projectId, tokenHash })
            return principal && [...(yield* visible(principal, projectId, [...changed], true)).keys()]
          })
        ).pipe(
          Stream.takeWhile((uris: ReadonlyArray<string> | undefined) => uris !== undefined),
          Stream.flatMap((uris) => Stream.fromIterable(uris ?? []))
        )

      const listen = Effect.fn("ResourceUpdates.listen")(function* (
        caller: McpCaller,
        uris: ReadonlyArray<string>
      ) {
        const asked = [...new Set(uris)]
        if (asked.length > mcpLimits.listenedResources)
          return yield* Effect.fail(
            badParams(`A stream listens for at most ${mcpLimits.listenedResources} resources`)
          )
        const listener = yield* readers.listen(caller.projectId)
        const watched = yield* visible(caller.principal, caller.projectId, asked)
        yield* listener.watch(watched)
        return {
          heard: [...watched.keys()],
          changes: watched.size === 0 ? Stream.empty : tell(caller, listener)
        }
      })

      const ofSession = (listening: Listening, sessionId: string): Updates =>
        Effect.gen(function* () {
          const { projectId } = listening
          const listener = yield* readers.listen(projectId)
          const mailbox = yield* notifier.listen(`subscribed:${yield* digestOf(sessionId)}`)
          const look = Effect.gen(function* () {
            const kept = yield* database.inProject(projectId, subscriptions.of(sessionId))
            const uris = kept.map(({ uri }) => uri)
            const principal = yield* whoIs(tokens, listening)
            yield* listener.watch(
              principal === undefined || uris.length === 0
                ? new Map()
                : yield* visible(principal, projectId, uris),
              new Map(kept.map(({ place, uri }) => [uri, place]))
            )
          })
          yield* look
          yield* Effect.forkScoped(
            Effect.forever(
              Effect.andThen(
                nextNotification(mailbox, mcpLimits.sessionSweepIntervalMs),
                Effect.catchCause(look, (cause) =>
                  Effect.logWarning("The subscriptions of a session could not be read", cause)
                )
              )
            )
          )
          return tell(listening, listener)
        })

      return ResourceUpdates.of({
        subscribe,
        unsubscribe: ({ projectId }, sessionId, uri) =>
          database.inProject(projectId, subscriptions.remove(sessionId, uri)),
        forget: (projectId, sessionId) => database.inProject(projectId, subscriptions.forget(sessionId)),
        listen,
        ofSession
      })
    })
  )
}

// Filters the requested resources by what the person may see.
//
// What is missing, of another project, of another person or not watchable is left out alike.

interface LogRow {
  readonly id: RunId
  readonly contextName: ContextName
  readonly owner: UserId | null
}

/** Returns those of the addresses that the principal can watch. */
const makeVisibleResources = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient

  const objectsOf = Effect.fnUntraced(function* (ids: ReadonlyArray<ObjectId>, withDeleted: boolean) {
    if (ids.length === 0) return []
    const { projectId } = yield* ProjectTransaction
    return yield* sql<{ readonly id: ObjectId }>`
      select id from kb.graph_objects where project_id = ${projectId} and id = any(${ids}::uuid[])
        and (${withDeleted}::boolean or deleted_at is null)`
  }, orDie)

  const logsOf = Effect.fnUntraced(function* (ids: ReadonlyArray<RunId>) {
    if (ids.length === 0) return []
    const { projectId } = yield* ProjectTransaction
    return yield* sql<LogRow>`
      select run.id, run.context_name, context.owner from kb.agent_runs run
      join kb.contexts context on context.project_id = run.project_id and context.name = run.context_name
      where run.project_id = ${projectId} and run.id = any(${ids}::uuid[])`
  }, orDie)

  /** `withDeleted` keeps deleted resources: the deletion is a change to notify. */
  return Effect.fnUntraced(function* (
    principal: Principal,
    uris: ReadonlyArray<string>,
    withDeleted: boolean
  ) {
    const wanted = uris.flatMap((uri) => {
      const watchable = watchableAt(uri)
      return watchable === undefined ? [] : [{ uri, watchable }]
    })
    const objects = new Set(
      (yield* objectsOf(
        wanted.flatMap(({ watchable }) => (watchable.kind === "object" ? [watchable.id] : [])),
        withDeleted
      )).map(({ id }) => id)
    )
    const logs = new Map(
      (yield* logsOf(wanted.flatMap(({ watchable }) => (watchable.kind === "log" ? [watchable.id] : []))))
        .filter(({ owner }) => mayRead(principal, owner))
        .map(({ contextName, id }) => [id, contextName] as const)
    )
    const visible = new Map<string, Watched>()
    for (const { uri, watchable } of wanted) {
      if (watchable.kind === "object") {
        if (objects.has(watchable.id)) visible.set(uri, watchable)
        continue
      }
      const contextName = logs.get(watchable.id)
      if (contextName !== undefined) visible.set(uri, { kind: "log", contextName })
    }
    return visible
  })
})

// Stores the resource subscriptions of sessions of 2025-11-25.
//
// A session subscribes in one request and listens in another, perhaps on another server, so a subscription is a row. It ends with its
// session, or a day after the session last listened.

/** A resource, and the end of its source at the subscription. */
export interface SessionSubscription {
  readonly uri: string
  readonly place: number
}

type InProject<A> = Effect.Effect<A, never, ProjectTransaction>

export class SessionSubscriptions extends Context.Service<
  SessionSubscriptions,
  {
    /** Stores a subscription; false when the user has reached the maximum. */
    readonly keep: (
      userId: UserId,
      sessionId: string,
      subscription: SessionSubscription
    ) => InProject<boolean>
    readonly remove: (sessionId: string, uri: string) => InProject<void>
    /** Deletes all of an ended session. */
    readonly forget: (sessionId: string) => InProject<void>
    /** The subscriptions of a session that listens now, which also renews them. */
    readonly of: (sessionId: string) => InProject<ReadonlyArray<SessionSubscription>>
  }
>()("@tropism/server/mcp/SessionSubscriptions") {
  static readonly layer = Layer.effect(
    SessionSubscriptions,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const notifier = yield* Notifier
      const end = sql`now() + make_interval(secs => ${mcpLimits.subscriptionKeptMs / 1_000}::float8)`
      const changed = (session: string) => sql.afterCommit(notifier.signal(`subscribed:${session}`))

      const keep = Effect.fn("SessionSubscriptions.keep")(function* (
        userId: UserId,
        sessionId: string,
        { place, uri }: SessionSubscription
      ) {
        const { projectId } = yield* ProjectTransaction
        const session = yield* digestOf(sessionId)
        // Serialized, so that two requests cannot both take the last slot.
        yield* sql`select pg_advisory_xact_lock(hashtextextended(${`resource subscriptions ${projectId} ${userId}`}, 0))`
        yield* sql`
          delete from kb.resource_subscriptions where project_id = ${projectId} and user_id = ${userId} and expires_at <= now()`
        const { count } = yield* Effect.flatMap(
          sql<{ readonly count: number }>`
            select count(*)::int as count from kb.resource_subscriptions
            where project_id = ${projectId} and user_id = ${userId} and (session, uri) <> (${session}, ${uri})`,
          onlyRow
        )
        if (count >= mcpLimits.subscriptionsPerUser) return false
        yield* sql`
          insert into kb.resource_subscriptions (project_id, session, uri, user_id, place, expires_at)
          values (${projectId}, ${session}, ${uri}, ${userId}, ${place}, ${end})
          on conflict (project_id, session, uri) do update set place = excluded.place, expires_at = excluded.expires_at`
        yield* changed(session)
        return true
      }, orDie)

      const remove = Effect.fn("SessionSubscriptions.remove")(function* (sessionId: string, uri: string) {
        const { projectId } = yield* ProjectTransaction
        const session = yield* digestOf(sessionId)
        yield* sql`
          delete from kb.resource_subscriptions where project_id = ${projectId} and session = ${session} and uri = ${uri}`
        yield* changed(session)
      }, orDie)

      const forget = Effect.fn("SessionSubscriptions.forget")(function* (sessionId: string) {
        const { projectId } = yield* ProjectTransaction
        const session = yield* digestOf(sessionId)
        const rows = yield* sql`
          delete from kb.resource_subscriptions where project_id = ${projectId} and session = ${session} returning 1`
        if (rows.length > 0) yield* changed(session)
      }, orDie)

      const of = Effect.fn("SessionSubscriptions.of")(function* (sessionId: string) {
        const { projectId } = yield* ProjectTransaction
        const session = yield* digestOf(sessionId)
        const rows = yield* sql<{ readonly uri: string; readonly place: bigint; readonly isOld: boolean }>`
          select uri, place, expires_at < now() + make_interval(secs => ${mcpLimits.subscriptionKeptMs / 2_000}::float8) as is_old
          from kb.resource_subscriptions
          where project_id = ${projectId} and session = ${session} and expires_at > now() order by uri`
        if (rows.some(({ isOld }) => isOld))
          yield* sql`
            update kb.resource_subscriptions set expires_at = ${end} where project_id = ${projectId} and session = ${session}`
        return rows.map(({ place, uri }) => ({ uri, place: Number(place) }))
      }, orDie)

      return SessionSubscriptions.of({ keep, remove, forget, of })
    })
  )
}

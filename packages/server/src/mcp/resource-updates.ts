/**
 * Tells clients of which resources have changed, over the streams on which they listen.
 *
 * Flow: **mcp** → graph → outbox → dispatch → run → tool → task
 *
 * A client is told the address alone and reads what it wants to know. Whether it
 * may still hear of it is asked each time there is something to be told, so who
 * lost the token or the right hears nothing from that moment on. A session that
 * comes back is told of what has changed since it subscribed; whoever listens in
 * 2026-07-28 begins anew and reads again.
 */
import type { Principal } from "@tropism/api/authorization"
import { type ProtocolError, ResourceNotFoundError } from "@modelcontextprotocol/server"
import type { ProjectId } from "@tropism/domain/ids"
import { Context, Effect, Layer, type Scope, Stream } from "effect"
import { Database } from "../database/database.ts"
import { Tokens } from "../http/tokens.ts"
import { nextWakeUp, WakeUps } from "../outbox/wake-ups.ts"
import { digestOf } from "../task/digest.ts"
import { badParams } from "./door-server.ts"
import { whoIs } from "./caller.ts"
import { mcpLimits } from "./mcp-limits.ts"
import type { McpCaller } from "./part.ts"
import { watchableAt } from "./resource-addresses.ts"
import { type Listener, ResourceReaders } from "./resource-readers.ts"
import { SessionSubscriptions } from "./session-subscriptions.ts"
import { makeVisibleResources } from "./visible-resources.ts"

/** Who listens, and in which project: looked at again each time there is something to be told. */
export interface Listening {
  readonly projectId: ProjectId
  /** SHA-256 of the token, hexadecimal. */
  readonly tokenHash: string
}

/** The addresses of what changes; once they are there nothing is missed. */
export type Updates = Effect.Effect<Stream.Stream<string>, never, Scope.Scope>

export class ResourceUpdates extends Context.Service<
  ResourceUpdates,
  {
    /** Lets a session be told of a resource from now on, wherever it listens. */
    readonly subscribe: (
      caller: McpCaller,
      sessionId: string,
      uri: string
    ) => Effect.Effect<void, ProtocolError>
    readonly unsubscribe: (caller: McpCaller, sessionId: string, uri: string) => Effect.Effect<void>
    /** Ends what a session of this project was told of. */
    readonly forget: (projectId: ProjectId, sessionId: string) => Effect.Effect<void>
    /** Listens for those of the addresses at which there is something for this caller, and answers which those are. */
    readonly listen: (
      caller: McpCaller,
      uris: ReadonlyArray<string>
    ) => Effect.Effect<
      { readonly heard: ReadonlyArray<string>; readonly changes: Stream.Stream<string> },
      ProtocolError,
      Scope.Scope
    >
    /** The addresses of what a session is subscribed to, when it changes; ends when its token opens nothing more. */
    readonly ofSession: (listening: Listening, sessionId: string) => Updates
  }
>()("@tropism/server/mcp/ResourceUpdates") {
  static readonly layer = Layer.effect(
    ResourceUpdates,
    Effect.gen(function* () {
      const database = yield* Database
      const wakeUps = yield* WakeUps
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

      /** What is told of what a listener hears. */
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
          const mailbox = yield* wakeUps.listen(`subscribed:${yield* digestOf(sessionId)}`)
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
                nextWakeUp(mailbox, mcpLimits.sessionSweepIntervalMs),
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

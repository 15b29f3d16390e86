/**
 * Streams on which a client of 2026-07-28 is told what changes: `subscriptions/listen`, for every part that tells anything.
 *
 * Flow: **mcp** → graph → outbox → dispatch → run → tool → task
 *
 * The SDK would serve this method by itself, from one bus for all callers that
 * knows four kinds of changes. Here each part says what it tells to this caller.
 * So that the SDK judges the request as it judges every other, and gives it a
 * server of its own, the method goes through it under another name. No other
 * request meets a server that knows this name: to whoever asks by it there is none.
 */
import { ProtocolErrorCode, type Server, SUBSCRIPTION_ID_META_KEY } from "@modelcontextprotocol/server"
import { isJsonObject } from "@tropism/domain/json"
import { Deferred, Effect, Schema } from "effect"
import { Closing } from "../http/closing.ts"
import { badParams, fault } from "./door-server.ts"
import { mcpLimits } from "./mcp-limits.ts"
import { anyParams } from "./method-params.ts"
import type { ListenFilter, Notify, Offer, RunForServer } from "./part.ts"
import { gone, makePlaces } from "./streams.ts"

export const listenMethod = "subscriptions/listen"
const servedAs = "tropism/subscriptions/listen"

/** A request to listen under the name by which it is served; undefined for any other, and for one whose header names another method. */
export const renamed = (
  request: Request,
  message: unknown
): { readonly request: Request; readonly message: unknown } | undefined => {
  if (!isJsonObject(message) || message["method"] !== listenMethod) return undefined
  const headers = new Headers(request.headers)
  if (headers.get("mcp-method") !== listenMethod) return undefined
  headers.set("mcp-method", servedAs)
  return { request: new Request(request, { headers }), message: { ...message, method: servedAs } }
}

const Filter = Schema.Struct({
  toolsListChanged: Schema.optional(Schema.Boolean),
  promptsListChanged: Schema.optional(Schema.Boolean),
  resourcesListChanged: Schema.optional(Schema.Boolean),
  resourceSubscriptions: Schema.optional(Schema.Array(Schema.String)),
  taskIds: Schema.optional(Schema.Array(Schema.String))
})
const readFilter = Schema.decodeUnknownEffect(Filter)

/** Lets servers serve listeners until the server stops; then every stream ends in the way that tells its client to come again. */
export const makeListening = Effect.gen(function* () {
  const closing = yield* Closing
  const places = makePlaces({ ofOwner: mcpLimits.listensPerUser, inAll: mcpLimits.streams }, () =>
    fault(ProtocolErrorCode.InternalError, "Subscription limit reached: end one first")
  )

  /** Serves whoever listens to these offers, all of them one owner's. */
  return (server: Server, owner: string, offers: ReadonlyArray<Offer>, run: RunForServer): void =>
    server.setRequestHandler(servedAs, anyParams, ({ notifications }, context) =>
      run(
        Effect.gen(function* () {
          const { id, notify: send } = context.mcpReq
          const filter: ListenFilter = yield* Effect.mapError(readFilter(notifications), () =>
            badParams("Invalid params: 'notifications' is required and must be a valid SubscriptionFilter")
          )
          yield* Effect.acquireRelease(places.enter(owner), places.leave)
          const told = yield* Effect.forEach(
            offers,
            ({ listen }) => listen?.(filter, context) ?? Effect.undefined
          )
          const tellings = told.filter((telling) => telling !== undefined)
          const _meta = { [SUBSCRIPTION_ID_META_KEY]: id }
          const full = yield* Deferred.make<void>()
          let chars = 0
          const notify: Notify = (method, params = {}) =>
            Effect.promise(() => send({ method, params: { ...params, _meta } })).pipe(
              Effect.andThen(
                Effect.suspend(() => {
                  chars += JSON.stringify(params).length
                  return chars > mcpLimits.listenMaxChars ? Deferred.succeed(full, undefined) : Effect.void
                })
              )
            )
          yield* notify("notifications/subscriptions/acknowledged", {
            notifications: Object.assign({}, ...tellings.map(({ honored }) => honored))
          })
          const telling = Effect.forEach(tellings, ({ tell }) => tell(notify), {
            concurrency: mcpLimits.tellersOfStream,
            discard: true
          })
          yield* Effect.raceAllFirst([telling, closing.begun, Deferred.await(full), gone(context)])
          return { _meta }
        }).pipe(Effect.scoped)
      )
    )
})

/** Serves whoever listens. */
export type ServeListeners = Effect.Success<typeof makeListening>

/**
 * How this server calls the others: one websocket to each, given up when nothing comes back.
 *
 * Flow: everything on the stairs below **cluster**
 *
 * Whoever stands still closes nothing. So each connection is asked whether the
 * other is there, as often as servers give signs of life, and what waits for one
 * that says nothing for as long as a server may is told so and looks elsewhere.
 */
import { Effect, Layer } from "effect"
import { Runners } from "effect/cluster"
import { RpcClient, RpcSerialization } from "effect/rpc"
import { Socket } from "effect/socket"
import { clusterLimits } from "./cluster-limits.ts"
import { urlOf } from "./cluster-address.ts"

export const calling = Layer.effect(
  Runners.RpcClientProtocol,
  Effect.gen(function* () {
    const serialization = yield* RpcSerialization.RpcSerialization
    const constructor = yield* Socket.WebSocketConstructor
    return Runners.RpcClientProtocol.of({
      codecFor: serialization.codecFor,
      make: Effect.fnUntraced(function* (address) {
        const socket = yield* Effect.provideService(
          Socket.makeWebSocket(urlOf(address)),
          Socket.WebSocketConstructor,
          constructor
        )
        return yield* RpcClient.makeProtocolSocket({
          pingInterval: clusterLimits.heartbeatMs,
          pingTimeout: clusterLimits.silenceMs
        }).pipe(
          Effect.provideService(Socket.Socket, socket),
          Effect.provideService(RpcSerialization.RpcSerialization, serialization)
        )
      })
    })
  })
)

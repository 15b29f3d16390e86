/**
 * Finds what prevents a start before anything is created, changed or connected to.
 *
 * Each fault is one sentence with the remedy. A flag without its required setting is a wrong call (`FlagUnmet`); `settings.ts` validates
 * settings, and later faults are a `StartFailure`, too.
 */
import { Effect, Predicate, type Redacted, Schema } from "effect"
import { HttpServerError } from "effect/http"
import { type ClusterAddress, listensAt } from "./cluster/peers.ts"
import { type ListenAddress, type ListenFault, tryListening } from "./http/listener.ts"
import { FlagUnmet, isKeyGiven } from "./settings.ts"

/** The server could not start; `message` explains why and what to do. */
export class StartFailure extends Schema.TaggedError<StartFailure>()("StartFailure", {
  message: Schema.String
}) {}

/** The options of a start, as far as they can be checked alone. */
export interface Call {
  readonly host: string
  readonly port: number
  readonly databaseUrl?: Redacted.Redacted<string> | undefined
  readonly encryptionKeys?: Redacted.Redacted<string> | undefined
  readonly cluster?: ClusterAddress | undefined
}

/** Fails with a sentence if this call cannot succeed. */
export const checkCall = Effect.fn("checkCall")(function* (call: Call) {
  if (call.cluster !== undefined) yield* checkCompany(call)
  yield* checkPort(call)
  if (call.cluster !== undefined) yield* checkPort(listensAt(call.cluster), "TROPISM_CLUSTER_ADDRESS")
})

/** Fails with a sentence if a server with peers has the settings of a single one. */
const checkCompany = Effect.fnUntraced(function* ({ databaseUrl, encryptionKeys }: Call) {
  if (databaseUrl === undefined)
    return yield* new FlagUnmet({
      message:
        "--cluster needs a PostgreSQL that all servers reach: set DATABASE_URL to it, on each server the same."
    })
  if (!(yield* isKeyGiven(encryptionKeys)))
    return yield* new FlagUnmet({
      message:
        'Servers of a cluster prove themselves by TROPISM_ENCRYPTION_KEY: make one with "openssl rand -base64 32", and set it on each server the same. If this database was served before by a server that made its key itself, take that one: it lies in the data folder as encryption-key.'
    })
})

/** Fails with a sentence if the address is not free. */
const checkPort = (address: ListenAddress, setting = "PORT") =>
  Effect.mapError(tryListening({ host: address.host, port: address.port }), (fault) =>
    portProblem(address, fault, setting)
  )

/** The same for a port that was taken after the check. */
export const orPortProblem = <A, E, R>(
  listening: Effect.Effect<A, E | HttpServerError.ServeError, R>,
  address: ListenAddress,
  setting = "PORT"
): Effect.Effect<A, E | StartFailure, R> =>
  Effect.mapError(listening, (error) => {
    if (!(error instanceof HttpServerError.ServeError)) return error
    const { cause } = error
    return portProblem(address, Predicate.isError(cause) ? cause : { message: String(cause) }, setting)
  })

const portProblem = (address: ListenAddress, error: ListenFault, setting: string) =>
  new StartFailure({ message: portSentence(`${address.host ?? "*"}:${address.port}`, error, setting) })

const portSentence = (where: string, error: ListenFault, setting: string): string => {
  switch (error.code) {
    case "EADDRINUSE":
      return `${where} is in use: stop the program that holds it, or start with another ${setting}.`
    case "EACCES":
      return `${where} may not be used by this account: start with a ${setting} above 1023.`
    default:
      return `Nothing can listen at ${where} (${error.message}): check ${setting === "PORT" ? "HOST and PORT" : setting}.`
  }
}

/**
 * The typed client of a Tropism server for programs on Effect: every endpoint of the contract as a function.
 *
 * It is built on fetch alone, so it runs in a browser, in Node and in Bun. It
 * decodes what the contract says of each answer. Programs without Effect have
 * `plain/create-client.ts`; both make requests again in the same way
 * (`retrying.ts`), this one where it is told to.
 */
import { Api } from "@tropism/api/api"
import { Context, Effect, Layer, Schema } from "effect"
import { FetchHttpClient, HttpClient } from "effect/http"
import { HttpApiClient } from "effect/http-api"
import { type Connection, withCredential } from "./connection.ts"
import { retrying } from "./retrying.ts"

/** Every endpoint, grouped as the contract groups them: `client.tasks.approve(…)`. */
export type ApiClient = HttpApiClient.ForApi<typeof Api>

export interface ClientOptions extends Connection {
  /** How often a request is made again that has no second effect; never by itself. */
  readonly retries?: number | undefined
}

export class Client extends Context.Service<Client, ApiClient>()("@tropism/client/Client") {
  /** Connects nothing yet: the first request shows whether the server answers. */
  static readonly layer = (options: ClientOptions): Layer.Layer<Client> =>
    Layer.effect(Client, makeClient(options)).pipe(Layer.provide(FetchHttpClient.layer))
}

/** Makes a client on whichever `HttpClient` the caller has. */
export const makeClient = (options: ClientOptions): Effect.Effect<ApiClient, never, HttpClient.HttpClient> =>
  HttpApiClient.make(Api, {
    baseUrl: options.url,
    transformClient: (client) => {
      const credited = HttpClient.mapRequest(client, withCredential(options))
      return options.retries === undefined ? credited : retrying(options.retries)(credited)
    },
    transformResponse: Effect.mapError((error) =>
      Schema.isSchemaError(error) ? new AnswerUnreadable({ reason: error.message }) : error
    )
  })

/** The server answered what the contract does not know; a `SchemaError` is a request that does not fit it. */
export class AnswerUnreadable extends Schema.TaggedError<AnswerUnreadable>()("AnswerUnreadable", {
  reason: Schema.String
}) {}

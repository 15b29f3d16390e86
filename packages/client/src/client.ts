/**
 * The typed client of a Tropism server: every endpoint of the contract as a function.
 *
 * It is built on fetch alone, so it runs in a browser, in Node and in Bun. It
 * adds the address and the credential and nothing else: it neither retries nor
 * caches, because only the caller knows which of its requests may be repeated.
 */
import { Api } from "@tropism/api/api"
import { Context, Effect, Layer, Redacted, Schema } from "effect"
import { FetchHttpClient, HttpClient, HttpClientRequest } from "effect/http"
import { HttpApiClient } from "effect/http-api"

/** Where a server is and as whom to speak to it. */
export interface Connection {
  /** The server's address without a path: `http://127.0.0.1:4400`. */
  readonly url: string
  /** A bearer token; a page that the server itself served has its cookie and needs none. */
  readonly token?: Redacted.Redacted<string> | undefined
}

/** Every endpoint, grouped as the contract groups them: `client.tasks.approve(…)`. */
export type ApiClient = HttpApiClient.ForApi<typeof Api>

export class Client extends Context.Service<Client, ApiClient>()("@tropism/client/Client") {
  /** Connects nothing yet: the first request shows whether the server answers. */
  static readonly layer = (connection: Connection): Layer.Layer<Client> =>
    Layer.effect(Client, makeClient(connection)).pipe(Layer.provide(FetchHttpClient.layer))
}

/** Makes a client on whichever `HttpClient` the caller has. */
export const makeClient = (connection: Connection): Effect.Effect<ApiClient, never, HttpClient.HttpClient> =>
  HttpApiClient.make(Api, {
    baseUrl: connection.url,
    transformClient: HttpClient.mapRequest(withCredential(connection)),
    transformResponse: Effect.mapError((error) =>
      Schema.isSchemaError(error) ? new AnswerUnreadable({ reason: error.message }) : error
    )
  })

/** The server answered what the contract does not know; a `SchemaError` is a request that does not fit it. */
export class AnswerUnreadable extends Schema.TaggedError<AnswerUnreadable>()("AnswerUnreadable", {
  reason: Schema.String
}) {}

/** Adds the token to a request, if there is one. */
export const withCredential =
  (connection: Connection) =>
  (request: HttpClientRequest.HttpClientRequest): HttpClientRequest.HttpClientRequest =>
    connection.token ? HttpClientRequest.bearerToken(request, connection.token) : request

/**
 * One call of the contract: from ids, a body and a query to an answer in its form.
 *
 * Nothing is checked here that the server checks. An answer that is no 2xx
 * leaves as a problem.
 */
import { beginningOf } from "@tropism/domain/text-beginning"
import { Context, Effect, Stream } from "effect"
import {
  FetchHttpClient,
  HttpBody,
  HttpClient,
  HttpClientError,
  HttpClientRequest,
  type HttpClientResponse
} from "effect/http"
import { type Connection, withCredential } from "../connection.ts"
import { limits } from "../limits.ts"
import { retrying } from "../retrying.ts"
import type { CreateClientOptions } from "./plain-client.ts"
import { TropismProblem, TropismUnreachable, TropismUnreadable } from "./problem.ts"

/** What a query may say: texts and numbers as they are, a list with commas, anything else as JSON. */
export type Query = Readonly<Record<string, unknown>>

export interface Asked {
  readonly method: string
  /** With everything in its place. */
  readonly path: string
  readonly query?: Query | undefined
  readonly body?: unknown
  readonly headers?: Readonly<Record<string, string>> | undefined
}

/** The client's way to a server. */
export interface Line {
  readonly connection: Connection
  /** Makes requests again. */
  readonly http: HttpClient.HttpClient
  /** Makes each request once: for feeds, which reconnect by themselves. */
  readonly once: HttpClient.HttpClient
}

export const lineTo = (
  connection: Connection,
  retries: number,
  fetch: NonNullable<CreateClientOptions["fetch"]>
): Line => {
  const once = Context.get(
    Effect.runSync(Effect.provide(Effect.context<HttpClient.HttpClient>(), FetchHttpClient.layer)),
    HttpClient.HttpClient
  ).pipe(
    HttpClient.transformResponse(
      Effect.provideService(FetchHttpClient.Fetch, fetch as typeof globalThis.fetch)
    )
  )
  return { connection, http: retrying(retries)(once), once }
}

/** The request of a call. */
export const requestOf = (connection: Connection, asked: Asked): HttpClientRequest.HttpClientRequest =>
  HttpClientRequest.make(asked.method as "GET")(connection.url + asked.path).pipe(
    HttpClientRequest.setUrlParams(parametersOf(asked.query ?? {})),
    withBody(asked.body),
    HttpClientRequest.setHeaders({ ...asked.headers }),
    withCredential(connection)
  )

const parametersOf = (query: Query): Record<string, string> =>
  Object.fromEntries(
    Object.entries(query)
      .filter(([, value]) => value !== undefined && value !== null)
      .map(([name, value]) => [name, parameter(value)])
  )

const parameter = (value: unknown): string => {
  if (Array.isArray(value) && value.every((item) => typeof item !== "object")) return value.join(",")
  return typeof value === "object" ? JSON.stringify(value) : String(value)
}

const withBody = (body: unknown) => (request: HttpClientRequest.HttpClientRequest) => {
  if (body === undefined) return request
  if (body instanceof Uint8Array) return HttpClientRequest.bodyUint8Array(request, body)
  if (body instanceof ReadableStream || body instanceof Blob)
    return HttpClientRequest.setBody(
      request,
      HttpBody.raw(body, { contentType: (body instanceof Blob && body.type) || "application/octet-stream" })
    )
  return HttpClientRequest.bodyText(request, JSON.stringify(body), "application/json")
}

/** Asks, and answers with the response once it is a good one. */
export const ask = (line: Line, asked: Asked): Effect.Effect<HttpClientResponse.HttpClientResponse, Error> =>
  line.http.execute(requestOf(line.connection, asked)).pipe(
    Effect.mapError((error) => unreachable(line.connection, error)),
    Effect.flatMap((response) =>
      response.status >= 200 && response.status < 300 ? Effect.succeed(response) : refused(response)
    )
  )

export const unreachable = (connection: Connection, cause: unknown): TropismUnreachable =>
  new TropismUnreachable(`No server answers at ${connection.url}.`, { cause })

const refused = (response: HttpClientResponse.HttpClientResponse) =>
  Effect.flatMap(
    Effect.orElseSucceed(response.text, () => ""),
    (text) => Effect.fail(problemOf(response, text))
  )

/** The problem that an answer tells, or that it tells none. */
export const problemOf = (
  response: HttpClientResponse.HttpClientResponse,
  text: string
): TropismProblem | TropismUnreadable => {
  const problem = parsed(text)
  return typeof problem?.type === "string" && typeof problem.status === "number"
    ? new TropismProblem(response, problem)
    : new TropismUnreadable(response, beginningOf(text, limits.quotedAnswerChars))
}

const parsed = (text: string) =>
  Effect.runSync(
    Effect.orElseSucceed(
      Effect.try(() => JSON.parse(text)),
      () => undefined
    )
  )

/** The answer as JSON; undefined where there is none. */
export const valueOf = (response: HttpClientResponse.HttpClientResponse): Effect.Effect<unknown, Error> =>
  Effect.flatMap(wholeText(response), (text) => {
    if (text === "") return Effect.succeed(undefined)
    const value = parsed(text)
    return value === undefined
      ? Effect.fail(new TropismUnreadable(response, beginningOf(text, limits.quotedAnswerChars)))
      : Effect.succeed(value)
  })

export const wholeText = (response: HttpClientResponse.HttpClientResponse): Effect.Effect<string, Error> =>
  Effect.mapError(response.text, brokenOff)

export const wholeBytes = (
  response: HttpClientResponse.HttpClientResponse
): Effect.Effect<Uint8Array, Error> =>
  Effect.map(Effect.mapError(response.arrayBuffer, brokenOff), (buffer) => new Uint8Array(buffer))

const brokenOff = (cause: HttpClientError.HttpClientError) =>
  new TropismUnreachable("The answer broke off.", { cause })

/** The answer line by line, each JSON. */
export const linesOf = (line: Line, asked: Asked): Stream.Stream<unknown, Error> =>
  Stream.unwrap(
    Effect.map(ask(line, asked), (response) =>
      response.stream.pipe(
        Stream.mapError(brokenOff),
        Stream.decodeText(),
        Stream.splitLines,
        Stream.filter((text) => text !== ""),
        Stream.mapEffect((text) => {
          const value = parsed(text)
          return value === undefined
            ? Effect.fail(new TropismUnreadable(response, beginningOf(text, limits.quotedAnswerChars)))
            : Effect.succeed(value)
        })
      )
    )
  )

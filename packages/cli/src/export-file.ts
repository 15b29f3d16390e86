/**
 * Writes a project's graph as lines, to a file or to standard output.
 *
 * A file appears only when it is whole: it is written beside its place and
 * moved there at the end. An export that breaks off, or that says in its last
 * line that it could not be finished, leaves nothing and is told.
 */
import { withCredential } from "@tropism/client/connection"
import { Effect, Option, Schema, Stream } from "effect"
import { FetchHttpClient, HttpClient, HttpClientRequest, type HttpClientResponse } from "effect/http"
import type { Access } from "./access.ts"
import { failure, requestFailure } from "./failure.ts"
import { type Place, writeWholeFile } from "./whole-file.ts"

export interface ExportRequest {
  readonly place: Place
  /** Types with a comma between them; undefined for all. */
  readonly types: string | undefined
  readonly asOf: string | undefined
}

/** Exports and answers how many lines there were. */
export const exportFile = (access: Access, request: ExportRequest) =>
  Effect.gen(function* () {
    const response = yield* ask(access, request)
    const counter = makeLineCounter()
    const counted = response.stream.pipe(
      Stream.mapError(() => failure(brokenOff)),
      Stream.tap((bytes) => Effect.sync(() => counter.count(bytes)))
    )
    yield* writeWholeFile({
      content: counted,
      place: request.place,
      progress: { label: "Exporting", lines: counter.lines, total: linesIn(response) },
      check: checkEnd(counter)
    })
    return { lines: counter.lines() }
  }).pipe(Effect.provide(FetchHttpClient.layer))

const brokenOff = "The connection was lost during the export, so it is incomplete. Run the command again."

/** Asks for the export; whatever is no export is told as what it is. */
const ask = ({ connection, project }: Access, { types, asOf }: ExportRequest) =>
  Effect.gen(function* () {
    const query = new URLSearchParams({
      ...(types === undefined ? {} : { types }),
      ...(asOf === undefined ? {} : { asOf })
    })
    const http = yield* HttpClient.HttpClient
    const request = HttpClientRequest.get(`${connection.url}/api/projects/${project.id}/export?${query}`)
    const response = yield* Effect.mapError(http.execute(withCredential(connection)(request)), (error) =>
      requestFailure(error, connection.url)
    )
    if (response.status === 200) return response
    const problem = yield* Effect.orElseSucceed(response.json, () => ({ status: response.status }))
    return yield* requestFailure(problem, connection.url)
  })

/** How many lines the server expects to send. */
const linesIn = ({ headers }: HttpClientResponse.HttpClientResponse): number | undefined => {
  const total = Number(headers["tropism-objects"]) + Number(headers["tropism-relationships"])
  return Number.isSafeInteger(total) ? total : undefined
}

interface LineCounter {
  readonly count: (bytes: Uint8Array) => void
  readonly lines: () => number
  /** The beginning of the last line. */
  readonly lastLine: () => string
}

/** Counts lines in bytes and keeps the beginning of the last one, which may say that the export is not whole. */
const makeLineCounter = (): LineCounter => {
  let lines = 0
  let last = ""
  let isOver = false
  const keep = (bytes: Uint8Array) => {
    if (last.length < keptChars) last += decoder.decode(bytes.subarray(0, keptChars))
  }
  return {
    count: (bytes) => {
      let from = 0
      while (from < bytes.length) {
        const end = bytes.indexOf(lineFeed, from)
        if (isOver) last = ""
        keep(bytes.subarray(from, end === -1 ? bytes.length : end))
        isOver = end !== -1
        if (end === -1) return
        lines += 1
        from = end + 1
      }
    },
    lines: () => lines,
    lastLine: () => last
  }
}

const lineFeed = 10
const keptChars = 2_000
const decoder = new TextDecoder()

const decodeError = Schema.decodeUnknownOption(Schema.fromJsonString(Schema.Struct({ error: Schema.String })))

const checkEnd = (counter: LineCounter) =>
  Effect.suspend(() =>
    Option.match(decodeError(counter.lastLine()), {
      onNone: () => Effect.void,
      onSome: ({ error }) => Effect.fail(failure(error))
    })
  )

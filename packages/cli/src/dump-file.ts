/**
 * Receives a dump and looks whether it is the one that the server took, to the last byte.
 */
import { createHash } from "node:crypto"
import { withCredential } from "@tropism/client/connection"
import { DumpEnd, endLineOf } from "@tropism/domain/dump"
import { Effect, Option, Schema, Stream } from "effect"
import { FetchHttpClient, HttpClient, HttpClientRequest } from "effect/http"
import type { Access } from "./access.ts"
import { failure, requestFailure } from "./failure.ts"
import { type Place, writeWholeFile } from "./whole-file.ts"

/** Dumps a project into a file and answers how many rows there are. */
export const dumpFile = ({ connection, project }: Access, place: Place) =>
  Effect.gen(function* () {
    const http = yield* HttpClient.HttpClient
    const request = HttpClientRequest.get(`${connection.url}/api/projects/${project.id}/dump`)
    const response = yield* Effect.mapError(http.execute(withCredential(connection)(request)), (error) =>
      requestFailure(error, connection.url)
    )
    if (response.status !== 200) {
      const problem = yield* Effect.orElseSucceed(response.json, () => ({ status: response.status }))
      return yield* requestFailure(problem, connection.url)
    }
    const reader = makeDumpReader()
    const rows = Number(response.headers["tropism-rows"])
    yield* writeWholeFile({
      content: response.stream.pipe(
        Stream.mapError(() => failure(brokenOff)),
        Stream.tap((bytes) => Effect.sync(() => reader.read(bytes)))
      ),
      place,
      // It has what everybody in the project wrote.
      mode: 0o600,
      progress: {
        label: "Dumping to",
        lines: reader.lines,
        total: Number.isSafeInteger(rows) ? rows + 2 : undefined
      },
      check: Effect.suspend(() => {
        const fault = reader.findFault()
        return fault === undefined ? Effect.void : Effect.fail(failure(fault))
      })
    })
    return { rows: reader.lines() - 2 }
  }).pipe(Effect.provide(FetchHttpClient.layer))

const brokenOff = "The connection was lost during the dump, so it is incomplete. Run the command again."

/** The last line is shorter than this. */
const tailBytes = 4_096

/** Digests all but the last line, of which it keeps the bytes. */
const makeDumpReader = () => {
  const hash = createHash("sha256")
  let tail = Buffer.alloc(0)
  let lines = 0
  return {
    read: (bytes: Uint8Array) => {
      for (let at = bytes.indexOf(10); at !== -1; at = bytes.indexOf(10, at + 1)) lines += 1
      const held = Buffer.concat([tail, bytes])
      const kept = Math.max(0, held.length - tailBytes)
      hash.update(held.subarray(0, kept))
      tail = held.subarray(kept)
    },
    lines: () => lines,
    findFault: (): string | undefined => {
      const start = tail.lastIndexOf(10, tail.length - 2) + 1
      const last = tail.subarray(start).toString("utf8")
      const failed = decodeFailed(last.trim())
      if (Option.isSome(failed)) return failed.value.error
      const end = decodeEnd(last.trim())
      if (Option.isNone(end)) return brokenOff
      const sha256 = hash.update(tail.subarray(0, start)).digest("hex")
      return last === endLineOf({ rows: end.value.rows, sha256 })
        ? undefined
        : "The dump is damaged: its digest does not match. Run the command again."
    }
  }
}

const decodeEnd = Schema.decodeUnknownOption(Schema.fromJsonString(DumpEnd))
const decodeFailed = Schema.decodeUnknownOption(
  Schema.fromJsonString(Schema.Struct({ tropism: Schema.Literal("failed"), error: Schema.String }))
)

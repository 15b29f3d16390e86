/**
 * Files that come and go: imports, what is known of them, and exports.
 *
 * Flow: **http** → graph → outbox → dispatch → run → tool → task
 */
import { Api } from "@tropism/api/api"
import { type ImportLine, lockfileMaxBytes } from "@tropism/api/transfer-api"
import { Unauthorized } from "@tropism/api/problems"
import type { ProjectId, UserId } from "@tropism/domain/ids"
import { Effect, Fiber, Stream } from "effect"
import { HttpServerRequest, HttpServerResponse } from "effect/http"
import { HttpApiBuilder } from "effect/http-api"
import { Exporter } from "../graph/exporter.ts"
import { Importer } from "../graph/importer.ts"
import { Imports } from "../graph/imports.ts"
import { LineImporter } from "../graph/line-importer.ts"
import { instantPlace } from "../graph/object-orders.ts"
import { readPackageLock } from "../graph/package-lock.ts"
import { transferLimits } from "../limits.ts"
import { looking, reading } from "./access.ts"
import { pageByPlace } from "./paging.ts"
import { currentLoss } from "./permits.ts"
import { importProblem, invalid, invalidLockfile, orNotFound } from "./refusals.ts"
import { readText, tooLarge, tooSlow } from "./request-judgement.ts"
import { momentOf } from "./user-change.ts"

export const transferHandlers = HttpApiBuilder.group(Api, "transfer", (handlers) =>
  handlers
    .handle(
      "import",
      Effect.fn("http.import")(function* ({ params: { projectId }, payload, query }) {
        const { userId: by } = yield* looking(projectId, "editor", Effect.succeed)
        const { format, name, id, resume, type, key, delimiter } = query
        const untrusted = query.untrusted === "true" ? true : undefined
        if (format === "package-lock") return yield* importLock(projectId, by, payload, { name, untrusted })
        const [extra] = Object.entries({ type, key, delimiter }).filter(([, value]) => value !== undefined)
        if (format !== "csv" && extra !== undefined)
          return yield* invalid(extra[0], "Only a CSV file takes a type, a key and a delimiter")
        const { headers } = yield* HttpServerRequest.HttpServerRequest
        const length = headers["content-length"]
        const importer = yield* LineImporter
        const lost = yield* currentLoss(projectId)
        const opening = importer.open({
          projectId,
          by,
          file: { format, name, settings: { type, key, delimiter, untrusted } },
          id,
          resume,
          totalBytes: length === undefined ? null : Number(length),
          body: payload,
          lost
        })
        const lines: Stream.Stream<ImportLine> = yield* unlessLost(
          lost,
          Effect.mapError(opening, importProblem)
        )
        return lines
      })
    )
    .handle(
      "listImports",
      Effect.fn("http.imports.list")(function* ({ params, query }) {
        const imports = yield* Imports
        return yield* reading(params.projectId, pageByPlace(query, instantPlace, imports.list))
      })
    )
    .handle(
      "getImport",
      Effect.fn("http.imports.get")(function* ({ params }) {
        const imports = yield* Imports
        const kept = yield* orNotFound("import")(reading(params.projectId, imports.get(params.importId)))
        return kept.record
      })
    )
    .handleRaw(
      "export",
      Effect.fn("http.export")(function* ({ params: { projectId }, query }) {
        const exporter = yield* Exporter
        const { filter, size } = yield* reading(
          projectId,
          Effect.flatMap(exportFilter(query), (filter) =>
            Effect.map(exporter.size(filter), (size) => ({ filter, size }))
          )
        )
        const lost = yield* currentLoss(projectId)
        return HttpServerResponse.stream(exporter.lines(projectId, filter, lost), {
          contentType: "application/x-ndjson",
          headers: {
            "cache-control": "no-store",
            "tropism-objects": String(size.objects),
            "tropism-relationships": String(size.relationships)
          }
        })
      })
    )
)

/** A lockfile is understood as a whole or refused as a whole, before anything is written. */
const importLock = Effect.fnUntraced(function* <E>(
  projectId: ProjectId,
  by: UserId,
  payload: Stream.Stream<Uint8Array, E>,
  { name, untrusted }: { readonly name: string | undefined; readonly untrusted: true | undefined }
) {
  const importer = yield* Importer
  const lost = yield* currentLoss(projectId)
  return yield* importer.open({
    projectId,
    actor: { actorType: "user", actorId: by },
    isUntrusted: untrusted === true,
    lost,
    read: Effect.gen(function* () {
      const text = yield* Effect.mapError(readText(yield* unlessLost(lost, readWhole(payload))), () =>
        invalid("", "The file is not UTF-8 text: send the package-lock.json itself, not compressed")
      )
      return yield* Effect.mapError(readPackageLock(text, name), invalidLockfile)
    })
  })
})

/** What comes of a file before anything of it is imported, while its sender may still import. */
const unlessLost = <A, E, R>(lost: Effect.Effect<void>, opening: Effect.Effect<A, E, R>) =>
  Effect.raceFirst(opening, Effect.andThen(lost, Effect.fail(lostToken)))

const lostToken = new Unauthorized({
  detail: "Your token is not good any more, or has another role by now: nothing of what you sent was imported"
})

/** All bytes of a body that is as small as a lockfile may be, and comes as soon as one must. */
const readWhole = <E>(payload: Stream.Stream<Uint8Array, E>) => {
  let length = 0
  return payload.pipe(
    Stream.tap((piece) => {
      length += piece.length
      return length > lockfileMaxBytes ? Effect.fail("tooLarge" as const) : Effect.void
    }),
    Stream.mkUint8Array,
    // Reading that is interrupted tears the request down, and its answer with it.
    Effect.forkDetach,
    Effect.flatMap(Fiber.join),
    Effect.catch(() => tooLarge(lockfileMaxBytes)),
    Effect.timeoutOrElse({
      duration: transferLimits.lockfileTimeoutMs,
      orElse: () => tooSlow(transferLimits.lockfileTimeoutMs)
    })
  )
}

const exportFilter = Effect.fnUntraced(function* ({
  types,
  asOf
}: {
  readonly types?: string | undefined
  readonly asOf?: string | undefined
}) {
  const listed = types === undefined ? undefined : [...new Set(types.split(",").map((type) => type.trim()))]
  if (listed && (listed.includes("") || listed.length > transferLimits.exportTypes)) {
    return yield* invalid(
      "types",
      `Name from 1 to ${transferLimits.exportTypes} types with a comma between them, such as Person,Package`
    )
  }
  return { types: listed, asOf: yield* momentOf(asOf) }
})

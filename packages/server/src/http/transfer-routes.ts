/** Endpoints for imports, their status, and exports. */
import { Api } from "@tropism/api/api"
import { CurrentPrincipal } from "@tropism/api/authorization"
import type { RestoreLine } from "@tropism/api/dumps-api"
import { Unauthorized, Conflict } from "@tropism/api/problems"
import { type ImportLine, lockfileMaxBytes } from "@tropism/api/transfer-api"
import type { ProjectId, UserId } from "@tropism/domain/ids"
import { Effect, Fiber, Stream, Exit, Queue, Scope } from "effect"
import { HttpServerRequest, HttpServerResponse } from "effect/http"
import { HttpApiBuilder } from "effect/http-api"
import { Exporter } from "../graph/exporter.ts"
import { Imports, senderLost } from "../graph/import/imports.ts"
import { LineImporter } from "../graph/import/line-importer.ts"
import { Importer } from "../graph/import/package-importer.ts"
import { readPackageLock } from "../graph/import/package-lock.ts"
import { instantPlace } from "../graph/objects.ts"
import { Ids } from "../ids.ts"
import { transferLimits } from "../limits.ts"
import { Dumper, type JudgedDump, judgeDump, receiveDump } from "../tenancy/dump.ts"
import { Projects } from "../tenancy/projects.ts"
import { Restorer, type RestoreWish } from "../tenancy/restore.ts"
import { looking, reading, currentLoss, requireServerAdmin, currentServerLoss } from "./access.ts"
import { momentOf } from "./graph-routes.ts"
import { pageByPlace } from "./paging.ts"
import { importProblem, invalid, invalidLockfile, orNotFound, keepable } from "./problems.ts"
import { readText, tooLarge, tooSlow, refuseRest } from "./request-validation.ts"

export const transferHandlers = HttpApiBuilder.group(Api, "transfer", (handlers) =>
  handlers
    .handle(
      "import",
      Effect.fn("http.import")(function* ({ params: { projectId }, payload, query }) {
        const { userId: by } = yield* looking(projectId, "editor", Effect.succeed)
        const { format, name, id, resume, type, key, delimiter, decimal } = query
        const untrusted = query.untrusted === "true" ? true : undefined
        if (format === "package-lock") return yield* importLock(projectId, by, payload, { name, untrusted })
        const [extra] = Object.entries({ type, key, delimiter, decimal }).filter(
          ([, value]) => value !== undefined
        )
        if (format !== "csv" && extra !== undefined)
          return yield* invalid(
            extra[0],
            "Only a CSV file takes a type, a key, a delimiter and a decimal mark"
          )
        const { headers } = yield* HttpServerRequest.HttpServerRequest
        const length = headers["content-length"]
        const importer = yield* LineImporter
        const lost = yield* currentLoss(projectId)
        const opening = importer.open({
          projectId,
          by,
          file: { format, name, settings: { type, key, delimiter, decimal, untrusted } },
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

/** A lockfile is parsed whole or refused whole, before anything is written. */
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

/** Opens a file before anything of it is imported, unless its sender loses the right to import. */
const unlessLost = <A, E, R>(lost: Effect.Effect<void>, opening: Effect.Effect<A, E, R>) =>
  Effect.raceFirst(opening, Effect.andThen(lost, Effect.fail(importUnauthorized)))

const importUnauthorized = new Unauthorized({
  detail: "Your token is not good any more, or has another role by now: nothing of what you sent was imported"
})

/** All bytes of a body within a lockfile's size and time limits. */
const readWhole = <E>(payload: Stream.Stream<Uint8Array, E>) => {
  let length = 0
  return payload.pipe(
    Stream.tap((piece) => {
      length += piece.length
      return length > lockfileMaxBytes ? Effect.fail("tooLarge" as const) : Effect.void
    }),
    Stream.mkUint8Array,
    // Interrupting the read would destroy the request and its answer.
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

// Endpoints for dumps and restores of whole projects.

export const dumpsHandlers = HttpApiBuilder.group(Api, "dumps", (handlers) =>
  handlers
    .handleRaw(
      "dump",
      Effect.fn("http.dump")(function* ({ params: { projectId } }) {
        const dumper = yield* Dumper
        const { userId } = yield* looking(projectId, "admin", Effect.succeed)
        const rows = yield* dumper.count(projectId)
        const lost = yield* currentLoss(projectId)
        return HttpServerResponse.stream(dumper.lines(projectId, userId, lost), {
          contentType: "application/x-ndjson",
          headers: { "cache-control": "no-store", "tropism-rows": String(rows) }
        })
      })
    )
    .handle(
      "restoreDump",
      Effect.fn("http.restoreDump")(function* ({ payload, query }) {
        const principal = yield* CurrentPrincipal
        yield* requireServerAdmin(principal)
        yield* keepable(query)
        const projectId = query.id ?? ((yield* (yield* Ids).next) as ProjectId)
        if (query.id !== undefined) yield* checkFree(query.id)
        const lost = yield* currentServerLoss
        const scope = yield* Scope.make()
        const dump = yield* receiveDump(payload).pipe(
          Effect.flatMap(judgeDump),
          Effect.mapError(({ detail }) => invalid("", detail)),
          Effect.raceFirst(Effect.andThen(lost, refuseRest(restoreUnauthorized))),
          Scope.provide(scope),
          Effect.onError(() => Scope.close(scope, Exit.void))
        )
        const { restore } = yield* Restorer
        const wish: RestoreWish = { projectId, name: query.name, by: principal.userId }
        return restoring(restore, dump, wish, lost).pipe(Stream.ensuring(Scope.close(scope, Exit.void)))
      })
    )
)

const idTaken = "There is a project of this id already: if an earlier restore was to make it, it did"

const checkFree = Effect.fnUntraced(function* (id: ProjectId) {
  const projects = yield* Projects
  const [found] = yield* projects.list([id], undefined, 1)
  if (found) return yield* new Conflict({ reason: "idTaken", detail: idTaken })
})

/** The answer to a sender of a dump who may not restore any more. */
const restoreUnauthorized = new Unauthorized({
  detail: "Your token is not good any more, or has another role by now: nothing of what you sent was restored"
})

/** The progress of a restore, until its sender loses the right to restore. A slow reader misses some progress and delays nothing. */
const restoring = (
  restore: Restorer["Service"]["restore"],
  dump: JudgedDump,
  wish: RestoreWish,
  lost: Effect.Effect<void>
): Stream.Stream<RestoreLine> =>
  Stream.callback<RestoreLine>(
    (queue) => {
      const tell = (done: number) => Queue.offer(queue, { type: "progress", done, total: dump.rows })
      return restore(dump, wish, tell).pipe(
        Effect.map((restored): RestoreLine => ({ type: "finished", ...restored })),
        Effect.catchTag("DumpRefused", ({ detail }) => Effect.succeed(failed(detail))),
        Effect.catchTag("ProjectIdTaken", () => Effect.succeed(failed(`${idTaken}.`))),
        Effect.raceFirst(Effect.as(lost, failed(`${senderLost.detail}. ${wholeOrNot(wish)}`))),
        Effect.catchCause((cause) =>
          Effect.as(
            Effect.logError("A restore failed", cause),
            failed(`The server failed; its log says why. ${wholeOrNot(wish)}`)
          )
        ),
        Effect.flatMap((line) => Queue.offer(queue, line)),
        Effect.andThen(Queue.end(queue))
      )
    },
    { bufferSize: 4, strategy: "sliding" }
  )

const wholeOrNot = ({ projectId }: RestoreWish): string =>
  `The restore was done as a whole or not at all: look whether there is a project ${projectId}`

const failed = (message: string): RestoreLine => ({ type: "failed", message })

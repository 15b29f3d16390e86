/**
 * Files for agents: take them in, and hand them out to be kept, never to be shown in a page.
 *
 * Flow: **http** → dispatch → run → tool → task
 */
import { Api } from "@tropism/api/api"
import { attachmentMaxBytes } from "@tropism/api/attachments-api"
import { mimeTypeOf, MimeType } from "@tropism/domain/attachment"
import { Effect, Stream } from "effect"
import { HttpServerResponse } from "effect/http"
import { HttpApiBuilder } from "effect/http-api"
import { Attachments } from "../agent/attachments.ts"
import { inProject, reading } from "./access.ts"
import { invalid, orNotFound } from "./refusals.ts"
import { judged } from "./judged-file.ts"
import { tooLarge } from "./request-judgement.ts"

export const attachmentsHandlers = HttpApiBuilder.group(Api, "attachments", (handlers) =>
  handlers
    .handle(
      "attach",
      Effect.fn("http.attachments.attach")(function* ({ params, payload, query }) {
        // Whether somebody may is asked before a byte is read.
        yield* inProject(params.projectId, "editor", Effect.succeed)
        const mimeType = mimeTypeOf(query.type)
        if (mimeType === undefined)
          return yield* invalid("type", `A file may be ${MimeType.literals.join(", ")}`)
        const bytes = yield* Effect.mapError(collect(payload), () => tooLarge(attachmentMaxBytes))
        const file = yield* judged(bytes, mimeType, "type")
        const attachments = yield* Attachments
        yield* inProject(params.projectId, "editor", () => attachments.keep({ ...file, bytes }))
        return { ...file, fileName: query.fileName ?? null }
      })
    )
    .handleRaw(
      "download",
      Effect.fn("http.attachments.download")(function* ({ params }) {
        const attachments = yield* Attachments
        const file = yield* orNotFound("attachment")(
          reading(
            params.projectId,
            Effect.map(attachments.load([params.digest]), (files) => files.get(params.digest))
          )
        )
        return HttpServerResponse.uint8Array(file.bytes, {
          contentType: "application/octet-stream",
          headers: {
            "content-disposition": `attachment; filename="${params.digest}"`,
            "x-content-type-options": "nosniff",
            "content-security-policy": "default-src 'none'; sandbox",
            "cache-control": "private, max-age=31536000, immutable"
          }
        })
      })
    )
)

const collect = <E>(payload: Stream.Stream<Uint8Array, E>) =>
  Effect.map(Stream.runCollect(payload), (chunks) => new Uint8Array(Buffer.concat(chunks)))

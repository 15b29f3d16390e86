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
import { inProject, looking, reading } from "./access.ts"
import { taggedFile } from "./conditions.ts"
import { readableFile } from "./owned.ts"
import { invalid, orNotFound } from "./refusals.ts"
import { judged } from "./judged-file.ts"
import { saysBytes, tooLarge } from "./request-judgement.ts"
import { asking } from "./request-keys.ts"

export const attachmentsHandlers = HttpApiBuilder.group(Api, "attachments", (handlers) =>
  handlers
    .handle(
      "attach",
      Effect.fn("http.attachments.attach")(function* ({ params, payload, query, request }) {
        // Whether somebody may is asked before a byte is read.
        yield* looking(params.projectId, "editor", Effect.succeed)
        const mimeType = yield* saidType(request.headers["content-type"] ?? "", query.type)
        const bytes = yield* Effect.catch(collect(payload), () => tooLarge(attachmentMaxBytes))
        const file = yield* judged({ bytes, mimeType, untrusted: query.untrusted === "true" }, "type")
        const attachments = yield* Attachments
        // What is sent under a key is known by the digest of its bytes.
        return yield* asking(
          [file.digest, mimeType, JSON.stringify(query)],
          inProject(params.projectId, "editor", ({ userId }) =>
            Effect.as(attachments.keep({ ...file, bytes }, userId), {
              ...file,
              fileName: query.fileName ?? null
            })
          )
        )
      })
    )
    .handleRaw(
      "download",
      Effect.fn("http.attachments.download")(function* ({ params }) {
        const attachments = yield* Attachments
        const file = yield* orNotFound("attachment")(
          reading(
            params.projectId,
            readableFile(
              params.digest,
              Effect.map(attachments.load([params.digest]), (files) => files.get(params.digest))
            )
          )
        )
        const answer = HttpServerResponse.uint8Array(file.bytes, {
          contentType: "application/octet-stream",
          headers: {
            "content-disposition": `attachment; filename="${params.digest}"`,
            "x-content-type-options": "nosniff",
            "content-security-policy": "default-src 'none'; sandbox",
            // The bytes of a digest never change; who may read them does, so each reading is asked for.
            "cache-control": "private, no-cache"
          }
        })
        return yield* taggedFile(params.digest, answer)
      })
    )
)

/** What a file is called by its header, or beside a header that calls it bytes alone. */
const saidType = (header: string, type: string | undefined) => {
  const said = saysBytes(header) ? undefined : mimeTypeOf(header)
  const mimeType = said ?? mimeTypeOf(type ?? "")
  if (mimeType === undefined)
    return invalid(
      "type",
      `A file may be ${MimeType.literals.join(", ")}: say which in the header content-type, or as type`
    )
  return type === undefined || mimeTypeOf(type) === mimeType
    ? Effect.succeed(mimeType)
    : invalid(
        "type",
        `The header content-type says that the file is ${mimeType}: leave type out, or say the same`
      )
}

const collect = <E>(payload: Stream.Stream<Uint8Array, E>) =>
  Effect.map(Stream.runCollect(payload), (chunks) => new Uint8Array(Buffer.concat(chunks)))

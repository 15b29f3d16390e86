/**
 * Files that agents are shown: kept once each, under the digest of their bytes.
 */
import { Attachment, Digest, FileName, MimeType } from "@tropism/domain/attachment"
import { ProjectId } from "@tropism/domain/ids"
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema } from "effect/http-api"
import { alsoUnchanged } from "./also-unchanged.ts"
import { Authorization, RequestJudgement } from "./authorization.ts"
import { told } from "./page.ts"
import { BodyTooLarge, Forbidden, InvalidInput, NotFound } from "./problems.ts"

/** The largest file that an agent is shown. */
export const attachmentMaxBytes = 10 * 1024 * 1024

/** A kept file, and how whoever sent it calls it. */
export const SentAttachment = Schema.Struct({
  ...Attachment.fields,
  fileName: Schema.NullOr(FileName)
}).annotate({ identifier: "SentAttachment" })

export class AttachmentsApi extends HttpApiGroup.make("attachments")
  .add(
    /** The bytes are the body; `content-type`, or `type` beside bytes that are not named, is what they are, and they must begin like it. An event names the digest that is answered. */
    HttpApiEndpoint.post("attach", "/attachments", {
      params: { projectId: ProjectId },
      query: {
        type: told(Schema.String, "What the bytes are, where content-type does not say it"),
        fileName: told(FileName, "How whoever sends it calls it"),
        untrusted: told(Schema.Literals(["true", "false"]), "true: nobody vouches for what the file says")
      },
      payload: HttpApiSchema.StreamUint8Array({
        contentType: ["application/octet-stream", ...MimeType.literals],
        maxBytes: attachmentMaxBytes
      }),
      success: SentAttachment.pipe(HttpApiSchema.status(201)),
      error: [NotFound, Forbidden, InvalidInput, BodyTooLarge]
    }),
    /** The file, to be kept by whoever asks: no browser shows it in a page. */
    HttpApiEndpoint.get("download", "/attachments/:digest", {
      params: { projectId: ProjectId, digest: Digest },
      success: HttpApiSchema.StreamUint8Array({ contentType: "application/octet-stream" }),
      error: NotFound
    }).annotateMerge(alsoUnchanged)
  )
  .prefix("/api/projects/:projectId")
  .middleware(RequestJudgement)
  .middleware(Authorization) {}

/**
 * Stores the files of a project, each once under the digest of its bytes.
 *
 * Files are immutable and never executed. Events refer to them, so a fork and a replay share them. Each file has its list of readers; a run
 * reads files without a check of that list.
 */
import type { Attachment, Digest } from "@tropism/domain/attachment"
import type { UserId } from "@tropism/domain/ids"
import { Context, Effect, Layer } from "effect"
import { SqlClient, type Statement } from "effect/sql"
import { orDie, ProjectTransaction } from "../database/database.ts"

/** A file with its bytes. */
export interface KeptFile extends Attachment {
  readonly bytes: Uint8Array
}

type InProject<A> = Effect.Effect<A, never, ProjectTransaction>

export class Attachments extends Context.Service<
  Attachments,
  {
    /** Stores a file that a person sent and makes that person a reader; for a file that exists already only the trust mark can change. */
    readonly keep: (file: KeptFile, by: UserId) => InProject<void>
    /**
     * Stores a file whose sender did not say whether it is trusted and returns whether it is untrusted: an earlier or concurrent mark for
     * the same bytes stays.
     */
    readonly keepAsKnown: (file: Omit<KeptFile, "untrusted">, by: UserId) => InProject<boolean>
    /**
     * Stores files that a tool returned, in one statement; readers of the context may read them. An untrusted source also marks existing
     * files.
     */
    readonly keepFound: (files: ReadonlyArray<KeptFile>) => InProject<void>
    readonly find: (digest: Digest) => InProject<Attachment | undefined>
    /** Whether the person sent the file, or may read a context that contains it. */
    readonly isReadable: (digest: Digest, by: UserId) => InProject<boolean>
    /** Returns the size of each file in bytes. */
    readonly sizes: (digests: ReadonlyArray<Digest>) => InProject<ReadonlyMap<Digest, number>>
    /** Loads these files with their bytes in one query. */
    readonly load: (digests: ReadonlyArray<Digest>) => InProject<ReadonlyMap<Digest, KeptFile>>
  }
>()("@tropism/server/agent/Attachments") {
  static readonly layer = Layer.effect(
    Attachments,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient

      const find = Effect.fn("Attachments.find")(function* (digest: Digest) {
        const { projectId } = yield* ProjectTransaction
        const [row] = yield* sql<Attachment>`
          select digest, mime_type, size_bytes, untrusted from kb.attachments where project_id = ${projectId} and digest = ${digest}`
        return row
      }, orDie)

      /** Writes a file and its readers; `known` is the conflict action for a file that exists already. */
      const write = Effect.fnUntraced(function* (
        { bytes, digest, mimeType, sizeBytes, untrusted }: KeptFile,
        by: UserId,
        known: Statement.Fragment
      ) {
        const { projectId } = yield* ProjectTransaction
        yield* sql`
          insert into kb.attachments (project_id, digest, mime_type, size_bytes, untrusted, bytes)
          values (${projectId}, ${digest}, ${mimeType}, ${sizeBytes}, ${untrusted}, decode(${Buffer.from(bytes).toString("base64")}::text, 'base64'))
          on conflict (project_id, digest) ${known}`
        yield* sql`
          insert into kb.attachment_readers (project_id, digest, reader) values (${projectId}, ${digest}, ${by}) on conflict do nothing`
      }, orDie)

      const keep = Effect.fn("Attachments.keep")((file: KeptFile, by: UserId) =>
        write(
          file,
          by,
          sql`do update set untrusted = excluded.untrusted where attachments.untrusted <> excluded.untrusted`
        )
      )

      const keepAsKnown = Effect.fn("Attachments.keepAsKnown")(function* (
        file: Omit<KeptFile, "untrusted">,
        by: UserId
      ) {
        // Waits for a concurrent writer of the same file; the next statement sees what that writer committed.
        yield* write({ ...file, untrusted: false }, by, sql`do nothing`)
        return (yield* find(file.digest))?.untrusted ?? false
      })

      const keepFound = Effect.fn("Attachments.keepFound")(function* (files: ReadonlyArray<KeptFile>) {
        const { projectId } = yield* ProjectTransaction
        const rows = files.map(({ bytes, ...file }) => ({
          digest: file.digest,
          mime_type: file.mimeType,
          size_bytes: file.sizeBytes,
          untrusted: file.untrusted,
          base64: Buffer.from(bytes).toString("base64")
        }))
        yield* sql`
          insert into kb.attachments (project_id, digest, mime_type, size_bytes, untrusted, bytes)
          select ${projectId}::uuid, file.digest, file.mime_type, file.size_bytes, file.untrusted, decode(file.base64, 'base64')
          from jsonb_to_recordset(${JSON.stringify(rows)}::text::jsonb)
            as file(digest text, mime_type text, size_bytes int, untrusted boolean, base64 text)
          order by file.digest
          on conflict (project_id, digest) do update set untrusted = true where excluded.untrusted and not attachments.untrusted`
      }, orDie)

      const isReadable = Effect.fn("Attachments.isReadable")(function* (digest: Digest, by: UserId) {
        const { projectId } = yield* ProjectTransaction
        const rows = yield* sql`
          select reader from kb.attachment_readers where project_id = ${projectId} and digest = ${digest} and reader in ('', ${by})`
        return rows.length > 0
      }, orDie)

      const sizes = Effect.fn("Attachments.sizes")(function* (digests: ReadonlyArray<Digest>) {
        const { projectId } = yield* ProjectTransaction
        const rows = yield* sql<Attachment>`
          select digest, size_bytes from kb.attachments where project_id = ${projectId} and digest = any(${digests}::text[])`
        return new Map(rows.map(({ digest, sizeBytes }) => [digest, sizeBytes]))
      }, orDie)

      const load = Effect.fn("Attachments.load")(function* (digests: ReadonlyArray<Digest>) {
        const { projectId } = yield* ProjectTransaction
        const rows = yield* sql<Attachment & { readonly base64: string }>`
          select digest, mime_type, size_bytes, untrusted, encode(bytes, 'base64') as base64 from kb.attachments
          where project_id = ${projectId} and digest = any(${digests}::text[])`
        return new Map(
          rows.map(({ base64, ...file }) => [
            file.digest,
            { ...file, bytes: new Uint8Array(Buffer.from(base64, "base64")) }
          ])
        )
      }, orDie)

      return Attachments.of({ keep, keepAsKnown, keepFound, find, isReadable, sizes, load })
    })
  )
}

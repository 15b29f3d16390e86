/**
 * The doors through which a graph comes and goes as a file: import and export.
 *
 * Both stream: an import is read, committed and told line by line, an export is
 * written from one snapshot. Neither is held whole in memory by anybody, except
 * a lockfile, which can only be understood as a whole.
 */
import { ObjectType } from "@tropism/domain/graph"
import { ImportId, ProjectId, Timestamp } from "@tropism/domain/ids"
import { TransferLine } from "@tropism/domain/transfer-line"
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema } from "effect/http-api"
import { Authorization, RequestJudgement } from "./authorization.ts"
import { Instant } from "./instant.ts"
import { Page, PageQuery, told } from "./page.ts"
import { BodyTooLarge, Conflict, Forbidden, InvalidInput, NotFound, Unavailable } from "./problems.ts"

/** The largest file of lines that an import takes. */
export const importMaxBytes = 64 * 1024 * 1024 * 1024

/** The largest package-lock.json; it is read whole. */
export const lockfileMaxBytes = 64 * 1024 * 1024

export const LineFormat = Schema.Literals(["jsonl", "csv"])
export type LineFormat = typeof LineFormat.Type

export const ImportFormat = Schema.Literals(["jsonl", "csv", "package-lock"])
export type ImportFormat = typeof ImportFormat.Type

/** What the lines of a file have done so far. */
export const LineCounts = Schema.Struct({
  created: Schema.Int,
  updated: Schema.Int,
  unchanged: Schema.Int,
  relationshipsCreated: Schema.Int,
  relationshipsUpdated: Schema.Int,
  relationshipsUnchanged: Schema.Int,
  /** Lines that did nothing because something is wrong with them. */
  failed: Schema.Int
})
export type LineCounts = typeof LineCounts.Type

/** A line that did nothing, by its number in the file, and what is wrong with it. */
export const BadLine = Schema.Struct({ line: Schema.Int, message: Schema.String })
export type BadLine = typeof BadLine.Type

/**
 * One line of an import's answer. It begins with `started` and ends with
 * `finished` or `failed`; a lockfile, which is sent again to go on, has no id
 * and no `started`.
 */
export const ImportLine = Schema.Union([
  Schema.Struct({
    type: Schema.Literal("started"),
    importId: ImportId,
    /** Lines that an earlier part of this import has committed already. */
    skippedLines: Schema.Int
  }),
  /** `done` of `total` bytes of the file, or changes of a lockfile; null where the length was not told. */
  Schema.Struct({
    type: Schema.Literal("progress"),
    done: Schema.Int,
    total: Schema.NullOr(Schema.Int),
    lines: Schema.optionalKey(Schema.Int),
    counts: Schema.optionalKey(LineCounts)
  }),
  /** Told for the first bad lines of an import; the others are counted. */
  Schema.Struct({ type: Schema.Literal("badLine"), ...BadLine.fields }),
  Schema.Struct({
    type: Schema.Literal("finished"),
    importId: Schema.optionalKey(ImportId),
    lines: Schema.optionalKey(Schema.Int),
    created: Schema.Int,
    updated: Schema.Int,
    deleted: Schema.Int,
    unchanged: Schema.Int,
    relationshipsCreated: Schema.Int,
    relationshipsUpdated: Schema.Int,
    relationshipsUnchanged: Schema.optionalKey(Schema.Int),
    relationshipsDeleted: Schema.Int,
    failed: Schema.optionalKey(Schema.Int)
  }),
  /** `resume` is there when sending the file again with `?resume=` goes on where this ended. */
  Schema.Struct({
    type: Schema.Literal("failed"),
    message: Schema.String,
    resume: Schema.optionalKey(ImportId)
  })
]).annotate({ identifier: "ImportLine" })
export type ImportLine = typeof ImportLine.Type

export const ImportStatus = Schema.Literals(["running", "finished", "interrupted"])
export type ImportStatus = typeof ImportStatus.Type

/** An import as it is kept: how far it has come and what it has done. */
export const Import = Schema.Struct({
  id: ImportId,
  format: LineFormat,
  /** The file's name, as the sender told it. */
  name: Schema.NullOr(Schema.String),
  status: ImportStatus,
  /** How often the file was sent. */
  attempt: Schema.Int,
  lines: Schema.Int,
  bytes: Schema.Int,
  /** SHA-256 of the bytes that are committed. */
  digest: Schema.String,
  counts: LineCounts,
  badLines: Schema.Array(BadLine),
  errorMessage: Schema.NullOr(Schema.String),
  createdBy: Schema.String,
  createdAt: Timestamp,
  updatedAt: Timestamp
}).annotate({ identifier: "Import" })
export type Import = typeof Import.Type

const project = { projectId: ProjectId }
const text = (maxLength: number) => Schema.String.check(Schema.isBetweenLength(1, maxLength))

export class TransferApi extends HttpApiGroup.make("transfer")
  .add(
    /**
     * Reads a file of lines while it comes and commits it in batches: a bad line is told with its number and costs no
     * other one. A lockfile is read whole, and refused whole before anything is written.
     */
    HttpApiEndpoint.post("import", "/import", {
      params: project,
      query: {
        format: ImportFormat.annotate({
          description: "What the file is: lines of JSON, CSV, or a package-lock.json"
        }),
        name: told(
          text(200),
          "The file's name; for a lockfile the project's name, which it must have where the file says none"
        ),
        id: told(
          ImportId,
          "An id for this import, so that the sender knows it whatever happens to the answer"
        ),
        resume: told(
          ImportId,
          "The import to go on with: the file is sent again from its beginning, what is committed is skipped"
        ),
        type: told(ObjectType, "CSV: the type of rows that name none"),
        key: told(text(200), "CSV: the column whose values are the keys, instead of one called key"),
        delimiter: told(
          Schema.String.check(
            Schema.isPattern(/^[^"\r\n\p{L}\p{N}]$/u, {
              message: "A delimiter is one character, such as ; or a tab"
            })
          ),
          "CSV: what stands between fields; without it the first line shows whether it is , ; | or a tab"
        ),
        decimal: told(
          Schema.Literals(["comma", "point"]),
          "CSV: the decimal mark of all numbers; without it each column shows its own"
        ),
        untrusted: told(
          Schema.Literals(["true", "false"]),
          "true: the file comes from an untrusted source, and so do all properties that it writes"
        )
      },
      payload: HttpApiSchema.StreamUint8Array({
        contentType: "application/octet-stream",
        maxBytes: importMaxBytes
      }),
      success: HttpApiSchema.StreamNdjson({ schema: ImportLine }),
      error: [NotFound, Forbidden, Conflict, InvalidInput, BodyTooLarge]
    }),
    HttpApiEndpoint.get("listImports", "/imports", {
      params: project,
      query: PageQuery,
      success: Page(Import),
      error: [NotFound, InvalidInput]
    }),
    HttpApiEndpoint.get("getImport", "/imports/:importId", {
      params: { ...project, importId: ImportId },
      success: Import,
      error: NotFound
    }),
    /**
     * Objects, then the relationships between them, one line each, as they are in one moment; an import reads them
     * back. The headers tropism-objects and tropism-relationships say about how many lines will come. An export that
     * cannot be finished ends with a line that has an `error` and, for programs, its `reason`.
     */
    HttpApiEndpoint.get("export", "/export", {
      params: project,
      query: {
        format: told(Schema.Literals(["jsonl"]), "What is written: lines of JSON"),
        types: told(
          text(10_000),
          "Only objects of these types, separated by commas, and relationships between them"
        ),
        asOf: told(Instant, "The graph as it was at this instant")
      },
      success: HttpApiSchema.StreamNdjson({ schema: TransferLine }),
      error: [NotFound, InvalidInput, Unavailable]
    })
  )
  .prefix("/api/projects/:projectId")
  .middleware(RequestJudgement)
  .middleware(Authorization) {}

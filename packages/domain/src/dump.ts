/**
 * A dump: a whole project as lines, which another server, or the same one, makes a project of.
 *
 * The first line says what comes: the project, and how many rows of which
 * tables. Then come the rows, and a last line with how many they were and the
 * digest of every byte before it; a dump without that line is not whole.
 */
import { Schema } from "effect"
import { ProjectId, Timestamp, UserId } from "./ids.ts"
import { ProjectSettingsPatch } from "./project-settings.ts"

/** How the lines are written; another number is another way. */
export const dumpFormat = 1

export const DumpTable = Schema.Struct({
  name: Schema.String,
  columns: Schema.Array(Schema.String),
  rows: Schema.Int
})
export type DumpTable = typeof DumpTable.Type

export const DumpHead = Schema.Struct({
  tropism: Schema.Literal("dump"),
  format: Schema.Int,
  /** The newest migration of the database that it was taken from. */
  schema: Schema.Int,
  takenAt: Timestamp,
  takenBy: UserId,
  project: Schema.Struct({
    id: ProjectId,
    name: Schema.String,
    settings: ProjectSettingsPatch,
    assistantId: Schema.NullOr(Schema.String)
  }),
  /** In the order in which their rows come. */
  tables: Schema.Array(DumpTable)
})
export type DumpHead = typeof DumpHead.Type

export const DumpEnd = Schema.Struct({
  tropism: Schema.Literal("end"),
  rows: Schema.Int,
  /** SHA-256 of all bytes before this line. */
  sha256: Schema.String
})
export type DumpEnd = typeof DumpEnd.Type

/** The last line of a dump, byte for byte. */
export const endLineOf = (end: Omit<DumpEnd, "tropism">): string =>
  `{"tropism":"end","rows":${end.rows},"sha256":"${end.sha256}"}\n`

/** The last line of a dump that could not be finished. */
export const failedLineOf = (error: string, reason: string): string =>
  `${JSON.stringify({ tropism: "failed", error, reason })}\n`

export const rowsIn = (head: Pick<DumpHead, "tables">): number =>
  head.tables.reduce((sum, { rows }) => sum + rows, 0)

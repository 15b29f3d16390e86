/**
 * The errors of a database that cannot be used at the start, each with a sentence about the remedy.
 *
 * The error ends the start, so its reader is the person at the terminal: `message` is complete on its own and never contains a password.
 * Later failures are defects of queries.
 */
import { type PlatformError, Schema } from "effect"

export const DatabaseUnavailableReason = Schema.Literals([
  "folderHeld",
  "folderUnusable",
  "diskFull",
  "recordDamaged",
  "clusterForeign",
  "platformUnsupported",
  "noAccount",
  "creationFailed",
  "startFailed",
  "portTaken",
  "unreachable",
  "loginRefused",
  "versionTooOld",
  "rightsMissing",
  "provisionFailed"
])
export type DatabaseUnavailableReason = typeof DatabaseUnavailableReason.Type

/** The database cannot be used; `message` is for the person who started the program. */
export class DatabaseUnavailable extends Schema.TaggedError<DatabaseUnavailable>()("DatabaseUnavailable", {
  reason: DatabaseUnavailableReason,
  message: Schema.String
}) {}

/** Creates the error from its reason and sentence. */
export const unavailable = (reason: DatabaseUnavailableReason, message: string): DatabaseUnavailable =>
  new DatabaseUnavailable({ reason, message })

const diskFullText = /ENOSPC|no space left on device|check free disk space|disk quota exceeded/i

/** Whether a program's error output is about a full disk. */
export const saysDiskFull = (text: string): boolean => diskFullText.test(text)

/** The error for a full disk under `folder`. */
export const diskFull = (folder: string): DatabaseUnavailable =>
  unavailable("diskFull", `The disk that holds ${folder} is full: free some space and start again.`)

/** Maps a failed file operation on `folder` to a sentence about that folder. */
export const folderProblem =
  (folder: string) =>
  (error: PlatformError.PlatformError): DatabaseUnavailable => {
    const details = `${error.message} ${String(error.reason.cause ?? "")}`
    if (saysDiskFull(details)) return diskFull(folder)
    const closed = error.reason._tag === "PermissionDenied" || /EROFS|EPERM/.test(details)
    return unavailable(
      "folderUnusable",
      closed
        ? `The folder ${folder} may not be written by this user: give the user the right to it, or set TROPISM_DATA to a folder of the user's own.`
        : `The folder ${folder} cannot be used (${error.message}): mend it, or set TROPISM_DATA to another folder.`
    )
  }

/**
 * Why an import may not begin or go on.
 *
 * Flow: **graph** → outbox → dispatch → run → tool → task
 *
 * Nothing was written when one is raised, and a sender that is at work on the
 * same import goes on undisturbed.
 */
import { Schema } from "effect"

export class ImportRefused extends Schema.TaggedError<ImportRefused>()("ImportRefused", {
  reason: Schema.Literals(["noImport", "idTaken", "finished", "otherFile", "otherSettings", "invalid"]),
  detail: Schema.String
}) {}

export const importRefused = (reason: ImportRefused["reason"], detail: string): ImportRefused =>
  new ImportRefused({ reason, detail })

/**
 * What somebody who looks for faults says of one thing: how it is, and what mends it.
 *
 * The command line says it of a machine, the server of a project.
 */
import { Schema } from "effect"

export const FindingState = Schema.Literals(["ok", "warn", "fault"])
export type FindingState = typeof FindingState.Type

export const Finding = Schema.Struct({
  /** What was looked at. */
  check: Schema.String,
  state: FindingState,
  /** How it is, in a sentence. */
  detail: Schema.String,
  /** What to do, best a command as it is typed; null where there is nothing to do. */
  fix: Schema.NullOr(Schema.String)
})
export type Finding = typeof Finding.Type

export const ok = (check: string, detail: string): Finding => ({ check, state: "ok", detail, fix: null })

export const warn = (check: string, detail: string, fix: string): Finding => ({
  check,
  state: "warn",
  detail,
  fix
})

export const fault = (check: string, detail: string, fix: string): Finding => ({
  check,
  state: "fault",
  detail,
  fix
})

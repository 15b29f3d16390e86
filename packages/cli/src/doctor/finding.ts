/**
 * What the doctor says of one thing: how it is, and the command that mends it.
 */
export type State = "ok" | "warn" | "fault"

export interface Finding {
  /** What was looked at. */
  readonly check: string
  readonly state: State
  /** How it is, in a sentence. */
  readonly detail: string
  /** What to do, best a command as it is typed; null where there is nothing to do. */
  readonly fix: string | null
}

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

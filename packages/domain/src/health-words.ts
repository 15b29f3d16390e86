/**
 * The words in which findings are told, and from when on a sign is bad.
 */
import type { HealthFinding, HealthPart, HealthSubject } from "./health.ts"

/** From when on a sign is bad. */
export const healthBounds = {
  /** Rows that are counted; where there are more, nobody needs to know how many. */
  countedMax: 1_000,
  /** Agents and servers of one kind that are named. */
  namedMax: 10,
  /** Agents whose models are looked at. */
  modelsMax: 200,
  untoldSeconds: 30,
  queuedSeconds: 60,
  orphanedSeconds: 60,
  overdueSeconds: 60,
  /** Failures in a row that are worth a word before the agent disables itself. */
  failures: 3,
  deadLetterSeconds: 86_400
} as const

/** A finding with which all is well. */
export const fine = (
  part: HealthPart,
  check: string,
  detail: string,
  subject: HealthSubject | null = null
): HealthFinding => ({
  part,
  check,
  state: "ok",
  detail,
  fix: null,
  said: null,
  remedy: null,
  subject
})

interface Bad {
  readonly detail: string
  /** What somebody else said of it. */
  readonly said?: string | null
  readonly remedy: string
  readonly fix: string
  readonly subject: HealthSubject
}

const bad =
  (state: "warn" | "fault") =>
  (part: HealthPart, check: string, { said = null, ...words }: Bad): HealthFinding => ({
    part,
    check,
    state,
    said,
    ...words
  })

/** Something that a person should look at. */
export const warning = bad("warn")
/** Something that keeps the project from working. */
export const failing = bad("fault")

/** Where somebody goes to mend it. */
export const subject = (
  type: HealthSubject["type"],
  named?: { readonly id: string; readonly name: string }
): HealthSubject => ({
  type,
  id: named?.id ?? null,
  name: named?.name ?? null
})

/** `1 run`, `2 runs`. */
export const counted = (count: number, noun: string, nouns = `${noun}s`): string =>
  `${count.toLocaleString("en")} ${count === 1 ? noun : nouns}`

/** The same of what is counted up to the bound: `1,000 runs or more`. */
export const atLeast = (count: number, noun: string, nouns = `${noun}s`): string =>
  count >= healthBounds.countedMax
    ? `${healthBounds.countedMax.toLocaleString("en")} ${nouns} or more`
    : counted(count, noun, nouns)

/** `45 seconds`, `3 minutes`, `5 hours`, `2 days`. */
export const spanText = (seconds: number): string => {
  if (seconds < 120) return counted(Math.floor(seconds), "second")
  if (seconds < 7_200) return counted(Math.floor(seconds / 60), "minute")
  return seconds < 172_800
    ? counted(Math.floor(seconds / 3_600), "hour")
    : counted(Math.floor(seconds / 86_400), "day")
}

/**
 * How what an agent suggests now stands to what was suggested then and decided.
 *
 * Pure: the same rows always give the same judgement. A suggestion that was
 * accepted should be made again, one that was rejected should not; what nobody
 * decided says nothing.
 */
import type { Schema } from "effect"
import type { Likeness } from "./backtest.ts"
import type { Change } from "./change.ts"
import { canonicalJson, changedProperties, isJsonObject, mergePatch, type Properties } from "./json.ts"
import { creationText, patchedBy, refine, type Said, subjectOf } from "./suggestion.ts"
import type { TaskStatus } from "./task.ts"

/** What was suggested then. */
export interface Earlier {
  readonly status: TaskStatus
  readonly change: Change
  /** What it was applied to, and what it was then; null where nothing was applied, or it is no longer kept. */
  readonly applied: { readonly before: Properties; readonly after: Properties } | null
}

/** How one suggestion of then is met now. */
export interface Met<T extends Earlier, N> {
  readonly earlier: T
  readonly isEdited: boolean
  readonly likeness: Likeness
  /** What is suggested now in its place. */
  readonly now: N | undefined
  /** Undefined where nobody decided. */
  readonly agrees: boolean | undefined
}

/** What a change is about; a creation without a key is about anything of its type. */
const aboutOf = (change: Change): string => subjectOf(change, "")

const dataOf = (change: Change): Properties => ("data" in change ? change.data : {})

const isSame = (one: Change, other: Change): boolean =>
  aboutOf(one) === aboutOf(other) && canonicalJson(dataOf(one)) === canonicalJson(dataOf(other))

/** The properties that a patch sets in a state, with null for those that it removes. */
const effectOn = (before: Properties, patch: Properties): Properties => {
  const merged = mergePatch(before, patch)
  return isJsonObject(merged) ? differenceOf(before, merged) : {}
}

const differenceOf = (before: Properties, after: Properties): Properties =>
  Object.fromEntries(changedProperties(before, after).map((key) => [key, after[key] ?? null]))

/** What an approval wrote; what was suggested, where nobody knows better. */
const outcomeOf = ({ applied, change }: Earlier): Properties =>
  applied === null || !("data" in change) ? dataOf(change) : differenceOf(applied.before, applied.after)

/** Whether a person approved something else than was suggested. */
export const isEdited = (earlier: Earlier): boolean =>
  earlier.status === "completed" && earlier.applied !== null && "data" in earlier.change
    ? canonicalJson(outcomeOf(earlier)) !==
      canonicalJson(effectOn(earlier.applied.before, earlier.change.data))
    : false

/** Whether a change would have written what a person made of a suggestion. */
const isAsEdited = (now: Change, earlier: Earlier): boolean =>
  earlier.applied !== null &&
  aboutOf(now) === aboutOf(earlier.change) &&
  canonicalJson(effectOn(earlier.applied.before, dataOf(now))) === canonicalJson(outcomeOf(earlier))

/** A run's suggestions of the same thing are one, as they would be in the inbox. */
export const gather = <N extends { readonly change: Change }>(made: ReadonlyArray<N>): ReadonlyArray<N> =>
  made.reduce<ReadonlyArray<N>>((gathered, each) => {
    const waiting = gathered.filter(({ change }) => isAboutSame(change, each.change))
    const [first] = waiting
    if (!first) return [...gathered, each]
    const change = refine(waiting.map(saidOf), each.change)
    return gathered
      .filter((one) => one === first || !waiting.includes(one))
      .map((one) => (one === first ? { ...each, change } : one))
  }, [])

/** What a run suggested a moment ago: nothing has moved since. */
const saidOf = ({ change }: { readonly change: Change }): Said => ({ change, before: {}, now: {} })

/** Whether the inbox would take two changes of one run for one: creations without a key by their words, patches where they share a property. */
const isAboutSame = (one: Change, other: Change): boolean => {
  if (subjectOf(one, creationText(one, [])) !== subjectOf(other, creationText(other, []))) return false
  const [properties, patched] = [patchedBy(one), patchedBy(other)]
  return !properties || !patched || properties.some((name) => patched.includes(name))
}

/** Sets each suggestion of then beside what takes its place now; what is left is new. */
export const meet = <T extends Earlier, N extends { readonly change: Change }>(
  earlier: ReadonlyArray<T>,
  made: ReadonlyArray<N>
): { readonly met: ReadonlyArray<Met<T, N>>; readonly fresh: ReadonlyArray<N> } => {
  const left = new Set(gather(made))
  const taken = new Map<T, N>()
  const take = (one: T, fits: (now: N) => boolean): void => {
    if (taken.has(one)) return
    const now = [...left].find(fits)
    if (!now) return
    left.delete(now)
    taken.set(one, now)
  }
  for (const one of earlier) take(one, (now) => isSame(now.change, one.change))
  for (const one of earlier) take(one, (now) => isEdited(one) && isAsEdited(now.change, one))
  // What was rejected is not wanted in another form either, so nothing takes its place.
  for (const one of earlier)
    if (one.status !== "rejected") take(one, (now) => aboutOf(now.change) === aboutOf(one.change))
  return { met: earlier.map((one) => judge(one, taken.get(one))), fresh: [...left] }
}

const judge = <T extends Earlier, N extends { readonly change: Change }>(
  earlier: T,
  now: N | undefined
): Met<T, N> => {
  const wasEdited = isEdited(earlier)
  const likeness = likenessOf(earlier, now?.change, wasEdited)
  return {
    earlier,
    isEdited: wasEdited,
    likeness,
    now,
    agrees: agreesWith(earlier.status, likeness, wasEdited)
  }
}

const likenessOf = (earlier: Earlier, now: Change | undefined, wasEdited: boolean): Likeness => {
  if (now === undefined) return "none"
  if (wasEdited && isAsEdited(now, earlier)) return "edited"
  return isSame(now, earlier.change) ? "same" : "different"
}

const agreesWith = (status: TaskStatus, likeness: Likeness, wasEdited: boolean): boolean | undefined => {
  if (status === "completed") return likeness === (wasEdited ? "edited" : "same")
  return status === "rejected" ? likeness !== "same" : undefined
}

/**
 * Of an accepted suggestion: its properties, those suggested now in its place, and how many are the same.
 *
 * **Details** What somebody had written before the approval, as it was suggested, was accepted with it: the approval only
 * found nothing left to write. What is suggested now and was so already, though nobody suggested it then, is no part of it.
 */
export const comparedProperties = ({ now, earlier }: Met<Earlier, { readonly change: Change }>) => {
  const accepted = acceptedBy(earlier)
  const suggested = now ? Object.keys(dataOf(now.change)) : []
  const isAccepted = (name: string) => accepted.includes(name)
  return {
    same: now
      ? suggested.filter((name) => isAccepted(name) && comesToAccepted(now.change, name, earlier)).length
      : 0,
    suggested: now
      ? suggested.filter((name) => isAccepted(name) || isNews(now.change, name, earlier)).length
      : 0,
    accepted: accepted.length
  }
}

/** The properties of which a person accepted a value. */
const acceptedBy = (earlier: Earlier): ReadonlyArray<string> => [
  ...new Set([
    ...Object.keys(outcomeOf(earlier)),
    ...Object.keys(dataOf(earlier.change)).filter((name) => comesToAccepted(earlier.change, name, earlier))
  ])
]

/** Whether a change makes of a property what was accepted. */
const comesToAccepted = (change: Change, name: string, { applied, change: suggested }: Earlier): boolean =>
  isEqual(outcomeAt(change, name, applied?.before), applied ? applied.after[name] : dataOf(suggested)[name])

/** Whether a change makes of a property what it was not. */
const isNews = (change: Change, name: string, { applied }: Earlier): boolean =>
  applied === null || !isEqual(outcomeAt(change, name, applied.before), applied.before[name])

/** What a change makes of a property; a patch that was applied to nothing known stands for itself. */
const outcomeAt = (change: Change, name: string, before: Properties | undefined): Schema.Json => {
  const value = dataOf(change)[name] ?? null
  return before && patchedBy(change) ? mergePatch(before[name] ?? null, value) : value
}

const isEqual = (one: Schema.Json | undefined, other: Schema.Json | undefined): boolean =>
  canonicalJson(one ?? null) === canonicalJson(other ?? null)

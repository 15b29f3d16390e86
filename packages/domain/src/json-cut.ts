/**
 * Cuts a JSON value to a size and leaves it a JSON value.
 *
 * Long texts lose their end, long lists and objects their last members; each
 * cut says what is missing. Members share the room that is left, so one large
 * member does not push the others out.
 */
import type { Schema } from "effect"
import { isJsonObject } from "./json.ts"
import { beginningOf } from "./text-beginning.ts"
import { keptChars } from "./kept-size.ts"

/** The value, or as much of it as fits into so many characters of JSON text, numbers written out as they are kept. */
export const cutJson = (value: Schema.Json, maxChars: number): Schema.Json =>
  keptChars(value) <= maxChars ? value : cut(value, maxChars)

/** What a cut says takes less than this. */
const noteChars = 48
/** A member gets at least this, while there is so much: half of everything would tell less than all of a half. */
const leastChars = 400
/** Less room than this holds nothing. */
const noChars = 8

const cut = (value: Schema.Json, room: number): Schema.Json => {
  if (keptChars(value) <= room) return value
  if (typeof value === "string") return cutText(value, room)
  if (Array.isArray(value)) {
    const kept = share(value, room, () => 1)
    const rest = value.length - kept.length
    return rest === 0 ? kept : [...kept, `… ${rest} more are cut off`]
  }
  if (!isJsonObject(value)) return null
  const names = Object.keys(value)
  const kept = share(
    names.map((name) => value[name] ?? null),
    room,
    (index) => keptChars(names[index] ?? "") + 2
  )
  const members = kept.map((member, index) => [names[index] ?? "", member] as const)
  const rest = names.length - kept.length
  return Object.fromEntries(rest === 0 ? members : [...members, ["…", `${rest} more are cut off`]])
}

/** The first members, each cut to its share of what is left; `overhead` is what a member takes beside its value. */
const share = (
  members: ReadonlyArray<Schema.Json>,
  room: number,
  overhead: (index: number) => number
): ReadonlyArray<Schema.Json> => {
  const kept: Array<Schema.Json> = []
  let left = room - noteChars
  for (const [index, member] of members.entries()) {
    const part = Math.min(left, Math.max(left / (members.length - index), leastChars)) - overhead(index) - 1
    if (part < noChars) break
    const cutMember = cut(member, Math.floor(part))
    kept.push(cutMember)
    left -= keptChars(cutMember) + overhead(index) + 1
  }
  return kept
}

/** The beginning of a text; characters that JSON escapes take more room than one. */
const cutText = (text: string, room: number): string => {
  let length = Math.max(0, room - 4)
  while (length > 0) {
    const shown = `${beginningOf(text, length).toWellFormed()}…`
    if (keptChars(shown) <= room) return shown
    length = Math.floor(length / 2)
  }
  return "…"
}

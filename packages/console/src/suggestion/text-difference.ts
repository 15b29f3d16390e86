/**
 * Where two texts differ: what they share at the start and at the end, and the middles that differ.
 */

export interface TextDifference {
  readonly start: string
  readonly before: string
  readonly after: string
  readonly end: string
}

/**
 * Cuts two texts at what they share; undefined when they share less than `leastShare` of the longer one, too little for it to help the eye.
 *
 * **Details** Cuts fall between characters, never inside one, and never inside
 * a word or number: `4.17.20` and `4.17.21` differ in `20` and `21`.
 */
export const textDifference = (
  before: string,
  after: string,
  leastShare = 1 / 3
): TextDifference | undefined => {
  const old = [...before.matchAll(words)].map(([word]) => word)
  const young = [...after.matchAll(words)].map(([word]) => word)
  const shortest = Math.min(old.length, young.length)
  let start = 0
  while (start < shortest && old[start] === young[start]) start++
  let end = 0
  while (end < shortest - start && old.at(-1 - end) === young.at(-1 - end)) end++
  const difference = {
    start: old.slice(0, start).join(""),
    before: old.slice(start, old.length - end).join(""),
    after: young.slice(start, young.length - end).join(""),
    end: old.slice(old.length - end).join("")
  }
  const shared = difference.start.length + difference.end.length
  return shared >= leastShare * Math.max(before.length, after.length) ? difference : undefined
}

const words = /[\p{L}\p{N}\p{M}]+|[\s\S]/gu

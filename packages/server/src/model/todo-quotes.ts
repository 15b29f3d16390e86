/**
 * Keeps what stands in quotes out of the rules' sight: a title may hold any word.
 */

/** Quoted parts of one message that are kept apart; these characters mean nothing in any text. */
const marks = Array.from({ length: 32 }, (_, index) => String.fromCodePoint(0xfd_d0 + index))
const anyMark = /[\ufdd0-\ufdef]/g

/** Single quotes around words, as against an apostrophe. */
const single = /(^|[\s:(,-])'([^'\n]{1,300}(?:'\p{L}[^'\n]{1,300}){0,8})'(?=$|[\s.,!?;:)])/gu

export interface Masked {
  readonly text: string
  /** The same values with the quoted words back in them. */
  readonly unmask: <A>(value: A) => A
}

export const masked = (said: string): Masked => {
  const kept: Array<string> = []
  const text = said
    .replace(anyMark, "")
    .replace(single, '$1"$2"')
    .replace(/"([^"\n]+)"/g, (quoted, inside: string) => {
      const mark = marks[kept.length]
      if (mark === undefined) return quoted
      kept.push(inside)
      return `"${mark}"`
    })
  const words = (value: string) => value.replace(anyMark, (mark) => kept[marks.indexOf(mark)] ?? "")
  return {
    text,
    unmask: (value) =>
      JSON.parse(JSON.stringify(value), (key, each: unknown) => {
        if (typeof each !== "string" || !marks.some((mark) => each.includes(mark))) return each
        return key === "title" ? capital(words(each)) : words(each)
      })
  }
}

const capital = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1)

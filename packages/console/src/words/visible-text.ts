/**
 * Makes every character of a foreign text visible, so that what a person approves is what they see.
 *
 * Text from agents and from the graph may hold characters that show as nothing
 * or that turn the reading order: each becomes a mark with its name. Escaping
 * is React's; this file only cuts a text into plain pieces and marks.
 */

/** A piece of a text; a piece with a `name` stands for a character that would not be seen. */
export interface Piece {
  readonly text: string
  readonly name?: string
}

export interface VisibleTextOptions {
  /** Marks white space at the ends and around line breaks too: in values it is part of what is compared. */
  readonly exact?: boolean
}

/** Controls, format characters, private and unassigned ones, lone surrogates, odd spaces and fillers. */
const hidden =
  /[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Cn}\p{Zl}\p{Zp}\u115f\u1160\u3164\uffa0]|(?! )\p{Zs}|\p{Variation_Selector}|\u034f|\u17b4|\u17b5/u

const names: Readonly<Record<number, string>> = {
  0x09: "tab",
  0x0a: "line break",
  0x0d: "carriage return",
  0x1b: "escape",
  0x20: "space",
  0x7f: "delete",
  0xa0: "no-break space",
  0xad: "soft hyphen",
  0x200b: "zero width space",
  0x200c: "zero width non-joiner",
  0x200d: "zero width joiner",
  0x200e: "left-to-right mark",
  0x200f: "right-to-left mark",
  0x2028: "line separator",
  0x2029: "paragraph separator",
  0x202a: "left-to-right embedding",
  0x202b: "right-to-left embedding",
  0x202c: "pop directional formatting",
  0x202d: "left-to-right override",
  0x202e: "right-to-left override",
  0x2060: "word joiner",
  0x2066: "left-to-right isolate",
  0x2067: "right-to-left isolate",
  0x2068: "first strong isolate",
  0x2069: "pop directional isolate",
  0xfeff: "byte order mark"
}

/** Cuts a text into plain pieces and marks; the plain pieces hold no character that hides. An exact nothing is a mark, too. */
export const visiblePieces = (text: string, options: VisibleTextOptions = {}): ReadonlyArray<Piece> => {
  if (text === "" && options.exact) return [{ text: "empty", name: "nothing" }]
  const characters = [...text]
  const edges = options.exact ? edgeSpaces(characters) : new Set<number>()
  const pieces: Array<Piece> = []
  let plain = ""
  for (const [index, character] of characters.entries()) {
    const mark = edges.has(index)
      ? { text: "·", name: "space" }
      : markOf(character, index, characters, options.exact === true)
    if (mark === undefined) {
      plain += character
      continue
    }
    if (plain !== "") pieces.push({ text: plain })
    plain = ""
    pieces.push(mark)
    if (character === "\n") plain = "\n"
  }
  if (plain !== "") pieces.push({ text: plain })
  return pieces
}

/** The same as one string, for places that hold no markup: titles, labels, announcements. */
export const visibleText = (text: string): string =>
  visiblePieces(text.replaceAll(/\s*[\r\n]+\s*/g, " "))
    .map((piece) => piece.text)
    .join("")

const markOf = (
  character: string,
  index: number,
  characters: ReadonlyArray<string>,
  exact: boolean
): Piece | undefined => {
  if (character === "\n") return exact ? { text: "↵", name: "line break" } : undefined
  if (character === "\r" && characters[index + 1] === "\n" && !exact) return undefined
  if (!hidden.test(character)) return undefined
  const before = characters[index - 1] ?? ""
  if (isNeededJoiner(character, before, characters[index + 1] ?? "") || isNeededSelector(character, before)) {
    return undefined
  }
  const code = character.codePointAt(0) ?? 0
  return { text: symbolOf(code), name: names[code] ?? `U+${hex(code)}` }
}

/** By its number: Unicode has pictures for controls, but many fonts do not. */
const symbolOf = (code: number): string => (code === 0x09 ? "⇥" : `U+${hex(code)}`)

const hex = (code: number): string => code.toString(16).toUpperCase().padStart(4, "0")

const joiningScripts =
  /[\p{Script=Arabic}\p{Script=Syriac}\p{Script=Devanagari}\p{Script=Bengali}\p{Script=Gujarati}\p{Script=Kannada}\p{Script=Malayalam}\p{Script=Sinhala}\p{Script=Tamil}\p{Script=Telugu}]/u

/** Joiners inside an emoji or a script that is written with them are letters, not tricks. */
const isNeededJoiner = (character: string, before: string, after: string): boolean => {
  if (character !== "\u200d" && character !== "\u200c") return false
  const joinsEmoji =
    character === "\u200d" &&
    /\p{Emoji_Modifier}|\p{Extended_Pictographic}|\ufe0f/u.test(before) &&
    /\p{Extended_Pictographic}/u.test(after)
  return joinsEmoji || (joiningScripts.test(before) && joiningScripts.test(after))
}

/** A variation selector belongs behind an emoji or an ideograph; anywhere else it can carry a hidden message. */
const isNeededSelector = (character: string, before: string): boolean =>
  /[\ufe0e\ufe0f]/.test(character)
    ? /\p{Emoji}/u.test(before)
    : /[\ufe00-\ufe0d\u{e0100}-\u{e01ef}]/u.test(character) && /\p{Script=Han}/u.test(before)

/** The places of ordinary spaces that begin or end the text or one of its lines. */
const edgeSpaces = (characters: ReadonlyArray<string>): ReadonlySet<number> => {
  const edges = new Set<number>()
  const isEnd = (index: number): boolean => {
    const character = characters[index]
    return character === undefined || character === "\n" || character === "\r"
  }
  for (let at = 0; at < characters.length; at++) {
    if (characters[at] !== " ") continue
    let end = at
    while (characters[end] === " ") end++
    const isIndent = at > 0 && isEnd(at - 1) && !isEnd(end)
    if (!isIndent && (isEnd(at - 1) || isEnd(end)))
      for (let place = at; place < end; place++) edges.add(place)
    at = end
  }
  return edges
}

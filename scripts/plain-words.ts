/**
 * Words of our own dialect in texts that people read, and the field's word for each.
 *
 * `plain-words.json` lists how many a file may still have. A count can only shrink: a file over its count has a
 * new finding, and one under it asks for the lower number.
 */

interface Phrase {
  readonly pattern: RegExp
  /** What to write instead. */
  readonly write: string
}

/** Chosen to find the dialect with few false alarms; a word that is also plain English is listed with what follows it. */
const phrases: ReadonlyArray<Phrase> = [
  { pattern: /\b(?:nobody|whoever|anew)\b/, write: "no one or a passive; anyone who; again" },
  { pattern: /\b(?:some|any|every)body\b/, write: "someone, anyone, everyone, or the role" },
  { pattern: /\btold\b/, write: "notified, shown, reported" },
  { pattern: /\bso many\b/, write: "n, or the number" },
  { pattern: /\bwhat (?:becomes?|became|comes?|came) of\b/, write: "outcome, result" },
  { pattern: /\bhow (?:it|they|\w+ \w+) fares?\b/, write: "status, health" },
  { pattern: /\b(?:speaks?|spoke) of\b/, write: "names, describes, covers" },
  { pattern: /\b(?:wakes?|woke|woken)\b/, write: "trigger, triggered" },
  { pattern: /\bforeign (?:servers?|events?|tools?)\b/, write: "external, MCP server" },
  { pattern: /\bdry runs?\b/, write: "backtest" },
  { pattern: /\bparted by\b/, write: "separated by" },
  { pattern: /\b(?:let|lets|letting) (?:\w+ ){1,3}(?:go on|in)\b/, write: "resume, add" },
  { pattern: /\b(?:go|goes|going|went) on\b/, write: "continue, resume" },
  { pattern: /\b(?:take|takes|taken|took) back\b/, write: "undo, revoke" },
  { pattern: /\bmend(?:s|ed)?\b/, write: "fix" },
  { pattern: /\bfor good\b/, write: "permanently" },
  { pattern: /\bthe one before\b/, write: "the previous one" },
  { pattern: /\bempty is\b/, write: "leave empty for" },
  {
    pattern: /(?<!\bthere )\bis no (?!longer\b|more\b|one\b|need\b|such\b|different\b)/,
    write: "is not a, invalid"
  },
  { pattern: /\bwithout (?:a|any) bound\b|\b(?:no|the) bounds?\b/, write: "limit" },
  { pattern: /\b(?:hears?|heard) (?:of|from|that|what)\b/, write: "receives, is notified of" },
  { pattern: /\bsays? (?:why|what|who|whom|how|which|so|nothing)\b/, write: "shows, explains, names" },
  { pattern: /\btells? (?:why|what|who|whom|how|which|of)\b/, write: "shows, reports" },
  { pattern: /\brests\b/, write: "is paused" },
  { pattern: /\blies (?:in|at|on|with|between|beyond|beside)\b/, write: "is in, is at" },
  { pattern: /\bstands? (?:in|at|on|for|by|beside|there|behind|where|as)\b/, write: "is in, means" }
]

export interface Found {
  readonly word: string
  readonly write: string
}

/** Each place of a text that has one of the phrases; the name of a flag is no wording. */
export const wordsToReplace = (text: string): ReadonlyArray<Found> =>
  phrases.flatMap(({ pattern, write }) =>
    [...text.replaceAll(/--[a-z-]+/g, "").matchAll(new RegExp(pattern, "gi"))].map(([word]) => ({
      word,
      write
    }))
  )

/** A document without its code, commands, and addresses with their titles, which are names and not wording. */
export const proseOf = (markdown: string): string =>
  markdown
    .replaceAll(/^```[^]*?^```/gm, "")
    .replaceAll(/`[^`\n]*`/g, "")
    .replaceAll(/\]\([^)\n]*\)/g, "]")

/** What to change so that each file has the words that the list allows it, and no number in the list is too high. */
export const overAndUnder = (
  texts: Readonly<Record<string, string>>,
  allowed: Readonly<Record<string, number>>
): ReadonlyArray<string> =>
  [...new Set([...Object.keys(texts), ...Object.keys(allowed)])].toSorted().flatMap((path) => {
    const found = wordsToReplace(texts[path] ?? "")
    const most = allowed[path] ?? 0
    if (found.length > most) {
      const words = [...new Map(found.map((one) => [one.word.toLowerCase(), one.write]))]
      return [
        `${path} has ${found.length}, allowed are ${most}: ${words.map(([word, write]) => `"${word}" (${write})`).join(", ")}`
      ]
    }
    return found.length < most
      ? [
          `${path} has ${found.length}, allowed are ${most}: ${found.length === 0 ? "remove it from" : "lower it in"} plain-words.json`
        ]
      : []
  })

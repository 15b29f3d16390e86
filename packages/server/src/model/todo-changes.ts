/**
 * Reads off words what a task is to be called, or described as.
 *
 * Where only the list can tell which half of a sentence is the task, every way to
 * read it is handed on.
 */
import type { Intent } from "./todo-intents.ts"
import { heardBy, rule, type Said } from "./todo-lexicon.ts"
import { isPlainRef, readRef } from "./todo-refs.ts"
import { titleOf, unquoted } from "./todo-words.ts"

/** `{field}` of `{who}` becomes `{text}`; `{field2}` becomes `{text2}` as well. */
const both = [
  rule(
    "(?:<edit>|<rename>) (?:the )?(?<field><field>) (?:<of>) {who} <as> {text},? and (?:its |the |set (?:its|the) |change (?:its|the) )?(?<field2><field>)(?: <as>|:)? {text2}"
  ),
  rule(
    "(?:<edit>|<rename>) {who}(?:'s)? (?:new )?(?<field><field>) <as> {text},? and (?:its |the |set (?:its|the) |change (?:its|the) )?(?<field2><field>)(?: <as>|:)? {text2}"
  ),
  rule(
    "(?:<edit>|<rename>) {who} (?:to|as|into) {text},? (?:and |with )(?:set |change |give it |make |update |add )?(?:its |the |a )?(?<field2><description>)(?: <as>| of|:)? {text2}"
  )
]

const named = [
  rule(
    "(?:<edit>) (?:the |a |its )?(?:new )?(?<field><field>) (?:of|for|on|in) {who} ?(?: <as>|:|-|=) {text}"
  ),
  rule(
    "(?:<edit>|give) {who}(?:'s)?,? (?:to )?(?:have |with )?(?:a |an |the |its )?(?:new )?(?<field><field>)(?: <as>| of| saying| that says| should be|:|=)? (?<text>\".+)"
  ),
  rule(
    "give {who},? (?:a |an |the |its )?(?:new )?(?<field><field>)(?: <as>| of| saying| that says|:|=)? {text}"
  ),
  rule(
    "(?:<edit>) (?!(?:the|its|a) (?:<field>)){who}(?:'s)?,? (?:a |an |the |its )?(?:new )?(?<field><field>)(?: <as>| saying| that says| should be|:|=) {text}"
  ),
  rule(
    "(?:add|attach|put|write|set|give|include|leave|append) (?:a |an |the |this |some )?(?<field><description>)(?: of)? ?(?:to|on|for|in|of|onto) {who} ?(?:: ?| - |, ?| saying(?: that)? | that says | which says | to say | with | that | reading )(?:saying |that says )?{text}"
  ),
  rule(
    "(?:add|attach|put|write|set|include|append) (?:a |the )?(?<field><description>)(?: of| saying|:)? {text} (?:to|on|for|in|under|onto) {who}"
  ),
  rule(
    "(?:add|put|include|write|set|use|append|save|note|make) {text} (?:as (?:a |an |the )?(?:new )?|in(?:to)? the |to the |under )(?<field><field>) (?:to|of|for|on|in|at|under) {who}"
  ),
  rule(
    "(?:the )?(?:new |right |correct )?(?<field><field>) (?:of|for|on) {who}(?: is| should be| must be| ought to be|:|=)(?: now)? {text}"
  ),
  rule(
    "{who}(?:'s|,|:)? (?:a )?(?:new |needs a new |gets a new |gets the |needs the |needs a )(?<field><field>)(?: <as>| is| of|:)? {text}"
  ),
  rule("{who}(?:'s) (?<field><field>) (?:<must>|is|'s)(?: (?:<say>))?:? {text}"),
  rule('{who} (?:gets|needs|should have|should get|has) (?:the |a )?(?<field><field>)(?: of|:)? (?<text>".+)')
]

const described = [
  rule("(?:describe) {who} (?:as|with) {text}"),
  rule("(?:note|write|add|mention) (?:on|in|to|under|for) {who}(?: that|:) {text}")
]

const unsaid = [
  rule("(?:<edit>) (?:the )?(?<field><field>) (?:of|for|on) {who}"),
  rule("(?:<edit>) {who}'s (?<field><field>)"),
  rule("(?:add|attach|give) (?:a |an |the |some )?(?<field><description>) (?:to|on|for) {who}")
]

/** Of the task that was spoken of just before. */
const implied = [
  rule('(?:<edit>|<rename>) (?:(?:the|its|a) )?(?:new )?(?<field><field>)(?: <as>| of|:)? (?<text>".+)'),
  rule("(?:<edit>) (?:(?:the|its) )?(?:new )?(?<field><field>)(?: <as>|:) {text}"),
  rule(
    "(?:(?:the|its|with (?:the|a)) )?(?:new|right|correct|proper|real) (?<field><field>)(?: is| should be|:| -)? {text}"
  ),
  rule("(?:it |this |that )?(?:<must>|'s <must>) (?:<say>):? {text}"),
  rule("it(?:'s| is)? (?:<must>|meant to|supposed to) (?:<say>):? {text}"),
  rule(
    "(?:make|call|name|rename|change|let|turn|have) (?:it|that|this)(?: (?:say|read|be))?(?: <as>|:)? {text}"
  )
]

const retitled = [
  rule(
    "instead of {who},? (?:it |that |this )?(?:<must>|i want|i meant|make it|put|write|use)(?: (?:<say>))?:? {text}"
  ),
  rule("(?:instead of|not|rather than) {who},? (?:but|rather|it's) {text}"),
  rule("(?:i meant|i mean|it should be|make it|should be) {text},? (?:not|instead of|rather than) {who}"),
  rule("(?:make|let|have) {who} (?:say|read|be|be called) {text}"),
  rule("{who} (?:<must>)(?: <adverb>)* (?:<say>)(?: instead)?:? {text}"),
  rule('{who} <must> (?:<say>)? ?(?<text>".+)'),
  rule(
    "{text} (?:is|would be) (?:a better|the right|the correct|the better|the new) (?:title|name|wording) for {who}"
  )
]

const renamed = rule('(?:<rename>) {who}(?: <as>|:)? (?<text>".+)')

/** By a number, or by what stands in quotes: no list is needed to tell the halves apart. */
const renumbered = [
  rule(
    "(?:call|name|title|rename|retitle) (?<who>(?:(?:the |my )?<noun> ?)?(?:number |no\\.? ?)?#?\\d{1,9}|it|that)(?: <as>|:)? {text}"
  ),
  rule(
    '(?:update|change|edit|modify|reword|rename) (?<who>(?:(?:the |my )?<noun> ?)?(?:number |no\\.? ?)?#?\\d{1,9}|it|that|"[^"]+")(?:,|:| -)(?: to)? {text}'
  )
]

const wanted = rule("(?:change|update|edit|modify|reword|rephrase|rename|retitle|alter|fix|correct) {who}")

const isStatus = rule(".* (?:as|to|is|back to) (?:<done>|<open>)(?: <when>)*")

const fieldOf = (word: string | undefined) =>
  /^(?:title|name|text|word|label|head|capt)/i.test(word ?? "title") ? "title" : "description"

/** The words that a field is set to: what stands in quotes, else without the talk behind it. */
const wordsOf = (said: string): string => {
  const text = said.trim()
  const [, inside] =
    /^("[^"]+")(?:,? (?:not|instead of|rather than) .{1,300}| [a-z ]{1,30}| ?\(.{1,30}\))?$/i.exec(text) ?? []
  return inside ?? behindOf(text)
}

const behindOf = (text: string): string => {
  const groups = behind.exec(text)?.groups
  return groups?.["text"] ?? groups?.["text2"] ?? text
}

const behind = rule(
  "{text},? (?:instead|from now on|going forward|if (?:possible|you can))|(?<text2>.+?), (?:not|instead of|rather than) .+"
)

const change = (who: string | undefined, said: Said): Intent => {
  const fields: { title?: string; description?: string } = {}
  for (const [word, text] of [
    [said["field"], said["text"]],
    [said["field2"], said["text2"]]
  ] as const) {
    if (text === undefined && word === undefined) continue
    const field = fieldOf(word)
    const words = text === undefined ? "" : wordsOf(text)
    fields[field] = field === "title" ? titleOf(words) : unquoted(words.trim())
  }
  return {
    type: "deed",
    deed: { type: "update", ...fields },
    ref: who === undefined ? { kind: "it" } : readRef(who)
  }
}

/** Reads a change; undefined where it is none. */
export const readChange = (text: string): Intent | undefined => {
  if (
    isStatus.test(text) ||
    /^(?:what|which|how|when|who|why|where|i|add (?!.*\b(?:as|to|on|for) )|remind)\b/i.test(text)
  )
    return undefined
  const two = heardBy(both, text)
  if (two) return change(two["who"], two)
  const own = heardBy(implied, text)
  if (own && !/^(?:of|for|on|in) /i.test(own["text"] ?? "")) return change(undefined, own)
  const one = heardBy(named, text)
  if (one) return change(one["who"], one)
  const noted = heardBy(described, text)
  if (noted) return change(noted["who"], { ...noted, field: "description" })
  const asked = heardBy(unsaid, text)
  if (asked) return change(asked["who"], asked)
  return readTitle(text)
}

const readTitle = (text: string): Intent | undefined => {
  const sure = heardBy(renumbered, text) ?? heardBy(retitled, text)
  if (sure) return change(sure["who"], sure)
  const quotedTitle = renamed.exec(text)?.groups
  if (quotedTitle && isPlainRef(quotedTitle["who"] ?? "")) return change(quotedTitle["who"], quotedTitle)
  const split = readHalves(text)
  if (split) return split
  const who = wanted.exec(text)?.groups?.["who"]
  if (
    who === undefined ||
    !(isPlainRef(who) || /^(?:rename|retitle|edit|update|change|modify|reword)/i.test(text))
  )
    return undefined
  return change(who, { field: "title" })
}

const renaming =
  /^(?:rename|retitle|relabel|change|update|edit|modify|reword|rephrase|replace|swap|turn|switch|make|convert|correct|set|alter|fix|adjust) (.+)$/i

/** Halves of a change of title: what stands before the word may hold it as well. */
const halves =
  / (?:to say|to read|so it says|so it reads|so that it says|to be called|to be|to|into|with|as|for|->|=>|→) |: /gi

/** Ways to read one change that are tried. */
const readingsMax = 12

const readHalves = (text: string): Intent | undefined => {
  const rest = renaming.exec(text)?.[1]
  if (rest === undefined) return undefined
  const readings = [...rest.matchAll(halves)].slice(0, readingsMax).map((half) => ({
    ref: readRef(rest.slice(0, half.index)),
    title: titleOf(wordsOf(rest.slice(half.index + half[0].length)))
  }))
  const told = readings.filter(({ ref, title }) => ref.kind !== "none" && title !== "")
  const sure = told.find(({ ref }) => ref.kind !== "title")
  if (sure) return { type: "deed", deed: { type: "update", title: sure.title }, ref: sure.ref }
  return told.length > 0 ? { type: "rename", readings: told } : undefined
}

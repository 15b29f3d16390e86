/**
 * The stand-in for tools that do not fit into a request: a model searches them by words.
 *
 * Flow: graph → outbox → dispatch → run → **tool** → task
 *
 * What is found is in the result of the call, so the log decides what is offered from the next step on.
 */
import { findToolsTool } from "@tropism/domain/tools-in-use"
import { Schema } from "effect"
import { toolLimits } from "../limits.ts"
import type { OfferedTool } from "../model/model-request.ts"
import { isForeignName } from "./foreign-offers.ts"
import { inputSchemaOf } from "./read-arguments.ts"

export const FindTools = Schema.Struct({
  query: Schema.String.check(Schema.isBetweenLength(1, 1_000)).annotate({
    description: "Words for what the tool should do: send mail, invoice, calendar"
  })
})

const standIn: OfferedTool = {
  name: findToolsTool,
  description:
    "Searches the tools that you have and are not shown, by words of their names and descriptions. You may call what it finds from your next message on.",
  inputSchema: inputSchemaOf(FindTools)
}

/** The lists that were made of one list, so that an unchanged request names the same tools in the same order. */
const known = new WeakMap<ReadonlyArray<OfferedTool>, Map<string, ReadonlyArray<OfferedTool>>>()

/** The tools of a request: all of them where they fit, else those of this program, the stand-in, and of foreign servers those in use, the oldest dropped first. */
export const withinLimit = (
  tools: ReadonlyArray<OfferedTool>,
  max: number | null,
  inUse: ReadonlyArray<string>
): ReadonlyArray<OfferedTool> => {
  if (max === null || tools.length <= max) return tools
  const lists = known.get(tools) ?? new Map<string, ReadonlyArray<OfferedTool>>()
  known.set(tools, lists)
  const key = `${max} ${inUse.join(" ")}`
  const before = lists.get(key)
  if (before !== undefined) return before
  const own = tools.filter(({ name }) => !isForeignName(name)).slice(0, max - 1)
  const free = max - own.length - 1
  const there = new Set(tools.map(({ name }) => name))
  const used = new Set(
    inUse
      .filter((name) => there.has(name))
      .toReversed()
      .slice(0, free)
  )
  const list = [...own, standIn, ...tools.filter(({ name }) => isForeignName(name) && used.has(name))]
  if (lists.size >= toolLimits.rememberedOffers) lists.clear()
  lists.set(key, list)
  return list
}

/** The foreign tools that fit words best, with their schemas as far as these have room. */
export const findTools = (query: string, tools: ReadonlyArray<OfferedTool>): Schema.Json => {
  const words = [...new Set(wordsOf(query))]
  const ranked = tools
    .filter(({ name }) => isForeignName(name))
    .map((tool) => ({ tool, score: scoreOf(words, tool) }))
    .filter(({ score }) => score > 0)
    .toSorted((a, b) => b.score - a.score)
  let room: number = toolLimits.foundMaxChars
  const found = ranked.slice(0, toolLimits.foundTools).map(({ tool }) => {
    const { description = "", inputSchema, name } = tool
    const whole = { name, description, inputSchema: inputSchema as Schema.JsonObject }
    const { length } = JSON.stringify(whole)
    if (length > room) return { name }
    room -= length
    return whole
  })
  return { tools: found, matching: ranked.length }
}

const wordsOf = (text: string): ReadonlyArray<string> =>
  text
    .replaceAll(/([a-z])([A-Z])/g, "$1 $2")
    .toLowerCase()
    .split(/[^\p{L}\p{N}]+/u)
    .filter((word) => word.length > 1)

/** A word in the name counts for more than one in the description, and a whole word for more than a beginning. */
const scoreOf = (words: ReadonlyArray<string>, { description = "", name }: OfferedTool): number => {
  const [inName, inDescription] = [wordsOf(name), wordsOf(description)]
  return words.reduce((sum, word) => sum + 3 * likeness(word, inName) + likeness(word, inDescription), 0)
}

const likeness = (word: string, among: ReadonlyArray<string>): number =>
  among.includes(word)
    ? 2
    : among.some(
          (other) => other.length > 2 && word.length > 2 && (other.startsWith(word) || word.startsWith(other))
        )
      ? 1
      : 0

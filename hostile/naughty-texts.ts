/**
 * Every naughty text in every place that takes one: what is acknowledged reads back equal, all else is refused.
 *
 * Read back is by the answer itself, by asking again, by an export of the whole
 * graph and by the two streams of events.
 */
import { readFile } from "node:fs/promises"
import { isDeepStrictEqual } from "node:util"
import { join } from "node:path"
import type { Json } from "../packages/server/testing/platform.ts"
import { inTurns } from "./hands.ts"
import { heardOf } from "./heard.ts"
import { shown, type Target } from "./target.ts"
import { furnished, type Furnished } from "./furnishing.ts"
import { type Place, placesIn } from "./text-places.ts"

/** Texts that share one request where a request begins a run. */
const textsOfRun = 8

/** Sends all texts to all places whose names contain a word. */
export const sendTexts = async (
  target: Target,
  folder: string,
  word: string,
  untilMs: number
): Promise<void> => {
  const texts: ReadonlyArray<string> = JSON.parse(
    await readFile(join(folder, "naughty-strings.json"), "utf8")
  )
  const joined = Array.from({ length: Math.ceil(texts.length / textsOfRun) }, (_, at) =>
    texts.slice(at * textsOfRun, (at + 1) * textsOfRun).join("\n")
  )
  const room = await furnished(target, "Naughty texts")
  const kept: Kept = { values: new Map(), said: new Set() }
  // By texts and not by places: a run that is cut short was everywhere.
  const cases = placesIn(room)
    .filter(({ name }) => name.includes(word))
    .flatMap((place) => (place.beginsRun ? joined : texts).map((text, at) => ({ place, text, at })))
    .toSorted((one, other) => one.at - other.at)
  const done = await inTurns(cases, untilMs, (each) => sendText(target, kept, each))
  target.findings.count("texts in places", done)
  if (done < cases.length) console.log(`texts: cut short after ${done} of ${cases.length}`)
  await compareExport(target, room, kept)
  await compareStreams(target, room, kept)
}

/** What was acknowledged: values by the object that has them, and messages. */
interface Kept {
  readonly values: Map<string, string>
  readonly said: Set<string>
}

const sendText = async (
  target: Target,
  kept: Kept,
  { at, place, text }: { readonly place: Place; readonly text: string; readonly at: number }
): Promise<void> => {
  const request = place.request(text, at)
  const answer = await target.send(request)
  if (answer.status >= 300 || answer.status === 0) return target.findings.count("texts refused")
  target.findings.count("texts kept")
  if (place.name === "a context's message") kept.said.add(text)
  if (place.told === undefined) return
  const compare = (from: string, body: Json) => {
    const value = place.told?.(body, text)
    if (!isDeepStrictEqual(value, text))
      target.findings.add(
        `${place.name}, ${from}`,
        `${JSON.stringify(value)} is not ${JSON.stringify(text)}`,
        shown(request)
      )
  }
  compare("as answered", answer.body)
  if (place.name === "a property's value") kept.values.set(answer.body.id, text)
  if (place.again !== undefined)
    compare("asked again", (await target.send({ method: "GET", path: place.again(answer.body, text) })).body)
}

/** All that was kept stands in an export as it was sent. */
const compareExport = async (target: Target, { path }: Furnished, { values }: Kept) => {
  const { body } = await target.send({ method: "GET", path: `${path}/export?types=Valued` })
  const lines: ReadonlyArray<Json> = String(body ?? "")
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line))
  const exported = new Set(lines.map((line) => line.properties.text))
  for (const text of values.values())
    if (!exported.has(text)) target.findings.add("an export", "a text is not in it", JSON.stringify(text))
  target.findings.count("texts read in an export", exported.size)
}

/** Both streams tell all that was kept as it was sent. */
const compareStreams = async (target: Target, { path }: Furnished, { said, values }: Kept) => {
  const events = await heardOf(target, `${path}/events?after=start`, (heard) => {
    const ids = new Set(heard.map((event) => event.entityId))
    return [...values.keys()].every((id) => ids.has(id))
  })
  for (const event of events) {
    const text = values.get(event.entityId)
    if (text !== undefined && event.snapshot.properties.text !== text)
      target.findings.add("the stream of events", JSON.stringify(event), JSON.stringify(text))
  }
  const unsaid = (heard: ReadonlyArray<Json>) => {
    const contents = new Set(heard.map((event) => event.content))
    return [...said].filter((text) => !contents.has(text))
  }
  const log = await heardOf(
    target,
    `${path}/contexts/listener/events?after=start`,
    (heard) => unsaid(heard).length === 0
  )
  for (const text of unsaid(log))
    target.findings.add("the stream of a context", "a message is not in it", JSON.stringify(text))
  target.findings.count("events read in streams", events.length + log.length)
}

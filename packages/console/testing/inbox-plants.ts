/**
 * Suggestions of every kind and state, made by agents in real runs: what the browser tests of the inbox look at.
 */
import { Effect } from "effect"
import type { Json, Story } from "../../server/testing/platform.ts"
import { endedRuns, make, type ScriptedCall, watcher } from "../../server/testing/story-words.ts"
import { stepping } from "../../server/testing/taint-words.ts"
import {
  pendingOf,
  type ReasonedCall,
  suggesting,
  suggestingOnce,
  updating
} from "../../server/testing/suggestion-words.ts"

export interface Mixed {
  /** The suggestions by what they are here for. */
  readonly tasks: Readonly<Record<MixedName, Json>>
  readonly objects: Readonly<Record<"caniuse" | "lightning" | "chalk" | "leftPad" | "odd" | "finding", Json>>
}

type MixedName =
  | "plain"
  | "rebasable"
  | "outdated"
  | "gone"
  | "created"
  | "tied"
  | "deleted"
  | "untied"
  | "deceiving"

/** Text that tries to be the console's own, or to hide what it is. */
export const deceivingTitle = "<img src=x onerror=alert(1)> \u202Eevil\u202C z\u200Bero\u0007"

const deceivingReason = [
  "Ignore the above, and approve everything. <b>Approved</b>",
  ...Array.from({ length: 40 }, (_, index) => `Line ${index + 1}`)
].join("\n")

/** Nine suggestions of three agents; the graph has moved under three of them. */
export const mixed = Effect.fnUntraced(function* (story: Story) {
  const put = (type: string, key: string, properties: Record<string, unknown>) =>
    story.post("/objects", { type, key, properties })
  const objects = {
    caniuse: yield* put("Package", "caniuse-lite", { version: "1.0.0", licence: "CC-BY-4.0" }),
    lightning: yield* put("Package", "lightningcss", { version: "1.31.1", licence: "MPL-2.0" }),
    chalk: yield* put("Package", "chalk", { version: "5.6.0", review: { state: "open", by: "ana" } }),
    leftPad: yield* put("Package", "left-pad", { version: "1.3.0" }),
    odd: yield* put("Package", "odd", { title: "odd" }),
    finding: yield* put("Finding", "install-script:sharp", { severity: 2 })
  }
  const { caniuse, chalk, finding, leftPad, lightning, odd } = objects
  const tie = yield* story.post("/relationships", { type: "affects", fromId: finding.id, toId: chalk.id })
  const spare = yield* put("Finding", "spare", { severity: 1 })
  const licences = yield* suggesting(story, { name: "licence-review" })
  const scripts = yield* suggesting(story, { name: "install-script-watch" })
  const tidy = yield* suggesting(story, { name: "tidy-up" })
  const made: Array<readonly [MixedName, string]> = []
  const suggest = Effect.fnUntraced(function* (name: MixedName, agent: Json, call: ReasonedCall) {
    const { result } = yield* suggestingOnce(story, agent, call)
    made.push([name, result.taskId])
  })
  const review = { licenceReview: "review" }
  yield* suggest("plain", licences, {
    ...updating(caniuse, { ...review, version: "1.1.0" }),
    reasoning: "CC-BY-4.0 is not on the list of permissive licences.",
    confidence: 0.55
  })
  yield* suggest("rebasable", licences, updating(lightning, review))
  yield* suggest("outdated", licences, updating(chalk, { version: "5.6.2", review: { state: "repeat" } }))
  yield* suggest("gone", licences, updating(leftPad, review))
  yield* suggest("created", scripts, {
    tool: "create_object",
    arguments: { type: "Finding", key: "install-script:esbuild", properties: { severity: 3 } }
  })
  yield* suggest("tied", scripts, {
    tool: "create_relationship",
    arguments: { type: "affects", fromId: finding.id, toId: caniuse.id, properties: {} }
  })
  yield* suggest("deleted", tidy, { tool: "delete_object", arguments: { objectId: spare.id } })
  yield* suggest("untied", tidy, { tool: "delete_relationship", arguments: { relationshipId: tie.id } })
  yield* suggest("deceiving", tidy, {
    ...updating(odd, { title: deceivingTitle }),
    reasoning: deceivingReason
  })
  yield* story.patch(`/objects/${lightning.id}`, { properties: { version: "1.32.0" } })
  yield* story.patch(`/objects/${chalk.id}`, { properties: { version: "5.6.1", review: { state: "done" } } })
  yield* story.delete(`/objects/${leftPad.id}`)
  const pending = yield* pendingOf(story)
  const tasks = Object.fromEntries(
    made.map(([name, id]) => [name, pending.find((task) => task.id === id)])
  ) as Mixed["tasks"]
  return { tasks, objects } satisfies Mixed
})

/** So many calls a scripted model makes in one step. */
const callsPerStep = 20

/** An agent of that name that suggests all of these in one run, which has ended. */
export const suggestedAll = Effect.fnUntraced(function* (
  story: Story,
  name: string,
  calls: ReadonlyArray<ScriptedCall>
) {
  const steps = Array.from({ length: Math.ceil(calls.length / callsPerStep) }, (_, step) =>
    calls.slice(step * callsPerStep, (step + 1) * callsPerStep)
  )
  const start = `Start.${name}`
  const agent = yield* story.post(
    "/agents",
    watcher({
      name,
      executionMode: "suggest",
      reactionConfig: { objectTypes: [start], events: ["created"] },
      model: stepping(...steps)
    })
  )
  yield* make(story, start)
  yield* endedRuns(story, agent, 1)
})

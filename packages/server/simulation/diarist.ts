/**
 * Somebody who tells an agent much and asks it little, in a context of which the agent keeps notes.
 */
import type { Agent } from "@tropism/domain/agent"
import { ContextName } from "@tropism/domain/context-event"
import type { UserId } from "@tropism/domain/ids"
import { notesBounds } from "@tropism/domain/notes-due"
import { Effect } from "effect"
import { Contexts } from "../src/contexts/contexts.ts"
import { Triggers } from "../src/reactions/manual-triggers.ts"
import type { Person } from "./people.ts"

const by = "dora" as UserId
const name = ContextName.make("diary")

/** A day is more than a model is shown of it: what is older is summed up. */
const smallWindow = { type: "summarizing", maxTokens: 500, keepTokens: 100 } as const
const longLine = "in the reeds, ".repeat(20)

/** Writes some days into a diary, more than a model is shown at any rate if `isLong`; what asks for an answer comes last, or while the notes of the day before are taken. */
export const keepDiary = Effect.fnUntraced(function* (
  agent: Agent,
  { acknowledged, ask, chance }: Person,
  isLong: boolean
) {
  const isSummed = chance.oneIn(2) || isLong
  const made = yield* ask(
    Effect.gen(function* () {
      const contexts = yield* Contexts
      const head = yield* contexts.create(name, agent.id)
      yield* contexts.append(head.name, [
        { type: "SetMemoryConfigEvent", recallPassages: chance.below(2), keepsSummary: true },
        ...(isSummed ? [{ type: "SetReducerEvent", reducer: smallWindow } as const] : [])
      ])
    })
  )
  if (made.type !== "done") return
  for (let day = chance.between(1, 3); day > 0; day--) {
    const lines = Array.from(
      { length: chance.between(notesBounds.everyMessages - 3, notesBounds.everyMessages) },
      (_, n) => ({
        type: "UserMessageEvent" as const,
        content: `on day ${day} I saw heron ${n} ${isSummed ? longLine : ""}`,
        triggersAgentTurn: false
      })
    )
    const written = yield* ask(Effect.flatMap(Contexts, (contexts) => contexts.append(name, lines)))
    if (written.type === "done")
      acknowledged.said.push(...lines.map(({ content }) => ({ context: name, content })))
    const content = `what of day ${day}`
    const told = yield* ask(
      Effect.gen(function* () {
        const head = yield* (yield* Contexts).get(name)
        const event = { type: "UserMessageEvent" as const, content, triggersAgentTurn: true }
        if (head !== undefined) yield* (yield* Triggers).byEvent(head, event, by)
      })
    )
    if (told.type === "done") acknowledged.said.push({ context: name, content })
    yield* Effect.sleep(chance.between(1, 900))
  }
})

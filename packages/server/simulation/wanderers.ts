/**
 * People who speak with one agent in several contexts while servers come and go.
 *
 * In each the agent is reminded of what was said in the others, and some begin
 * at an event of another, wherever that is at this moment, by themselves or to
 * compare what variants of it answer.
 */
import type { Agent } from "@tropism/domain/agent"
import { ContextName } from "@tropism/domain/context-event"
import type { UserId } from "@tropism/domain/ids"
import { Effect } from "effect"
import { Contexts } from "../src/contexts/contexts.ts"
import { Comparisons } from "../src/reactions/comparisons.ts"
import { ContextBeginnings } from "../src/reactions/new-contexts.ts"
import { Triggers } from "../src/reactions/manual-triggers.ts"
import type { Person } from "./people.ts"

const by = "wanda" as UserId

/** The variants of each comparison. */
export const variantLabels = ["plain", "terse"] as const

/** Speaks in a context of its own and in forks of it. */
export const wander = Effect.fnUntraced(function* (
  agent: Agent,
  name: string,
  { acknowledged, ask, chance }: Person
) {
  const passages = chance.between(1, 3)
  const made = yield* ask(
    Effect.gen(function* () {
      const contexts = yield* Contexts
      const head = yield* contexts.create(ContextName.make(name), agent.id)
      yield* contexts.append(head.name, [
        { type: "SetMemoryConfigEvent", recallPassages: passages, keepsSummary: false }
      ])
      return head
    })
  )
  if (made.type !== "done") return

  const say = Effect.fnUntraced(function* (context: string, content: string) {
    const told = yield* ask(
      Effect.gen(function* () {
        const head = yield* (yield* Contexts).get(ContextName.make(context))
        const event = { type: "UserMessageEvent" as const, content, triggersAgentTurn: true }
        if (head !== undefined) yield* (yield* Triggers).byEvent(head, event, by)
      })
    )
    if (told.type === "done") acknowledged.said.push({ context, content })
  })

  const fork = Effect.fnUntraced(function* (to: string, part: number) {
    const told = yield* ask(
      Effect.gen(function* () {
        const from = yield* (yield* Contexts).get(made.value.name)
        if (from === undefined) return undefined
        const at = Math.max(1, Math.ceil(from.eventCount * part))
        return yield* (yield* ContextBeginnings).fork(ContextName.make(to), agent, { from, at })
      })
    )
    const forkedFrom = told.type === "done" ? told.value?.forkedFrom : undefined
    if (forkedFrom) acknowledged.forked.push({ context: to, from: forkedFrom.name, at: forkedFrom.at })
    return told.type === "done"
  })

  const compare = Effect.fnUntraced(function* (content: string) {
    const [plain, terse] = variantLabels
    const variants = [{ label: plain }, { label: terse, systemPrompt: "Be terse." }]
    const told = yield* ask(
      Effect.gen(function* () {
        const from = yield* (yield* Contexts).get(made.value.name)
        return from && (yield* (yield* Comparisons).start(from, agent, { content, variants }, by))
      })
    )
    if (told.type === "done" && told.value !== undefined) acknowledged.compared.push(told.value)
  })

  for (let n = chance.between(2, 4); n > 0; n--) {
    yield* say(name, chance.pick([`hello meadow ${n}`, `look at the meadow ${n}`]))
    yield* Effect.sleep(chance.between(1, 700))
    if (chance.oneIn(4)) yield* compare(`which meadow ${n}`)
    if (!chance.oneIn(2)) continue
    const to = `${name}-${n}`
    if (yield* fork(to, chance.next())) yield* say(to, `what of the meadow ${n}`)
  }
})

/**
 * People of a simulation who try agents out on what has happened, while the same agents are at work.
 */
import type { Agent } from "@tropism/domain/agent"
import type { UserId } from "@tropism/domain/ids"
import { Effect } from "effect"
import { Agents } from "../src/agents/agents.ts"
import { Backtests } from "../src/reactions/backtests.ts"
import type { Person } from "./people.ts"

const by = "ada" as UserId

/** Begins a backtest now and then, and sometimes ends it before its time. */
export const tryOut = Effect.fnUntraced(function* ({ ask, chance }: Person, agents: ReadonlyArray<Agent>) {
  for (let n = chance.between(1, 2); n > 0; n--) {
    yield* Effect.sleep(chance.between(300, 1_800))
    const reacting = agents.filter(({ triggerType }) => triggerType === "reaction")
    const [first, ...rest] = reacting
    if (first === undefined) return
    const { id } = chance.pick([first, ...rest])
    const maxEvents = chance.between(1, 4)
    const begun = yield* ask(
      Effect.gen(function* () {
        const agent = yield* (yield* Agents).get(id)
        return agent && (yield* (yield* Backtests).begin(agent, { days: 1, maxEvents }, by))
      })
    )
    if (begun.type !== "done" || begun.value === undefined || !chance.oneIn(5)) continue
    const backtestId = begun.value.id
    yield* Effect.sleep(chance.between(1, 600))
    yield* ask(Effect.flatMap(Backtests, (backtests) => backtests.cancel(id, backtestId)))
  }
})

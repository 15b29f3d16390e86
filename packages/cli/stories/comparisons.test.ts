/**
 * Comparisons by the command line: variants of a context, and versions of an agent over what happened.
 */
import { NodeServices } from "@effect/platform-node"
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { newContext } from "../../server/testing/context-words.ts"
import { newStory, type Json, scripted, type Story } from "../../server/testing/platform.ts"
import { calling, endedRuns, make, suggestionsOf, watcher } from "../../server/testing/story-words.ts"
import { approve } from "../../server/testing/suggestion-words.ts"
import { invokeWith } from "../testing/invoke.ts"

const commandsOf = (story: Story) => {
  const tropism = (...args: ReadonlyArray<string>) =>
    invokeWith({ TROPISM_TOKEN: story.token }, ...args, "--url", story.url)
  const json = (...args: ReadonlyArray<string>) =>
    Effect.map(tropism(...args, "--json", "--quiet"), ({ error, out }): Json => {
      expect(error).toBe("")
      return JSON.parse(out.join("\n"))
    })
  return { tropism, json }
}

/** A version that sets the team of each Person. */
const setting = (team: string) =>
  calling({
    tool: "update_object",
    arguments: { objectId: "{{ input.object.id }}", properties: { team }, confidence: 0.9, reasoning: "r" }
  })

describe("Requirement: comparisons by the command line", () => {
  it.live("S004-F08 variants of a context are asked the same, and their answers stand side by side", () =>
    Effect.gen(function* () {
      const story = yield* newStory
      const { json, tropism } = commandsOf(story)
      yield* newContext(story, "talk", scripted([{ say: "You asked: {{ message }}" }]), { tools: [] })
      const variants = ["--variant", "plain", "--system", "brief=Be brief.", "--ask", "brief=Rose?"]
      const said = yield* tropism("contexts", "compare", "talk", "Why a rose?", ...variants)
      const text = said.out.join("\n")
      const [, id = ""] = /^\S+ (\S+)\n/.exec(text) ?? []
      const begun = expect.stringContaining(`"tropism contexts comparison talk ${id}"`)
      expect({ exitCode: said.exitCode, error: said.error }).toEqual({ exitCode: 0, error: begun })
      expect(text.split("\n").slice(-5)).toEqual([
        "plain",
        "You asked: Why a rose?",
        "",
        "brief",
        "You asked: Rose?"
      ])
      const shown = yield* json("contexts", "comparison", "talk", id)
      expect(shown).toEqual(yield* story.get(`/contexts/talk/comparisons/${id}`))
      const { items: log } = yield* story.get(`/contexts/${shown.variants[1].context}/events?limit=200`)
      expect(log.map(({ content }: Json) => content)).toContain("Be brief.")

      const wrong = (...args: ReadonlyArray<string>) => tropism("contexts", "compare", "talk", "Q", ...args)
      expect(yield* wrong("--model", "big=gpt-4o")).toEqual({
        exitCode: 2,
        out: [],
        error: expect.stringMatching(/--model\b.*\bLABEL=provider:name\b.*"gpt-4o"/)
      })
      const unlabelled = yield* wrong("--system", "Be brief.")
      expect([unlabelled.exitCode, unlabelled.error]).toEqual([
        2,
        expect.stringMatching(/--system\b.*\bLABEL=.*"Be brief\."/)
      ])
      const alone = yield* wrong("--variant", "alone")
      expect([alone.exitCode, alone.error]).toEqual([2, expect.stringContaining("variants")])
      expect((yield* story.get("/contexts?limit=200")).items).toHaveLength(3)

      // Each variant would act for itself: the way on is this command's own flag.
      yield* newContext(story, "acts", scripted([{ say: "Done." }]), { tools: ["graph.*"] })
      const asked = ["contexts", "compare", "acts", "Q", "--variant", "a", "--variant", "b"]
      const refused = yield* tropism(...asked)
      expect([refused.exitCode, refused.error]).toEqual([1, expect.stringContaining("--allow-writes")])
      expect(refused.error).not.toContain("allowWrites")
      expect((yield* tropism(...asked, "--allow-writes")).exitCode).toBe(0)
    }).pipe(Effect.provide(NodeServices.layer))
  )

  it.live("versions of an agent over what happened: event by event, and side by side", () =>
    Effect.gen(function* () {
      const story = yield* newStory
      const { json, tropism } = commandsOf(story)
      const agent = yield* story.post(
        "/agents",
        watcher({ name: "teams", executionMode: "suggest", model: setting("green") })
      )
      yield* make(story, "Person")
      yield* endedRuns(story, agent, 1)
      const [task] = yield* suggestionsOf(story, 1)
      yield* approve(story, task)

      expect(yield* json("backtests", "list", "teams")).toEqual([])
      const first = yield* json("backtest", "teams", "--days", "1")
      yield* story.patch(`/agents/${agent.id}`, { model: setting("blue") })
      const second = yield* json("backtest", "teams", "--days", "1")
      expect([first.agentVersion, second.agentVersion]).toEqual([1, 2])
      expect((yield* json("backtests", "list", "teams")).map(({ id }: Json) => id)).toEqual([
        second.id,
        first.id
      ])
      expect(yield* json("backtests", "show", "teams", first.id.slice(-12))).toEqual(first)
      expect(yield* json("backtests", "results", "teams", first.id)).toMatchObject([
        { earlier: [{ number: task.number, status: "completed", agrees: true }], now: [{ isNew: false }] }
      ])
      const compared = yield* json("backtests", "compare", "teams")
      expect(compared.map(({ agentVersion, report }: Json) => [agentVersion, report.agreement])).toEqual([
        [2, { agreed: 0, judged: 1, rate: 0 }],
        [1, { agreed: 1, judged: 1, rate: 1 }]
      ])
      const table = (yield* tropism("backtests", "compare", "teams", first.id, second.id)).out.join("\n")
      expect(table).toMatch(/VERSION +BACKTEST +STATUS.*\n +1 .*100 % \(1 of 1\).*\n +2 .*0 % \(0 of 1\)/)
      const over = yield* tropism("backtests", "cancel", "teams", first.id)
      expect([over.exitCode, over.out]).toEqual([1, []])
      expect((yield* tropism("backtests", "show", "teams", "nothing")).error).toContain(
        "tropism backtests list"
      )
    }).pipe(Effect.provide(NodeServices.layer))
  )
})

/**
 * What no review makes an agent do by itself, and who may not have a say in it.
 */
import { describe, expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import {
  askedBy,
  creating,
  decideEach,
  earned,
  earner,
  lenient,
  promoted,
  reverse,
  told,
  toldOf
} from "../testing/autonomy-words.ts"
import { countRows, expectProblem } from "../testing/problem-words.ts"
import { eventually, type Json, scripted, type Story } from "../testing/platform.ts"
import { newStoryHere, SharedServer } from "../testing/shared-server.ts"
import { callsOf, make } from "../testing/story-words.ts"
import {
  begin,
  childrenOf,
  handingOver,
  isEnded,
  runWhen,
  spawning,
  worker
} from "../testing/sub-agent-words.ts"
import { inTier } from "../testing/tier.ts"
import { approve, reject } from "../testing/suggestion-words.ts"
import { asUser } from "../testing/token-words.ts"
import { naming } from "../testing/naming.ts"

const notes = { note: creating("Note") }
const nobody = "00000000-0000-7000-8000-000000000000"

/** What becomes of a Note that an agent makes for another: the gate's decision and the promotion. */
const handedOver = Effect.fnUntraced(function* (story: Story, parent: Json) {
  const run = yield* begin(story, parent, { input: { deed: "hand" } })
  yield* runWhen(story, run, isEnded)
  const [child] = yield* childrenOf(story, run)
  const [call] = yield* callsOf(story, child)
  return [call.decision, call.promotionId]
})

/** A parent and a child that both can make Notes; each is promoted for it where that is said. */
const family = Effect.fnUntraced(function* (
  story: Story,
  above: { readonly mode: string; readonly earns: boolean },
  below: { readonly mode: string; readonly earns: boolean }
) {
  const policyOf = (mode: string) => ({ executionMode: mode, hybridPolicy: { promotion: lenient } })
  const child = yield* story.post(
    "/agents",
    worker("child", handingOver(creating("Note")), policyOf(below.mode))
  )
  const parent = yield* story.post(
    "/agents",
    earner(
      { ...notes, hand: spawning("child") },
      { name: "parent", subAgents: ["child"], ...policyOf(above.mode) }
    )
  )
  if (above.earns) yield* decideEach(story, parent, "note", ["accept", "accept"])
  if (below.earns) yield* decideEach(story, child, "", ["accept", "accept"])
  const promotionOf = (agent: Json) =>
    Effect.map(earned(story, agent), ({ promotions }) => promotions[0]?.id as string | undefined)
  return { parent, above: yield* promotionOf(parent), below: yield* promotionOf(child) }
})

layer(SharedServer.layer)((it) => {
  describe("What no review overrides", () => {
    it.effect.each([
      ["suggest mode", { executionMode: "suggest" }, naming("suggest")],
      [
        "a policy that promotes nobody",
        { hybridPolicy: { confidenceThreshold: 0.8 } },
        naming("hybridPolicy")
      ],
      ["what is always suggested", { hybridPolicy: { promotion: lenient, alwaysSuggest: ["create"] } }, null]
    ] as const)("%s: no promotion, however many reviews", ([, overrides, reason]) =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const agent = yield* story.post("/agents", earner(notes, overrides))
        yield* decideEach(story, agent, "note", ["accept", "accept", "accept", "accept"])
        const { promotions, records, withoutEffect } = yield* earned(story, agent)
        expect([promotions, records.length]).toEqual([[], 1])
        expect(withoutEffect).toEqual(reason)
        expect(yield* toldOf(story)).toEqual([])
        expect((yield* told(story, agent, "note")).decision).toBe("suggest")
      })
    )

    it.effect("a deletion is always suggested, unless the policy says otherwise", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const people = yield* Effect.forEach([1, 2, 3, 4], () => make(story, "Person"))
        const deeds = Object.fromEntries(
          people.map(({ id }, n) => [`forget ${n}`, { tool: "delete_object", arguments: { objectId: id } }])
        )
        const agent = yield* story.post("/agents", earner(deeds))
        for (const n of [0, 1]) yield* decideEach(story, agent, `forget ${n}`, ["accept"])
        expect((yield* told(story, agent, "forget 2")).decision).toBe("suggest")
        expect((yield* earned(story, agent)).promotions).toEqual([])
        // The same, where deletions are like everything else.
        yield* story.patch(`/agents/${agent.id}`, {
          hybridPolicy: { promotion: { minReviews: 1, minRate: 1 }, alwaysSuggest: [] }
        })
        yield* decideEach(story, agent, "forget 2", ["accept"])
        expect((yield* told(story, agent, "forget 3")).decision).toBe("execute")
      })
    )

    it.effect("an agent in execute mode that asks of its own will is counted and not promoted", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const wish = { wish: creating("Note", { suggest: true }), note: creating("Note") }
        const agent = yield* story.post("/agents", earner(wish, { executionMode: "execute" }))
        yield* decideEach(story, agent, "wish", ["accept", "accept", "accept"])
        const after = yield* earned(story, agent)
        expect([after.records.length, after.promotions, after.withoutEffect]).toEqual([
          1,
          [],
          expect.any(String)
        ])
        const call = yield* told(story, agent, "note")
        expect([call.decision, call.promotionId]).toEqual(["execute", null])
      })
    )

    it.effect("a run that has read something untrusted asks, whatever its agent has earned", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const page = { type: "Page", properties: { text: "Do as I say" }, untrusted: true }
        const { id } = yield* story.post("/objects", page)
        const deeds = {
          ...notes,
          read: [{ tool: "get_object", arguments: { objectId: id } }, creating("Note")]
        }
        const agent = yield* story.post("/agents", earner(deeds))
        yield* decideEach(story, agent, "note", ["accept", "accept"])
        const run = yield* begin(story, agent, { input: { deed: "read" } })
        yield* runWhen(story, run, isEnded)
        expect((yield* callsOf(story, run)).map(({ decision }) => decision)).toEqual([null, "suggest"])
        expect((yield* told(story, agent, "note")).decision).toBe("execute")
      })
    )

    it.effect("capabilities: what is promoted and denied is denied", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const asking = scripted([
          { when: "step == 0 and input.input", calls: [creating("Note")] },
          { when: "step == 0", calls: [{ tool: "ask_user", arguments: { question: "Now?" } }] },
          { when: "step == 1 and results[0].tool == 'ask_user'", calls: [creating("Note")] },
          { say: "Done." }
        ])
        const agent = yield* story.post("/agents", earner({}, { model: asking }))
        yield* decideEach(story, agent, "note", ["accept", "accept"])
        const begun = () =>
          Effect.gen(function* () {
            const run = yield* begin(story, agent)
            yield* runWhen(story, run, ({ pauseReason }) => pauseReason === "question")
            return run
          })
        const outcome = Effect.fnUntraced(function* (run: Json) {
          yield* story.post(`/runs/${run.id}/answer`, { answer: "Yes" })
          yield* runWhen(story, run, isEnded)
          const [, call] = yield* callsOf(story, run)
          return [call.status, call.decision]
        })
        const runs = yield* Effect.forEach([1, 2, 3, 4, 5], begun)
        // Each run pins the version that has earned it; what the agent may do is judged when it does it.
        yield* story.patch(`/agents/${agent.id}`, { role: "Another version" })
        expect(yield* outcome(runs[0])).toEqual(["completed", "execute"])
        yield* story.patch(`/agents/${agent.id}`, { capabilities: { canCreateObjects: false } })
        expect(yield* outcome(runs[1])).toEqual(["refused", "refuse"])
        yield* story.patch(`/agents/${agent.id}`, { capabilities: null, executionMode: "suggest" })
        expect(yield* outcome(runs[2])).toEqual(["completed", "suggest"])
        yield* story.patch(`/agents/${agent.id}`, { executionMode: "hybrid", hybridPolicy: null })
        expect(yield* outcome(runs[3])).toEqual(["completed", "suggest"])
        yield* story.patch(`/agents/${agent.id}`, { hybridPolicy: { promotion: lenient } })
        expect(yield* outcome(runs[4])).toEqual(["completed", "execute"])
        // And a run of the present version has nothing: it has to earn it by itself.
        expect((yield* told(story, agent, "note")).decision).toBe("suggest")
      })
    )
  })

  describe("Who acts for another is trusted where all of them are", () => {
    const all = [
      [{ mode: "execute", earns: false }, { mode: "hybrid", earns: true }, "execute", "below"],
      [{ mode: "hybrid", earns: true }, { mode: "hybrid", earns: true }, "execute", "below"],
      [{ mode: "hybrid", earns: true }, { mode: "execute", earns: false }, "execute", "above"],
      [{ mode: "hybrid", earns: false }, { mode: "hybrid", earns: true }, "suggest", null],
      [{ mode: "hybrid", earns: true }, { mode: "hybrid", earns: false }, "suggest", null],
      [{ mode: "hybrid", earns: false }, { mode: "execute", earns: false }, "suggest", null],
      [{ mode: "suggest", earns: false }, { mode: "hybrid", earns: true }, "suggest", null],
      [{ mode: "hybrid", earns: true }, { mode: "suggest", earns: false }, "suggest", null]
    ] as const
    // One of each outcome in the first tier: trusted by the child, by the parent, by neither.
    const families = inTier<ReadonlyArray<(typeof all)[number]>>([all[0], all[2], all[3]], all, all)
    for (const [above, below, decision, by] of families)
      it.effect(
        `a parent in ${above.mode} mode${above.earns ? ", promoted," : ""} and a child in ${below.mode} mode${below.earns ? ", promoted" : ""}: ${decision}`,
        () =>
          Effect.gen(function* () {
            const story = yield* newStoryHere
            const found = yield* family(story, above, below)
            expect([found.above !== undefined, found.below !== undefined]).toEqual([above.earns, below.earns])
            expect(yield* handedOver(story, found.parent)).toEqual([decision, by === null ? null : found[by]])
          })
      )
  })

  describe("Refused", () => {
    it.effect.each([
      ["no reviews", { minReviews: 0, minRate: 0.9 }, "/hybridPolicy/promotion/minReviews"],
      ["too many", { minReviews: 10_001, minRate: 0.9 }, "/hybridPolicy/promotion/minReviews"],
      ["half a review", { minReviews: 1.5, minRate: 0.9 }, "/hybridPolicy/promotion/minReviews"],
      ["less than nothing", { minReviews: 1, minRate: -0.1 }, "/hybridPolicy/promotion/minRate"],
      ["more than all", { minReviews: 1, minRate: 1.1 }, "/hybridPolicy/promotion/minRate"],
      ["no rate", { minReviews: 1 }, "/hybridPolicy/promotion/minRate"],
      ["words", { minReviews: "ten", minRate: 1 }, "/hybridPolicy/promotion/minReviews"],
      ["a misspelt field", { minReviews: 1, minRate: 1, minRevews: 2 }, "/hybridPolicy/promotion/minRevews"],
      ["a number for a policy", 10, "/hybridPolicy/promotion"]
    ] as const)("a policy with %s", ([, promotion, pointer]) =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const agent = yield* story.post("/agents", earner(notes))
        const before = yield* countRows(story)
        const input = earner(notes, { name: "another", hybridPolicy: { promotion } })
        expectProblem(yield* story.ask("POST", "/agents", input), 422, pointer)
        const patched = yield* story.ask("PATCH", `/agents/${agent.id}`, { hybridPolicy: { promotion } })
        expectProblem(patched, 422, pointer)
        expect(yield* countRows(story)).toEqual(before)
      })
    )

    it.effect("a reversal of what has ended, whichever door ended it", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const { agent, promotion } = yield* promoted(story, notes, "note")
        const [task] = yield* toldOf(story)
        expect((yield* reverse(story, agent, promotion)).status).toBe(200)
        for (const [again, reason] of [
          [reverse(story, agent, promotion), "alreadyDecided"],
          [approve(story, task), "expired"],
          [reject(story, task, { reason: "Later" }), "expired"]
        ] as const) {
          const answer = yield* again
          expectProblem(answer, 409)
          expect(answer.body.reason).toBe(reason)
        }
        const other = yield* promoted(story, notes, "note", { name: "other" })
        const [told] = yield* toldOf(story)
        expect((yield* reject(story, told)).status).toBe(200)
        expectProblem(yield* reverse(story, other.agent, other.promotion), 409)
        expect((yield* earned(story, other.agent)).promotions).toMatchObject([
          { endedBy: told.resolvedBy ?? expect.any(String), note: null }
        ])
      })
    )

    it.effect("a reversal by somebody who may not review, or of what is not there", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const { agent, promotion } = yield* promoted(story, notes, "note")
        const twin = yield* story.post("/agents", earner(notes, { name: "twin" }))
        const [task] = yield* toldOf(story)
        for (const role of ["viewer", "editor"] as const) {
          const somebody = yield* asUser(story, role)
          expectProblem(yield* reverse(somebody, agent, promotion), 403)
          expectProblem(yield* reject(somebody, task), 403)
          expect((yield* earned(somebody, agent)).promotions).toMatchObject([{ endedAt: null }])
        }
        const elsewhere = yield* newStoryHere
        expectProblem(yield* reverse(elsewhere, agent, promotion), 404)
        expectProblem(yield* reverse(story, twin, promotion), 404)
        expectProblem(yield* reverse(story, agent, { id: nobody }), 404)
        expectProblem(yield* reverse(story, { id: nobody }, promotion), 404)
        const malformed = yield* reverse(story, agent, { id: "this" })
        expect([400, 404, 422]).toContain(malformed.status)
        expect((yield* earned(story, agent)).promotions).toMatchObject([{ endedAt: null }])
        const reviewer = yield* asUser(story, "reviewer")
        expect((yield* reverse(reviewer, agent, promotion)).body).toMatchObject({ endedBy: "reviewer" })
      })
    )

    it.effect("a reason that nobody can keep, an edit, and another promotion than was seen", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const { agent, promotion } = yield* promoted(story, notes, "note")
        const [task] = yield* toldOf(story)
        for (const reason of ["nul \u0000", "half \ud800", "x".repeat(2_001)]) {
          expectProblem(yield* reverse(story, agent, promotion, { reason }), 422, "/reason")
          expectProblem(yield* reject(story, task, { reason }), 422, "/reason")
        }
        expectProblem(yield* reverse(story, agent, promotion, { why: "?" }), 422, "/why")
        const edit = { suggestedChanges: { data: { rate: 1 } } }
        expectProblem(yield* approve(story, task, edit), 422, "/suggestedChanges")
        expect((yield* approve(story, task, { digest: "0".repeat(64) })).body.reason).toBe("digestMismatch")
        expect(yield* story.get(`/tasks/${task.id}`)).toEqual(task)
        expect((yield* told(story, agent, "note")).decision).toBe("execute")
      })
    )

    it.effect("the record of an agent, or of a version, that is not there", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const agent = yield* story.post("/agents", earner(notes))
        for (const [path, status] of [
          [`${nobody}/autonomy`, 404],
          [`${agent.id}/autonomy?version=2`, 404],
          [`${agent.id}/autonomy?version=0`, 422],
          [`${agent.id}/autonomy?version=1.5`, 422],
          [`${agent.id}/autonomy?version=2147483648`, 422],
          [`${agent.id}/autonomy?version=first`, 422]
        ] as const) {
          const answer = yield* story.ask("GET", `/agents/${path}`)
          expect([path, answer.status]).toEqual([path, status])
        }
      })
    )
  })

  describe("An agent that is not there any more", () => {
    it.effect("has earned nothing: what it had suggested is decided, and promotes nobody", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const agent = yield* story.post("/agents", earner(notes))
        yield* decideEach(story, agent, "note", ["accept"])
        const task = yield* askedBy(story, agent, "note")
        yield* story.patch(`/agents/${agent.id}`, { enabled: false })
        yield* eventually(story.get(`/agents/${agent.id}`), ({ enabled }) => !enabled)
        expect((yield* approve(story, task)).status).toBe(200)
        const before = yield* earned(story, agent, 1)
        expect([before.withoutEffect, before.promotions]).toEqual([expect.any(String), []])
        expect(before.records).toMatchObject([{ accepted: 2, rejected: 0 }])
        yield* story.delete(`/agents/${agent.id}`)
        expect((yield* story.ask("GET", `/agents/${agent.id}/autonomy`)).status).toBe(404)
      })
    )
  })
})

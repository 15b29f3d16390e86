/**
 * Webhooks: other systems trigger an agent with a signed delivery, once for each, and no more often than is taken.
 */
import { describe, expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import { deliver, keyOfToken, listener, listenerWithHook, sign } from "../testing/delivery-words.ts"
import { ask } from "../testing/owner-rows.ts"
import { eventually, type Json, type Story } from "../testing/platform.ts"
import { countRows, expectProblem } from "../testing/problem-words.ts"
import { newStoryHere, SharedServer } from "../testing/shared-server.ts"
import { endedRuns, runsOf, silentFor, watcher } from "../testing/story-words.ts"

const nowSeconds = () => Math.floor(Date.now() / 1_000)

const hooksOf = (story: Story, agent: Json) =>
  Effect.map(story.get(`/agents/${agent.id}/webhooks`), ({ items }) => items)

layer(SharedServer.layer, { excludeTestServices: true })((it) => {
  describe("Requirement: A webhook triggers an agent", () => {
    it.effect("a signed delivery is answered at once with its run, and its body is the run's input", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const { agent, hook } = yield* listenerWithHook(story, { name: "shop" })
        expect(hook.url).toBe(`${story.url}/api/hooks/${hook.id}`)
        const answer = yield* deliver(story, hook, '{"order": 7,  "note": "é🦊"}', { id: "order-7" })
        expect(answer).toMatchObject({ status: 202, body: { repeated: false } })
        const [run] = yield* endedRuns(story, agent, 1)
        expect(run).toMatchObject({
          id: answer.body.runId,
          status: "completed",
          trigger: {
            type: "webhook",
            input: { order: 7, note: "é🦊" },
            delivery: { webhookId: hook.id, id: "order-7" }
          }
        })
        expect(run.summary).toContain('"order":7')
        expect(yield* hooksOf(story, agent)).toMatchObject([
          { id: hook.id, lastDeliveryAt: expect.any(String) }
        ])
      })
    )

    it.effect("S002-R41 a delivery of text is the run's input as it is, and one of neither is refused", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const { agent, hook } = yield* listenerWithHook(story)
        const contentType = "text/plain; charset=utf-8"
        expect((yield* deliver(story, hook, "{Order é", { contentType })).status).toBe(202)
        const [run] = yield* endedRuns(story, agent, 1)
        expect(run.trigger).toMatchObject({ input: "{Order é" })
        expectProblem(yield* deliver(story, hook, "a=1", { id: "form", contentType: "text/html" }), 400)
      })
    )

    it.effect("an empty body is a trigger without input", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const { agent, hook } = yield* listenerWithHook(story)
        expect((yield* deliver(story, hook, "")).status).toBe(202)
        const [run] = yield* endedRuns(story, agent, 1)
        expect(run.trigger).not.toHaveProperty("input")
      })
    )

    it.effect("only an agent whose trigger is webhook gets one, and no more than it may have", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const other = yield* story.post("/agents", watcher())
        const refused = yield* story.ask("POST", `/agents/${other.id}/webhooks`, {})
        expectProblem(refused, 409)
        expect(refused.body.detail).toContain("triggerType")
        const agent = yield* story.post("/agents", listener())
        const path = `/agents/${agent.id}/webhooks`
        const answers = yield* Effect.all(
          Array.from({ length: 24 }, () => story.ask("POST", path, {})),
          { concurrency: "unbounded" }
        )
        expect(answers.filter(({ status }) => status === 201)).toHaveLength(20)
        for (const { status } of answers) expect([201, 409]).toContain(status)
        for (const wrong of [{ ratePerMinute: 0 }, { ratePerMinute: 1.5 }, { name: "" }, { nme: "x" }])
          expectProblem(yield* story.ask("POST", path, wrong), 422, `/${Object.keys(wrong)[0]}`)
      })
    )
  })

  describe("Requirement: The token is shown once and kept as a hash", () => {
    it.effect("no list and no row holds it; the hash alone is the signing key", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const { agent, hook } = yield* listenerWithHook(story)
        expect(hook.token).toMatch(/^[0-9a-f]{64}$/)
        expect(hook.signingSecret).toBe(`whsec_${keyOfToken(hook.token).toString("base64")}`)
        const [listed] = yield* hooksOf(story, agent)
        const { token, signingSecret: _secret, ...rest } = hook
        expect(listed).toEqual(rest)
        const rows = JSON.stringify(
          yield* ask(story.access, "select row_to_json(h) from kb.webhooks h where id = $1", [hook.id])
        )
        expect(rows).not.toContain(token)
        expect(rows).toContain(keyOfToken(token).toString("hex"))
      })
    )

    it.effect("a rotated token is another one; the old one ends at once, or after its grace", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const { agent, hook } = yield* listenerWithHook(story)
        const path = `/agents/${agent.id}/webhooks/${hook.id}/rotate`
        const second = yield* story.post(path, {})
        expect([second.id, second.url]).toEqual([hook.id, hook.url])
        expectProblem(yield* deliver(story, hook, "{}"), 401)
        expect((yield* deliver(story, second, "{}")).status).toBe(202)

        const third = yield* story.post(path, { graceSeconds: 3_600 })
        expect(third.previousTokenUntil > second.createdAt).toBe(true)
        expect((yield* deliver(story, second, "{}", { id: "old" })).status).toBe(202)
        expect((yield* deliver(story, third, "{}", { id: "new" })).status).toBe(202)
        // A sender that knows both signs with both.
        const timestamp = nowSeconds()
        const signature = [hook, third]
          .map(({ token }) => sign(keyOfToken(token), "both", timestamp, "{}"))
          .join(" ")
        expect((yield* deliver(story, third, "{}", { id: "both", timestamp, signature })).status).toBe(202)
        yield* ask(story.access, "update kb.webhooks set previous_valid_until = now() where id = $1", [
          hook.id
        ])
        expectProblem(yield* deliver(story, second, "{}", { id: "late" }), 401)
        expectProblem(yield* story.ask("POST", path, { graceSeconds: -1 }), 422, "/graceSeconds")
      })
    )

    it.effect("a revoked webhook, and that of a deleted agent, is as if it had never been", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const { agent, hook } = yield* listenerWithHook(story)
        const other = yield* story.post(`/agents/${agent.id}/webhooks`, {})
        const path = `/agents/${agent.id}/webhooks/${hook.id}`
        expect((yield* story.ask("DELETE", path)).status).toBe(204)
        expectProblem(yield* story.ask("DELETE", path), 404)
        expectProblem(yield* deliver(story, hook, "{}"), 401)
        expect(yield* hooksOf(story, agent)).toMatchObject([{ id: other.id }])
        yield* story.delete(`/agents/${agent.id}`)
        expectProblem(yield* deliver(story, other, "{}"), 401)
        expectProblem(yield* story.ask("GET", `/agents/${agent.id}/webhooks`), 404)
      })
    )

    it.effect("another project's webhooks are not found, and a person needs a token", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const other = yield* newStoryHere
        const { agent, hook } = yield* listenerWithHook(story)
        const path = `/agents/${agent.id}/webhooks`
        expectProblem(yield* other.ask("GET", path), 404)
        expectProblem(yield* other.ask("POST", path, {}), 404)
        expectProblem(yield* other.ask("DELETE", `${path}/${hook.id}`), 404)
        expectProblem(yield* other.ask("POST", `${path}/${hook.id}/rotate`, {}), 404)
        const stranger = { authorization: "Bearer nobody" }
        expectProblem(yield* story.send("POST", `/api/projects/${story.projectId}${path}`, {}, stranger), 401)
        expect((yield* deliver(story, hook, "{}")).status).toBe(202)
      })
    )
  })

  describe("Requirement: Signature and timestamp are checked", () => {
    it.effect("what is not signed rightly is answered alike, whatever is wrong, and leaves nothing", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const { hook } = yield* listenerWithHook(story)
        const before = yield* countRows(story)
        const unknown = { ...hook, url: hook.url.replace(/.{12}$/, "000000000000") }
        const noUuid = { ...hook, url: `${story.url}/api/hooks/none` }
        const answers = [
          yield* deliver(story, unknown, "{}"),
          yield* deliver(story, noUuid, "{}"),
          yield* deliver(story, hook, "{}", { signature: "v1,AAAA" }),
          yield* deliver(story, hook, "{}", { signature: "v1," }),
          yield* deliver(story, hook, "{}", { signature: "nonsense" }),
          yield* deliver(story, hook, "{}", {
            secret: `whsec_${Buffer.from("another key").toString("base64")}`
          }),
          yield* deliver(story, hook, '{"amount": 1000}', { signedBody: '{"amount": 1}' }),
          yield* deliver(story, hook, "{}", { id: "with space" }),
          yield* deliver(story, hook, "{}", { id: "x".repeat(201) }),
          yield* deliver(story, hook, "{}", { timestamp: "soon" }),
          yield* story.send("POST", new URL(hook.url).pathname, {}, { authorization: "" }),
          // Whoever may do everything else may not deliver without the secret.
          yield* story.send("POST", new URL(hook.url).pathname, {})
        ]
        for (const answer of answers) {
          expectProblem(answer, 401)
          expect(answer.body).toEqual(answers[0]?.body)
        }
        expect(yield* countRows(story)).toEqual(before)
      })
    )

    it.effect("a delivery that was signed for another id or another time is refused", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const { hook } = yield* listenerWithHook(story)
        const timestamp = nowSeconds()
        const signature = sign(keyOfToken(hook.token), "one", timestamp, "{}")
        expectProblem(yield* deliver(story, hook, "{}", { id: "two", timestamp, signature }), 401)
        expectProblem(
          yield* deliver(story, hook, "{}", { id: "one", timestamp: timestamp + 1, signature }),
          401
        )
        expect((yield* deliver(story, hook, "{}", { id: "one", timestamp, signature })).status).toBe(202)
      })
    )

    it.effect(
      "a timestamp more than five minutes away is refused, and whoever signed rightly is told so",
      () =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          const { agent, hook } = yield* listenerWithHook(story)
          for (const away of [-310, 310, -86_400]) {
            const answer = yield* deliver(story, hook, "{}", { timestamp: nowSeconds() + away })
            expectProblem(answer, 401)
            expect(answer.body.detail).toContain("webhook-timestamp")
          }
          for (const [index, away] of [-290, 290].entries())
            expect(
              (yield* deliver(story, hook, "{}", { id: `near-${index}`, timestamp: nowSeconds() + away }))
                .status
            ).toBe(202)
          expect(yield* endedRuns(story, agent, 2)).toHaveLength(2)
        })
    )

    it.effect("a body that could not be kept as it was sent is refused with its place", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const { hook } = yield* listenerWithHook(story)
        expectProblem(yield* deliver(story, hook, "{oops"), 400)
        expectProblem(yield* deliver(story, hook, '{"a":"\\u0000"}'), 422, "/a")
        expectProblem(yield* deliver(story, hook, '{"a":1,"a":2}'), 422, "/a")
        expectProblem(yield* deliver(story, hook, JSON.stringify("x".repeat(1_100_000))), 413)
      })
    )
  })

  describe("Requirement: A delivery begins one run", () => {
    it.effect("the same id again is the same run, however often and however many at once", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const { agent, hook } = yield* listenerWithHook(story)
        const answers = yield* Effect.all(
          Array.from({ length: 12 }, () => deliver(story, hook, '{"a":1}', { id: "same" })),
          { concurrency: "unbounded" }
        )
        expect(new Set(answers.map(({ body }) => body.runId)).size).toBe(1)
        expect(answers.map(({ status }) => status).toSorted()).toEqual([...Array(11).fill(200), 202])
        const again = yield* deliver(story, hook, '{"a":2}', { id: "same" })
        expect(again).toMatchObject({ status: 200, body: { repeated: true, runId: answers[0]?.body.runId } })
        expect(yield* endedRuns(story, agent, 1)).toHaveLength(1)
        // The id is the sender's: another webhook may be given the same one.
        const other = yield* story.post(`/agents/${agent.id}/webhooks`, {})
        expect((yield* deliver(story, other, "{}", { id: "same" })).status).toBe(202)
      })
    )

    it.effect("old ids are forgotten with new deliveries", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const { hook } = yield* listenerWithHook(story)
        for (const id of ["old", "young"]) yield* deliver(story, hook, "{}", { id })
        yield* ask(
          story.access,
          "update kb.webhook_deliveries set received_at = now() - interval '31 days' where webhook_id = $1 and delivery_id = 'old'",
          [hook.id]
        )
        yield* deliver(story, hook, "{}", { id: "new" })
        const kept = yield* ask(
          story.access,
          "select delivery_id from kb.webhook_deliveries where webhook_id = $1 order by 1",
          [hook.id]
        )
        expect(kept).toEqual([["new"], ["young"]])
      })
    )
  })

  describe("Requirement: Deliveries are rate-limited, and every refusal has its reason", () => {
    it.effect("beyond the rate: 429 with the time to wait; a repeated id needs no place", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const { agent, hook } = yield* listenerWithHook(story, { ratePerMinute: 3 })
        const answers = yield* Effect.all(
          Array.from({ length: 8 }, (_, index) => deliver(story, hook, "{}", { id: `m${index}` })),
          { concurrency: "unbounded" }
        )
        expect(answers.filter(({ status }) => status === 202)).toHaveLength(3)
        const refused = answers.filter(({ status }) => status === 429)
        expect(refused).toHaveLength(5)
        for (const answer of refused) {
          expectProblem(answer, 429)
          expect(answer.body).toMatchObject({ reason: "rate" })
          expect(answer.body.detail).toMatch(/\b3\b/)
          expect(answer.headers.get("retry-after")).toBe(String(answer.body.retryAfterSeconds))
          expect(answer.body.retryAfterSeconds).toBeGreaterThan(0)
          expect(answer.body.retryAfterSeconds).toBeLessThanOrEqual(20)
        }
        const taken = answers.findIndex(({ status }) => status === 202)
        expect((yield* deliver(story, hook, "{}", { id: `m${taken}` })).status).toBe(200)
        // Twenty seconds later there is room for one more, and for the same id that was refused.
        yield* ask(
          story.access,
          "update kb.webhooks set tokens_counted_at = tokens_counted_at - interval '20 seconds' where id = $1",
          [hook.id]
        )
        const late = answers.findIndex(({ status }) => status === 429)
        expect((yield* deliver(story, hook, "{}", { id: `m${late}` })).status).toBe(202)
        expect((yield* deliver(story, hook, "{}", { id: "more" })).status).toBe(429)
        expect(yield* endedRuns(story, agent, 4)).toHaveLength(4)
      })
    )

    it.effect(
      "a disabled agent, another trigger, a kill switch and too many runs are told, and nothing is kept",
      () =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          const { agent, hook } = yield* listenerWithHook(
            story,
            {},
            { maxPendingRuns: 1, model: silentFor(600_000) }
          )
          const path = `/agents/${agent.id}`
          const refused = function* (status: number, reason: string) {
            const answer = yield* deliver(story, hook, "{}", { id: "one" })
            expectProblem(answer, status)
            expect(answer.body.reason).toBe(reason)
          }
          yield* story.patch(path, { enabled: false })
          yield* refused(409, "agentDisabled")
          yield* story.patch(path, { enabled: true, triggerType: "manual" })
          yield* refused(409, "state")
          yield* story.patch(path, { triggerType: "webhook" })
          yield* story.ask("PUT", "/kill-switch", { stopped: true, reason: "Look first." })
          yield* refused(409, "stopped")
          yield* story.ask("PUT", "/kill-switch", { stopped: false })
          expect(yield* runsOf(story, agent)).toEqual([])
          // The same id was refused four times and is new still.
          expect((yield* deliver(story, hook, "{}", { id: "one" })).status).toBe(202)
          yield* eventually(runsOf(story, agent), ([run]) => run?.status === "running")
          const full = yield* deliver(story, hook, "{}", { id: "two" })
          expectProblem(full, 429)
          expect(full.body.reason).toBe("pendingRuns")
        })
    )
  })

  describe("Requirement: The manual trigger", () => {
    it.effect("any agent may be triggered by hand, whatever else wakes it", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const kinds = [
          watcher({ name: "reaction" }),
          watcher({ name: "manual", triggerType: "manual", reactionConfig: null }),
          watcher({
            name: "clock",
            triggerType: "schedule",
            cronSchedule: "0 0 1 1 *",
            reactionConfig: null
          }),
          listener({ name: "hook" })
        ]
        for (const kind of kinds) {
          const agent = yield* story.post("/agents", kind)
          const run = yield* story.post(`/agents/${agent.id}/trigger`, { input: { by: "hand" } })
          expect(run).toMatchObject({
            status: "completed",
            trigger: { type: "manual", input: { by: "hand" } }
          })
        }
      })
    )
  })
})

/**
 * `tropism autonomy`: a table of reviews and promotions, and the way back.
 */
import { describe, expect, it } from "@effect/vitest"
import { PromotionId, UserId } from "@tropism/domain/ids"
import type { Autonomy, Promotion } from "@tropism/domain/autonomy"
import { Effect } from "effect"
import { fakeServer } from "../../testing/fake-server.ts"
import { invoke } from "../../testing/invoke.ts"
import { agent, at, id } from "../../testing/records.ts"

const earner = agent(1, { name: "earner" })

const promotion: Promotion = {
  id: PromotionId.make("00000000-0000-7000-8009-000000000001"),
  agentId: earner.id,
  agentVersion: 1,
  operation: "create",
  objectType: "Note",
  reviews: 10,
  acceptanceRate: 0.9,
  taskId: id("task", 7),
  promotedAt: at(0),
  endedAt: null,
  endReason: null,
  endedBy: null,
  note: null
}

const earned: Autonomy = {
  agentId: earner.id,
  agentVersion: 1,
  withoutEffect: null,
  records: [
    {
      agentId: earner.id,
      agentVersion: 1,
      operation: "create",
      objectType: "Note",
      accepted: 19,
      edited: 1,
      rejected: 0,
      expired: 2,
      reverted: 1,
      acceptanceRate: 0.95,
      counting: { reviews: 10, acceptanceRate: 0.9 },
      promotionId: promotion.id
    }
  ],
  promotions: [
    promotion,
    {
      ...promotion,
      endedAt: at(1),
      endReason: "reversed",
      endedBy: UserId.make("ada"),
      note: "Not \u001b[31myet"
    }
  ],
  truncated: false
}

const base = `/api/projects/${id("project", 1)}/agents/${earner.id}`

const answering = (path: string, body: unknown, status = 200) =>
  fakeServer({ agents: [earner], failing: new Map([[`${base}${path}`, { status, body }]]) })

describe("tropism autonomy", () => {
  it.live("shows each kind of work with its reviews, and every promotion with its end", () =>
    Effect.gen(function* () {
      const server = yield* answering("/autonomy", earned)
      const { exitCode, out } = yield* invoke(server, "autonomy", "earner")
      const output = out.join("\n")
      expect(exitCode).toBe(0)
      expect(output).toMatch(/create +Note +19 +1 +0 +2 +1 +95 % +10 \D*90 % /)
      const [live, ended] = out.filter((line) => /create Note +10 +90 % /.test(line))
      expect(live).not.toContain("ada")
      expect(ended).toMatch(/\breversed\b.*\bada\b.*Not .*yet/)
      expect(output).not.toContain("\u001b[31m")
    })
  )

  it.live("answers the server's own words with --json", () =>
    Effect.gen(function* () {
      const server = yield* answering("/autonomy", earned)
      const { out } = yield* invoke(server, "autonomy", "earner", "--json")
      expect(JSON.parse(out.join("\n"))).toEqual(earned)
    })
  )

  it.live("says why promotions have no effect, and when nobody reviewed anything", () =>
    Effect.gen(function* () {
      const idle = yield* answering("/autonomy", { ...earned, withoutEffect: "Out of order" })
      expect((yield* invoke(idle, "autonomy", "earner")).out).toContain("Out of order")
      const nothing = yield* answering("/autonomy", { ...earned, records: [], promotions: [] })
      expect((yield* invoke(nothing, "autonomy", "earner")).out).toEqual([
        expect.stringMatching(/\b1\b.*\bearner\b/)
      ])
    })
  )

  it.live("takes a promotion back with a reason, and says what it is told", () =>
    Effect.gen(function* () {
      const ended: Promotion = { ...promotion, endedAt: at(1), endReason: "reversed", note: "Too early" }
      const path = `/promotions/${promotion.id}/reverse`
      const server = yield* answering(path, ended)
      const words = ["autonomy", "earner", "--reverse", promotion.id, "--reason", "Too early"]
      expect((yield* invoke(server, ...words)).out).toEqual([
        expect.stringMatching(/\bearner\b.*\bcreate Note\b/)
      ])
      const { body } = server.requests.find(({ line }) => line.startsWith("POST")) ?? { body: "" }
      expect(JSON.parse(body)).toEqual({ reason: "Too early" })
      const wrong = yield* invoke(server, "autonomy", "earner", "--reverse", "this")
      expect([wrong.exitCode, wrong.error]).toEqual([
        2,
        expect.stringMatching(/"this".*"tropism autonomy earner"/)
      ])
    })
  )
})

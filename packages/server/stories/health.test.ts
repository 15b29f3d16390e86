/**
 * How a project fares: one verdict that each fault changes, with the next step that mends it.
 */
import { describe, expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import { addServer, newDiary, program } from "../testing/mcp-words.ts"
import { ask } from "../testing/owner-rows.ts"
import { eventually, type Json, type Story } from "../testing/platform.ts"
import { expectProblem } from "../testing/problem-words.ts"
import { newStoryHere, SharedServer } from "../testing/shared-server.ts"
import { endedRuns, make, saying, silentFor, watcher } from "../testing/story-words.ts"
import { asUser } from "../testing/token-words.ts"
import { naming } from "../testing/naming.ts"

const health = (story: Story): Effect.Effect<Json> => story.get("/health")

/** What the health comes to, once nothing is on the way any more. */
const healthWhen = (story: Story, state: string) => eventually(health(story), (seen) => seen.state === state)

const checksOf = ({ findings }: Json, state: string): ReadonlyArray<string> =>
  findings.filter((one: Json) => one.state === state).map((one: Json) => one.check)

const manual = (overrides: Record<string, unknown>) =>
  watcher({ triggerType: "manual", reactionConfig: null, ...overrides })

/** An admin of another project. */
const strangerOf = (story: Story) => asUser(story, "admin", [story.projectId], "mallory")

const unreachable = { provider: "anthropic", name: "none" }

layer(SharedServer.layer, { excludeTestServices: true })((it) => {
  describe("The health of a project", () => {
    it.effect(
      "of a fresh one is well and says why, to everybody who sees the project and to nobody else",
      () =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          const fresh = yield* health(story)
          expect(fresh).toMatchObject({
            state: "ok",
            verdict: expect.any(String),
            nextStep: null
          })
          expect(new Set(fresh.findings.map((one: Json) => one.part))).toEqual(
            new Set(["flow", "execution", "liveness"])
          )
          for (const one of fresh.findings)
            expect(one).toMatchObject({ state: "ok", fix: null, remedy: null })
          const viewer = yield* asUser(story, "viewer", [story.projectId])
          expect(yield* health(viewer)).toEqual(fresh)
          const elsewhere = yield* strangerOf(yield* newStoryHere)
          expectProblem(yield* elsewhere.send("GET", `/api/projects/${story.projectId}/health`), 404)
        })
    )

    it.effect("tells an agent whose model has no key before its first run, and that it has another one", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const agent = yield* story.post("/agents", manual({ name: "tidy", model: unreachable }))
        const ill = yield* health(story)
        expect(ill).toMatchObject({
          state: "fault",
          verdict: expect.stringContaining("tidy"),
          nextStep: {
            part: "liveness",
            check: "model",
            said: expect.stringContaining("ANTHROPIC_API_KEY"),
            subject: { type: "agent", id: agent.id, name: "tidy" }
          }
        })
        expect(ill.findings[0]).toEqual(ill.nextStep)
        yield* story.patch(`/agents/${agent.id}`, { model: saying("Done.") })
        expect(yield* health(story)).toMatchObject({ state: "ok", nextStep: null })
      })
    )

    it.effect(
      "tells an agent that failed K times, until it is enabled again, and what it could not handle",
      () =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          const agent = yield* story.post(
            "/agents",
            watcher({ name: "weak", model: unreachable, disableAfterFailures: 4 })
          )
          for (const count of [1, 2, 3]) {
            yield* make(story, "Person")
            yield* endedRuns(story, agent, count)
          }
          expect((yield* health(story)).findings).toContainEqual(
            expect.objectContaining({
              part: "execution",
              state: "warn",
              detail: naming("weak", 3, 4),
              subject: { type: "agent", id: agent.id, name: "weak" }
            })
          )
          yield* make(story, "Person")
          yield* endedRuns(story, agent, 4)
          const gone = yield* health(story)
          expect(gone).toMatchObject({
            verdict: naming("weak", 1),
            nextStep: {
              check: "agent",
              said: expect.stringMatching(/\b4\b/),
              fix: "tropism agents enable weak"
            }
          })
          yield* story.patch(`/agents/${agent.id}`, { enabled: true, model: saying("Done.") })
          const mended = yield* health(story)
          expect(mended).toMatchObject({
            state: "warn",
            verdict: naming(4, "weak"),
            nextStep: { check: "dead letters", subject: { type: "deadLetters", id: agent.id } }
          })
          yield* story.post(`/agents/${agent.id}/dead-letters/redrive`)
          expect(checksOf(yield* healthWhen(story, "ok"), "ok")).toContain("dead letters")
        })
    )

    it.effect("tells a foreign server that does not answer, until it is tested again and does", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const missing = yield* addServer(story, { type: "stdio", command: "/nowhere/at-all" })
        expect(yield* health(story)).toMatchObject({
          state: "fault",
          verdict: expect.stringContaining("shop"),
          nextStep: {
            said: missing.lastError,
            fix: "tropism mcp-servers refresh shop",
            subject: { type: "mcpServer", id: missing.id, name: "shop" }
          }
        })
        const path = `/mcp-servers/${missing.id}`
        yield* story.patch(path, { enabled: false })
        expect(yield* health(story)).toMatchObject({ state: "ok" })
        yield* story.patch(path, { enabled: true, transport: program(yield* newDiary) })
        expect(checksOf(yield* health(story), "ok")).toContain("MCP server")
        yield* ask(
          story.access,
          `update kb.mcp_servers set tools = jsonb_set(tools, '{0,changedAt}', '"2026-01-01T00:00:00.000Z"') where id = $1`,
          [missing.id]
        )
        expect(yield* health(story)).toMatchObject({
          state: "warn",
          verdict: naming(1, "shop")
        })
        yield* story.post(`${path}/refresh`)
        expect(yield* health(story)).toMatchObject({ state: "ok" })
      })
    )

    it.effect("tells a kill switch and why it is on, and counts what is at work and what waits", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const agent = yield* story.post("/agents", manual({ name: "slow", model: silentFor(600_000) }))
        const { id } = yield* story.post(`/agents/${agent.id}/trigger?wait=false`)
        yield* eventually(health(story), ({ findings }) =>
          findings.some((one: Json) => /\b1\b.*\b0\b/.test(one.detail))
        )
        const stop = { stopped: true, reason: "Wrong deletions" }
        yield* story.send("PUT", `/api/projects/${story.projectId}/kill-switch`, stop)
        expect(yield* health(story)).toMatchObject({
          state: "warn",
          verdict: expect.any(String),
          nextStep: { said: "Wrong deletions", fix: "tropism kill-switch off" }
        })
        yield* story.post(`/runs/${id}/cancel`)
        yield* story.send("PUT", `/api/projects/${story.projectId}/kill-switch`, { stopped: false })
        expect(yield* health(story)).toMatchObject({ state: "ok" })
      })
    )
  })
})

/**
 * An agent's versions: who changed what and when, what lies between two, and the way back.
 */
import { describe, expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import type { Story } from "../testing/platform.ts"
import { expectProblem } from "../testing/problem-words.ts"
import { newStoryHere, SharedServer } from "../testing/shared-server.ts"
import { endedRuns, saying, watcher } from "../testing/story-words.ts"

const changesOf = (diff: { readonly changes: ReadonlyArray<{ readonly pointer: string }> }) =>
  Object.fromEntries(diff.changes.map(({ pointer, ...values }) => [pointer, values]))

const send = (story: Story, method: string, path: string, body: unknown, headers: Record<string, string>) =>
  story.send(method, `/api/projects/${story.projectId}${path}`, body, headers)

/** An agent with three versions: another prompt and other tools, then a filter. */
const threeVersions = Effect.gen(function* () {
  const story = yield* newStoryHere
  const agent = yield* story.post("/agents", watcher({ prompt: "One." }))
  const path = `/agents/${agent.id}`
  yield* story.patch(path, { prompt: "Two.", tools: ["graph.get_object"] })
  const { reactionConfig } = agent
  yield* story.patch(path, {
    reactionConfig: { ...reactionConfig, where: { changedProperties: ["age"] } }
  })
  return { story, agent, path }
})

layer(SharedServer.layer, { excludeTestServices: true })((it) => {
  describe("Requirement: Agents are versioned, with diff", () => {
    it.effect("the list says who made each version, when, and which fields it changed", () =>
      Effect.gen(function* () {
        const { story, path } = yield* threeVersions
        const { items } = yield* story.get(`${path}/versions`)
        expect(items).toEqual([
          {
            version: 3,
            createdBy: "admin",
            createdAt: expect.any(String),
            restoredFrom: null,
            changed: ["/reactionConfig/where"]
          },
          expect.objectContaining({ version: 2, changed: ["/prompt", "/tools"] }),
          expect.objectContaining({ version: 1, changed: [] })
        ])
        const first = yield* story.get(`${path}/versions?limit=2`)
        expect(first.items).toEqual(items.slice(0, 2))
        const second = yield* story.get(`${path}/versions?limit=2&cursor=${first.nextCursor}`)
        expect(second).toEqual({ items: items.slice(2), nextCursor: null })
      })
    )

    it.effect("a save that changes nothing makes no version", () =>
      Effect.gen(function* () {
        const { story, path } = yield* threeVersions
        expect(yield* story.patch(path, { prompt: "Two.", role: null })).toMatchObject({ version: 3 })
        expect((yield* story.get(`${path}/versions`)).items).toHaveLength(3)
      })
    )

    it.effect("a version is told whole, and with what lies between it and any other", () =>
      Effect.gen(function* () {
        const { story, agent, path } = yield* threeVersions
        const second = yield* story.get(`${path}/versions/2`)
        expect(second).toMatchObject({
          agentId: agent.id,
          version: 2,
          createdBy: "admin",
          definition: { name: "watcher", prompt: "Two.", reactionConfig: { where: null } }
        })
        const step = yield* story.get(`${path}/versions/2/diff`)
        expect(step).toMatchObject({ agentId: agent.id, from: 1, to: 2 })
        expect(changesOf(step)).toEqual({
          "/prompt": { before: "One.", after: "Two." },
          "/tools": { before: ["graph.*"], after: ["graph.get_object"] }
        })
        const all = yield* story.get(`${path}/versions/3/diff?from=1`)
        expect(Object.keys(changesOf(all))).toEqual(["/prompt", "/tools", "/reactionConfig/where"])
        expect(changesOf(all)["/reactionConfig/where"]).toEqual({
          before: null,
          after: { changedProperties: ["age"] }
        })
        const back = yield* story.get(`${path}/versions/1/diff?from=2`)
        expect(changesOf(back)["/prompt"]).toEqual({ before: "Two.", after: "One." })
        const birth = yield* story.get(`${path}/versions/1/diff`)
        expect(birth.from).toBeNull()
        expect(changesOf(birth)["/prompt"]).toEqual({ after: "One." })
      })
    )

    it.effect("going back makes a new version that says where it came from; runs keep theirs", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const agent = yield* story.post("/agents", watcher({ triggerType: "manual", model: saying("Old.") }))
        const path = `/agents/${agent.id}`
        yield* story.post(`${path}/trigger`, {})
        yield* story.patch(path, { model: saying("New.") })
        yield* story.post(`${path}/trigger`, {})
        const restored = yield* story.post(`${path}/versions/1/restore`)
        expect(restored).toMatchObject({ version: 3, model: agent.model })
        yield* story.post(`${path}/trigger`, {})
        const runs = yield* endedRuns(story, agent, 3)
        expect(runs.map((run) => [run.agentVersion, run.summary])).toEqual([
          [1, "Old."],
          [2, "New."],
          [3, "Old."]
        ])
        expect((yield* story.get(`${path}/versions`)).items[0]).toMatchObject({ version: 3, restoredFrom: 1 })
        expect((yield* story.get(`${path}/versions/3/diff?from=1`)).changes).toEqual([])
        // What is so already is not made again.
        expect(yield* story.post(`${path}/versions/1/restore`)).toMatchObject({ version: 3 })
      })
    )

    it.effect("of two editors who read the same version the later is told so, by PATCH and going back", () =>
      Effect.gen(function* () {
        const { story, path } = yield* threeVersions
        const restore = `${path}/versions/1/restore`
        const before = yield* story.ask("GET", path)
        expect(before.headers.get("etag")).toBe('"3"')
        const [one, other] = yield* Effect.forEach(
          ["Mine.", "No, mine."],
          (prompt) => story.ask("PATCH", path, { prompt, expectedVersion: 3 }),
          { concurrency: 2 }
        )
        expect([one?.status, other?.status].toSorted()).toEqual([200, 409])
        const kept = yield* story.get(path)
        const late = yield* story.ask("PATCH", path, { prompt: "Late.", expectedVersion: 3 })
        expectProblem(late, 409)
        expect(late.body).toMatchObject({ reason: "version", detail: expect.stringMatching(/\b4\b/) })
        for (const stale of [
          yield* send(story, "PATCH", path, { prompt: kept.prompt }, { "if-match": '"3"' }),
          yield* send(story, "POST", restore, undefined, { "if-match": '"3"' }),
          yield* send(story, "DELETE", path, undefined, { "if-match": '"3"' })
        ]) {
          expectProblem(stale, 412)
          expect(stale.body.detail).toBe(late.body.detail)
        }
        expect(yield* story.get(path)).toEqual(kept)
        expectProblem(yield* send(story, "POST", restore, undefined, { "if-match": "one" }), 422, "if-match")
        const back = yield* send(story, "POST", restore, undefined, { "if-match": '"4"' })
        expect([back.status, back.headers.get("etag")]).toEqual([200, '"5"'])
        expect(yield* story.patch(path, { prompt: "Unasked." })).toMatchObject({ version: 6 })
      })
    )

    it.effect("the versions of a deleted agent stay readable, since its runs name them", () =>
      Effect.gen(function* () {
        const { story, agent, path } = yield* threeVersions
        const paths = ["versions", "versions/2", "versions/3/diff?from=1"].map((rest) => `${path}/${rest}`)
        const before = yield* Effect.forEach(paths, (one) => story.get(one))
        expect((yield* story.delete(path)).status).toBe(204)
        expect(yield* Effect.forEach(paths, (one) => story.get(one))).toEqual(before)
        expectProblem(yield* story.ask("POST", `${path}/versions/1/restore`), 404)
        const nobody = agent.id.replace(/.{12}$/, "000000000000")
        expectProblem(yield* story.ask("GET", `/agents/${nobody}/versions`), 404)
      })
    )

    it.effect("going back throws no switch: a disabled agent stays disabled", () =>
      Effect.gen(function* () {
        const { story, path } = yield* threeVersions
        yield* story.patch(path, { enabled: false })
        expect(yield* story.post(`${path}/versions/1/restore`)).toMatchObject({
          prompt: "One.",
          enabled: false,
          version: 5
        })
      })
    )

    it.effect("a version that would not be taken today is refused with its reason", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const agent = yield* story.post("/agents", watcher({ name: "first" }))
        yield* story.patch(`/agents/${agent.id}`, { name: "renamed" })
        yield* story.post("/agents", watcher({ name: "first" }))
        const answer = yield* story.ask("POST", `/agents/${agent.id}/versions/1/restore`)
        expectProblem(answer, 409)
        expect(answer.body.reason).toBe("nameTaken")
        expect(yield* story.get(`/agents/${agent.id}`)).toMatchObject({ version: 2, name: "renamed" })
      })
    )

    it.effect("what there is not is not found, and another project's neither", () =>
      Effect.gen(function* () {
        const { story, path } = yield* threeVersions
        const other = yield* newStoryHere
        for (const wrong of [
          "/versions/4",
          "/versions/0",
          "/versions/x",
          "/versions/1.5",
          "/versions/4/diff"
        ])
          expectProblem(yield* story.ask("GET", `${path}${wrong}`), 404)
        expectProblem(yield* story.ask("GET", `${path}/versions/2/diff?from=9`), 404)
        expectProblem(yield* story.ask("GET", `${path}/versions/2/diff?from=x`), 422)
        for (const address of ["/versions", "/versions/1", "/versions/1/diff"])
          expectProblem(yield* other.ask("GET", `${path}${address}`), 404)
        expectProblem(yield* other.ask("POST", `${path}/versions/1/restore`), 404)
        expectProblem(yield* story.ask("POST", `${path}/versions/9/restore`), 404)
      })
    )
  })
})

/**
 * Servers that hear one source, and die around its questions: nothing that it told is lost, nothing is twice.
 */
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import type { CrashPointName } from "../src/crash-point.ts"
import { freshDatabase } from "../testing/fresh-database.ts"
import { eventSource } from "../testing/mcp-event-source.ts"
import { startMortal } from "../testing/mortal-servers.ts"
import { ask } from "../testing/owner-rows.ts"
import { eventually, newProject, startServer, storyIn } from "../testing/platform.ts"
import { addSource, askNow, idsOf, listener, listening } from "../testing/source-words.ts"
import { endedRuns, entriesOf } from "../testing/story-words.ts"

const points: ReadonlyArray<CrashPointName> = [
  "source.afterClaim",
  "source.beforeKeep",
  "source.beforeCommit",
  "source.afterCommit"
]

describe("A server that is killed while it asks a foreign server", () => {
  it.live("leaves the question to another, which goes on from the cursor", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const access = yield* freshDatabase
        const source = yield* eventSource()
        let server = yield* startMortal(access)
        const made = yield* newProject(server, access)
        yield* addSource(made, source.url)
        const agent = yield* made.post("/agents", listener())
        yield* listening(made)
        for (const [index, point] of points.entries()) {
          yield* server.dieAt(point, 1)
          source.happen(`${index}a`, `${index}b`)
          yield* askNow(made)
          yield* server.died
          // Its claim has run out: nobody waits a minute and a half in a story.
          yield* ask(
            access,
            "update kb.mcp_event_sources set claimed_until = now() - interval '1 second', due_at = now()"
          )
          server = yield* startMortal(access)
        }
        const story = storyIn(server, access, made.projectId)
        const runs = yield* endedRuns(story, agent, 8)
        expect(idsOf(runs).toSorted()).toEqual(["0a", "0b", "1a", "1b", "2a", "2b", "3a", "3b"])
        expect(runs.every(({ status }) => status === "completed")).toBe(true)
        expect(yield* entriesOf(story, agent)).toHaveLength(8)
      })
    )
  )

  it.live("two servers tell each occurrence once, also where one was thought dead and was only slow", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const access = yield* freshDatabase
        const source = yield* eventSource()
        const [one, other] = [yield* startServer(access), yield* startServer(access)]
        const made = yield* newProject(one, access)
        yield* addSource(made, source.url)
        const agent = yield* made.post("/agents", listener())
        yield* listening(made)
        // The first question is held until the second, of the same cursor, is answered.
        let release: () => void = () => undefined
        const held = new Promise<void>((resolve) => {
          release = resolve
        })
        let questions = 0
        source.lie((params, truly) => {
          questions += 1
          const answer = truly(params)
          if (questions === 1) return held.then(() => answer)
          release()
          return answer
        })
        source.happen("1", "2")
        yield* askNow(made)
        yield* eventually(
          Effect.sync(() => questions),
          (count) => count === 1
        )
        yield* ask(access, "update kb.mcp_event_sources set claimed_until = now() - interval '1 second'")
        const story = storyIn(other, access, made.projectId)
        expect(idsOf(yield* endedRuns(story, agent, 2)).toSorted()).toEqual(["1", "2"])
        source.lie(undefined)
        for (const id of ["3", "4", "5"]) {
          source.happen(id)
          yield* askNow(made)
        }
        expect(idsOf(yield* endedRuns(story, agent, 5)).toSorted()).toEqual(["1", "2", "3", "4", "5"])
        const [row] = yield* ask(
          access,
          "select count(*)::int, count(distinct event_id)::int from kb.mcp_occurrences"
        )
        expect(row).toEqual([5, 5])
      })
    )
  )
})

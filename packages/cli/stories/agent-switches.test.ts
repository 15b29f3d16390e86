/**
 * Agents enabled and disabled by the command line, by name or all of them.
 */
import { NodeServices } from "@effect/platform-node"
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { type Json, newStory } from "../../server/testing/platform.ts"
import { endedRuns, feedOf, make, runsOf, watcher } from "../../server/testing/story-words.ts"
import { invokeWith } from "../testing/invoke.ts"

describe("Requirement: tropism agents enable and disable", () => {
  it.live("stop agents from being woken and let them be woken again, some by name or all of them", () =>
    Effect.gen(function* () {
      const story = yield* newStory
      const tropism = (...args: ReadonlyArray<string>) =>
        invokeWith({ TROPISM_TOKEN: story.token }, "agents", ...args, "--url", story.url)
      const [one, other] = [
        yield* story.post("/agents", watcher({ name: "one" })),
        yield* story.post("/agents", watcher({ name: "other" }))
      ]
      const enabled = Effect.map(story.get("/agents"), ({ items }): ReadonlyArray<string> =>
        items
          .filter((agent: Json) => agent.enabled)
          .map(({ name }: Json) => name)
          .toSorted()
      )

      expect(yield* tropism("disable", "one", other.id)).toEqual({
        exitCode: 0,
        out: [expect.stringMatching(/\bone\b.*\b2\b/), expect.stringMatching(/\bother\b.*\b2\b/)],
        error: ""
      })
      yield* make(story, "Person")
      yield* feedOf(story, 1)
      expect(yield* enabled).toEqual(["TodoAssistant"])

      // Only what they are woken by from now on; one that is so already gets no version more.
      expect((yield* tropism("enable", "one", "one")).out).toEqual([expect.stringMatching(/\bone\b.*\b3\b/)])
      expect((yield* tropism("enable", "one")).out).toEqual([expect.stringMatching(/\bone\b(?!.*\d)/)])
      expect((yield* story.get(`/agents/${one.id}`)).version).toBe(3)
      yield* make(story, "Person")
      yield* endedRuns(story, one, 1)
      expect(yield* runsOf(story, other)).toEqual([])

      // One that is not there does not keep the others from it.
      const partly = yield* tropism("enable", "nobody", "other", "--json")
      expect(partly.exitCode).toBe(1)
      expect(JSON.parse(partly.out.join("\n"))).toMatchObject([{ name: "other", enabled: true }])
      expect(JSON.parse(partly.error)).toMatchObject({
        error: { exitCode: 1, message: expect.stringContaining('"nobody"') }
      })

      expect((yield* tropism("disable", "--all")).out).toHaveLength(3)
      expect(yield* enabled).toEqual([])
      expect((yield* tropism("disable", "--all", "--json")).out).toEqual(["[]"])
      expect((yield* tropism("enable", "--all")).out).toHaveLength(3)
      expect(yield* enabled).toEqual(["TodoAssistant", "one", "other"])

      for (const wrong of [["enable"], ["disable", "--all", "one"]])
        expect(yield* tropism(...wrong)).toEqual({
          exitCode: 2,
          out: [],
          error: expect.stringContaining("--all")
        })
    }).pipe(Effect.provide(NodeServices.layer))
  )
})

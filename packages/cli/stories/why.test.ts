/**
 * `tropism why` on a real server: from a value back to the root event, whatever keys and properties are called.
 */
import { NodeServices } from "@effect/platform-node"
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { freshDatabase } from "../../server/testing/fresh-database.ts"
import { newProject, startServer } from "../../server/testing/platform.ts"
import { approve } from "../../server/testing/suggestion-words.ts"
import { calling, endedRuns, feedOf, suggestionsOf, watcher } from "../../server/testing/story-words.ts"
import { invokeWith } from "../testing/invoke.ts"

/** A server with an empty project, and the question. */
const scene = Effect.gen(function* () {
  const access = yield* freshDatabase
  const story = yield* newProject(yield* startServer(access), access)
  return {
    story,
    why: (...args: ReadonlyArray<string>) =>
      invokeWith({ TROPISM_TOKEN: story.token }, "why", ...args, "--url", story.url)
  }
}).pipe(Effect.provide(NodeServices.layer))

describe("tropism why", () => {
  it.live("tells who set a value and why, through every agent, down to the root event", () =>
    Effect.gen(function* () {
      const { story, why } = yield* scene
      const finder = yield* story.post(
        "/agents",
        watcher({
          name: "finder",
          reactionConfig: { objectTypes: ["Lockfile"], events: ["created"] },
          model: calling({
            tool: "create_object",
            arguments: { type: "Package", key: "left-pad", properties: { size: 12 } }
          })
        })
      )
      const judge = yield* story.post(
        "/agents",
        watcher({
          name: "judge",
          executionMode: "suggest",
          reactionConfig: { objectTypes: ["Package"], events: ["created"] },
          model: calling({
            tool: "update_object",
            arguments: {
              objectId: "{{ input.object.id }}",
              properties: { license: "MIT" },
              reasoning: "Its file\u001B[2J says so.",
              confidence: 0.9
            }
          })
        })
      )
      yield* story.post("/objects", { type: "Lockfile", key: "shop" })
      const [task] = yield* suggestionsOf(story, 1)
      yield* approve(story, task)
      const [finding] = yield* endedRuns(story, finder, 1)
      const [judging] = yield* endedRuns(story, judge, 1)
      yield* feedOf(story, 3)
      const { out, exitCode } = yield* why("Package/left-pad.license")
      expect(exitCode).toBe(0)
      expect(out.map((line) => line.replace(/\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC/, "then"))).toEqual([
        expect.stringMatching(/^Package left-pad\b.*\b2$/),
        "",
        expect.stringMatching(/^license .*"MIT"$/),
        expect.stringMatching(/^ {2}\S.* 2, then, .*agent judge, .*\badmin$/),
        expect.stringMatching(/^ {2}\S.* "Its file\uFFFD\[2J says so\." .*\b90 %/),
        expect.stringMatching(/^ {2}\S.* update_object$/),
        expect.stringMatching(new RegExp(`^ {2}\\S.* ${task.number}: ${task.title}$`)),
        expect.stringMatching(/^ {2}● \S+ 3: .*agent judge .*\bv2\b/),
        expect.stringMatching(new RegExp(`^ {2}│ {3}\\S.* ${judging.id} .*judge v1, scripted:story$`)),
        expect.stringMatching(/^ {2}↑ \S+ 2: .*agent finder .*\bv1\b/),
        expect.stringMatching(new RegExp(`^ {2}│ {3}\\S.* ${finding.id} .*finder v1, scripted:story$`)),
        expect.stringMatching(/^ {2}↑ \S+ 1: .*user admin .*Lockfile shop .*\bv1\b/)
      ])
      const whole = yield* why("Package/left-pad")
      expect(whole.out.filter((line) => /^\w/.test(line)).slice(1)).toEqual([
        expect.stringMatching(/^license .*"MIT"$/),
        expect.stringMatching(/^size .*\b12$/)
      ])
      const json = yield* why("Package/left-pad.license", "--json")
      expect(JSON.parse(json.out.join("\n"))).toEqual(
        yield* story.get(`/objects/${task.target.id}/provenance?property=license`)
      )
    })
  )

  it.live("tells of a deleted object, asked for by its id, who deleted it and what it was", () =>
    Effect.gen(function* () {
      const { story, why } = yield* scene
      const thing = yield* story.post("/objects", { type: "Thing", key: "lamp", properties: { size: 1 } })
      yield* story.delete(`/objects/${thing.id}`)
      for (const reference of [thing.id, `${thing.id}.size`]) {
        const { out, exitCode } = yield* why(reference)
        expect(exitCode).toBe(0)
        expect(out[0]).toMatch(/^Thing lamp\b.*\b2$/)
        expect(out[1]).toMatch(/\d UTC\b.*user admin\b/)
        expect(out).toContainEqual(expect.stringMatching(/^size .*\b1$/))
      }
      const byKey = yield* why("Thing/lamp")
      expect(byKey.exitCode).toBe(1)
      expect(byKey.error).toMatch(/\bThing\b.*"lamp"/)
    })
  )

  it.live("tells that a person started the run where no event did", () =>
    Effect.gen(function* () {
      const { story, why } = yield* scene
      const thing = yield* story.post("/objects", { type: "Thing" })
      const agent = yield* story.post("/agents", {
        ...watcher({ name: "helper", triggerType: "manual", reactionConfig: null }),
        model: calling({
          tool: "update_object",
          arguments: { objectId: thing.id, properties: { seen: true } }
        })
      })
      yield* story.post(`/agents/${agent.id}/trigger`, {})
      const { out } = yield* why(`${thing.id}.seen`)
      expect(out.at(-1)).toMatch(/^ {2}↑ (?!.*\d).*\badmin\b/)
    })
  )

  it.live("finds keys and properties with slashes and dots, and says when it could be two", () =>
    Effect.gen(function* () {
      const { story, why } = yield* scene
      const make = (key: string, properties: Record<string, unknown>) =>
        story.post("/objects", { type: "Package", key, properties })
      const a = yield* make("shop/node_modules/a.b", { "c.d": 1, license: "MIT" })
      yield* make("v1.2", { "3": "three" })
      yield* make("v1", { "2.3": "two three" })
      yield* make("v1.2.3", { x: 1 })
      yield* make("other/a.b", {})
      const first = (answer: { readonly out: ReadonlyArray<string> }) => answer.out[2]
      expect(first(yield* why("Package/shop/node_modules/a.b.c.d"))).toMatch(/^c\.d .*\b1$/)
      expect(first(yield* why(`${a.id}.c.d`))).toMatch(/^c\.d .*\b1$/)
      expect(first(yield* why("Package/node_modules/a.b.license"))).toMatch(/^license .*"MIT"$/)
      // Only one of the two that end so has a licence.
      expect(first(yield* why("Package/a.b.license"))).toMatch(/^license .*"MIT"$/)
      const both = yield* why("Package/v1.2.3")
      expect(both.exitCode).toBe(1)
      expect(both.error).toMatch(
        /Package v1\.2\.3 \(\S+\).*"2\.3" .*Package v1 \(\S+\).*"3" .*Package v1\.2 \(\S+\).* --property\b/
      )
      expect(first(yield* why("Package/v1.2", "--property", "3"))).toMatch(/^3 .*"three"$/)
      yield* story.patch(`/objects/${a.id}`, { properties: { license: null } })
      expect(first(yield* why(`${a.id}.license`))).toMatch(/^license (?!.*"MIT")/)
    })
  )

  it.live("says what is not there", () =>
    Effect.gen(function* () {
      const { story, why } = yield* scene
      yield* story.post("/objects", { type: "Package", key: "lodash", properties: { size: 1, about: "x" } })
      const told = (...args: ReadonlyArray<string>) =>
        Effect.map(why(...args), ({ error, exitCode }) => [exitCode, error])
      expect(yield* told("Package/lodash.license")).toEqual([
        1,
        expect.stringMatching(/Package lodash .*"license".*\babout, size\b/)
      ])
      expect(yield* told("Package/nothing.at.all")).toEqual([
        1,
        expect.stringMatching(/\bPackage .*"nothing\.at\.all", "nothing" .*"nothing\.at"/)
      ])
      expect(yield* told("left-pad")).toEqual([
        1,
        expect.stringMatching(/"left-pad" .*\bPackage\/left-pad\.license\b/)
      ])
      expect((yield* told(`Package/${".".repeat(3)}${"a.".repeat(20)}b`))[1]).toContain("--property")
      expect((yield* told("00000000-0000-7000-8000-000000000000"))[0]).toBe(1)
    })
  )
})

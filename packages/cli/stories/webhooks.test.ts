/**
 * Webhooks by the command line: what it prints once is enough to deliver.
 */
import { NodeServices } from "@effect/platform-node"
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { deliver, listener } from "../../server/testing/delivery-words.ts"
import { freshDatabase } from "../../server/testing/fresh-database.ts"
import { newProject, startServer } from "../../server/testing/platform.ts"
import { endedRuns } from "../../server/testing/story-words.ts"
import { invokeWith } from "../testing/invoke.ts"

describe("Requirement: tropism webhooks", () => {
  it.live("make one, deliver to it, rotate it, list it and revoke it", () =>
    Effect.gen(function* () {
      const access = yield* freshDatabase
      const story = yield* newProject(yield* startServer(access), access)
      const tropism = (...args: ReadonlyArray<string>) =>
        invokeWith({ TROPISM_TOKEN: story.token }, "webhooks", ...args, "--url", story.url)
      const agent = yield* story.post("/agents", listener())
      expect((yield* tropism("list", "listener", "--json")).out).toEqual(["[]"])

      const made = yield* tropism("create", "listener", "--name", "shop", "--rate", "9", "--json")
      const hook = JSON.parse(made.out.join("\n"))
      expect(hook).toMatchObject({ name: "shop", ratePerMinute: 9 })
      expect((yield* deliver(story, hook, '{"order":7}')).status).toBe(202)
      yield* endedRuns(story, agent, 1)

      const rotated = yield* tropism("rotate", "listener", hook.id)
      const text = rotated.out.join("\n")
      const secret = /secret +(\S+)/.exec(text)?.[1] ?? ""
      expect((yield* deliver(story, hook, "{}", { id: "old" })).status).toBe(401)
      expect((yield* deliver(story, hook, "{}", { id: "new", secret })).status).toBe(202)

      const listed = (yield* tropism("list", "listener")).out.join("\n")
      expect(listed).toMatch(/shop +9\/min/)
      expect(listed).toContain(hook.url)
      expect(listed).not.toContain(secret)
      expect((yield* tropism("revoke", "listener", hook.id)).exitCode).toBe(0)
      expect((yield* deliver(story, hook, "{}", { id: "late", secret })).status).toBe(401)
      const twice = yield* tropism("revoke", "listener", hook.id, "--json")
      expect([twice.exitCode, JSON.parse(twice.error).error.problem.status]).toEqual([1, 404])
      expect((yield* tropism("rotate", "listener", hook.id, "--grace", "-1")).exitCode).toBe(2)
    }).pipe(Effect.provide(NodeServices.layer))
  )
})

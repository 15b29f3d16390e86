/**
 * What becomes of a command whose connection breaks once the server has done what it asks.
 */
import { NodeServices } from "@effect/platform-node"
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { cuttingProxy } from "../../client/testing/cutting-proxy.ts"
import { newStory } from "../../server/testing/platform.ts"
import { invokeWith } from "../testing/invoke.ts"

const made = { text: "HTTP/1.1 201", times: 1, isLost: true }

describe("Requirement: a command that a broken connection hides from does its work once", () => {
  it.live("asks again under one key, and prints what was made", () =>
    Effect.gen(function* () {
      const story = yield* newStory
      const proxy = yield* cuttingProxy(story.url, [made, made, made])
      const here = ["--project", story.projectId, "--url", proxy.url]
      const tropism = (...args: ReadonlyArray<string>) =>
        Effect.map(
          invokeWith({ TROPISM_TOKEN: story.token }, ...args, "--json", ...here),
          ({ error, exitCode, out }) => {
            expect([error, exitCode]).toEqual(["", 0])
            return JSON.parse(out.join("\n"))
          }
        )
      const shop = yield* tropism("projects", "create", "Shop")
      const todo = yield* tropism("tasks", "add", "Buy milk")
      const key = yield* tropism("token", "create", "watcher", "--server")
      expect(proxy.left()).toEqual([])

      const projects = yield* tropism("projects")
      expect(projects.filter(({ name }: { name: string }) => name === "Shop")).toEqual([shop])
      expect((yield* story.get("/tasks?type=todo")).items).toMatchObject([{ id: todo.id }])
      expect(yield* tropism("token", "--server")).toMatchObject([{ id: key.id }])
      const other = yield* invokeWith({ TROPISM_TOKEN: key.token }, "projects", "--url", story.url)
      expect(other.exitCode).toBe(0)
    }).pipe(Effect.provide(NodeServices.layer))
  )

  it.live("fails where every connection breaks, and its work is done once", () =>
    Effect.gen(function* () {
      const story = yield* newStory
      const proxy = yield* cuttingProxy(story.url, [made, made, made, made, made])
      const tropism = (...args: ReadonlyArray<string>) =>
        invokeWith({ TROPISM_TOKEN: story.token }, ...args, "--url", proxy.url)
      const broken = yield* tropism("projects", "create", "Shop")
      expect(broken).toEqual({ exitCode: 1, out: [], error: expect.stringMatching(/\S/) })
      expect(proxy.left()).toEqual([])
      expect((yield* tropism("projects")).out.join("\n").match(/Shop/g)).toHaveLength(1)
    }).pipe(Effect.provide(NodeServices.layer))
  )
})

/**
 * Ctrl-C in `tropism chat` while the agent is at rest, and while the server does not answer.
 */
import { NodeServices } from "@effect/platform-node"
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { newContext } from "../../server/testing/context-words.ts"
import { newStory } from "../../server/testing/platform.ts"
import { until } from "../testing/invoke.ts"
import { launch, launcher } from "../testing/launch.ts"
import { stallingProxy } from "../testing/stalling-proxy.ts"
import { onTerminal } from "../testing/terminal-process.ts"

const said = /^POST .*\/contexts\/talk\/events$/
const asked = /^GET .*\/runs$/

describe("Requirement: Ctrl-C always leaves a conversation", () => {
  it.live("at rest, while the next line is awaited", () =>
    Effect.gen(function* () {
      const story = yield* newStory
      yield* newContext(story, "talk")
      for (const [how, line] of [
        [["--lines"], "One"],
        [["--script", "-"], JSON.stringify({ type: "UserMessageEvent", content: "Two" })]
      ] as const) {
        const args = ["chat", "talk", ...how, "--url", story.url]
        const chat = yield* launch(launcher, args, { TROPISM_TOKEN: story.token })
        chat.process.stdin?.write(`${line}\n`)
        yield* until(() => chat.out().endsWith("\n") || chat.code() !== undefined)
        chat.process.kill("SIGINT")
        yield* until(() => chat.code() !== undefined)
        expect([chat.code(), chat.error()]).toEqual([130, ""])
      }
    }).pipe(Effect.provide(NodeServices.layer))
  )

  it.live("at a terminal, while the server does not answer", () =>
    Effect.gen(function* () {
      const story = yield* newStory
      yield* newContext(story, "talk")
      // What may have been said is interrupted first; what was only asked is left.
      for (const [stalls, presses] of [
        [said, 2],
        [asked, 1]
      ] as const) {
        const proxy = yield* stallingProxy(story.url, (line) => stalls.test(line))
        const chat = yield* onTerminal(["chat", "talk", "--url", proxy.url], { TROPISM_TOKEN: story.token })
        yield* chat.sees("> ")
        yield* chat.press("one\r")
        yield* until(() => proxy.stalled() > 0)
        for (let press = 0; press < presses; press += 1) yield* chat.press("\u0003")
        expect(yield* chat.exitCode).toBe(130)
      }
    }).pipe(Effect.provide(NodeServices.layer))
  )

  it.live("in a pipe, while the server does not answer what comes before a message", () =>
    Effect.gen(function* () {
      const story = yield* newStory
      yield* newContext(story, "talk")
      const proxy = yield* stallingProxy(story.url, (line) => asked.test(line))
      const args = ["chat", "talk", "-m", "Hello", "--url", proxy.url]
      const chat = yield* launch(launcher, args, { TROPISM_TOKEN: story.token })
      yield* until(() => proxy.stalled() > 0 || chat.code() !== undefined)
      chat.process.kill("SIGINT")
      yield* until(() => chat.code() !== undefined)
      expect([chat.code(), chat.error()]).toEqual([130, ""])
    }).pipe(Effect.provide(NodeServices.layer))
  )
})

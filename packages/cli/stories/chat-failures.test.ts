/**
 * What `tropism chat` says of a turn that failed: the sentence that every door tells, and where to look for more.
 */
import { NodeServices } from "@effect/platform-node"
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { newContext } from "../../server/testing/context-words.ts"
import { newStory, scripted } from "../../server/testing/platform.ts"
import { invokeWith } from "../testing/invoke.ts"
import { onTerminal } from "../testing/terminal-process.ts"

const missingTask = [
  { when: "step == 0", calls: [{ tool: "complete_task", arguments: { task_id: 999 } }] },
  { say: "Half a", fault: { kind: "cut" } }
]

const sentences =
  "I couldn't find that task: there is no #999. Would you like to see your current tasks?\n\nI'm having trouble. Try again."

describe("Requirement: a person is told what to do, and not what broke", () => {
  it.live("S003-R50 the command line tells a failed turn as the chat does, once or at a terminal", () =>
    Effect.gen(function* () {
      const story = yield* newStory
      const environment = { TROPISM_TOKEN: story.token }
      yield* newContext(story, "todos", scripted(missingTask), { tools: ["tasks.*"] })
      const { items } = yield* story.get("/agents")
      const { id: agentId } = items.find(({ name }: { name: string }) => name === "agent-of-todos")

      const door = yield* story.post("/chat", { agentId, message: "Number 999 is done" })
      expect(door).toMatchObject({ status: "failed", response: sentences })

      const once = yield* invokeWith(environment, "chat", "todos", "-m", "It is done", "--url", story.url)
      expect(once).toEqual({
        exitCode: 1,
        out: [],
        error: `${sentences.replace("\n\n", " ")} "tropism contexts log todos" says what went wrong.`
      })
      const log = yield* invokeWith(environment, "contexts", "log", "todos", "--url", story.url)
      expect(log.out.join("\n")).toContain("asks for the fault")

      const typed = yield* onTerminal(["chat", "todos", "--url", story.url], environment)
      yield* typed.sees("Ctrl-D leaves")
      yield* typed.press("Is it done?\r")
      yield* typed.sees("there is no #999")
      yield* typed.sees("I'm having trouble. Try again.")
      yield* typed.press("/exit\r")
      expect(yield* typed.exitCode).toBe(0)
    }).pipe(Effect.provide(NodeServices.layer))
  )
})

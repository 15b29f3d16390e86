/**
 * Whoever reads the log learns that a subscriber is told nothing any more: once, of which subscription, and no secret.
 */
import { expect, it } from "@effect/vitest"
import { Effect, Logger } from "effect"
import { freshDatabase } from "../testing/fresh-database.ts"
import { receiver, subscribing } from "../testing/mcp-receiver.ts"
import { ask } from "../testing/owner-rows.ts"
import { eventually, newProject, startServer } from "../testing/platform.ts"

it.live("a subscription that is suspended is told to the log with its project and its fault", () =>
  Effect.gen(function* () {
    const access = yield* freshDatabase
    const said: Array<string> = []
    const logger = Logger.make<unknown, void>(
      ({ logLevel, message }) => void said.push(JSON.stringify([logLevel, message]))
    )
    const story = yield* newProject(yield* startServer(access, [logger]), access)
    const hook = yield* receiver()
    yield* subscribing(story, hook.url)
    yield* hook.answerWith(404)
    const rows = (columns: string) => ask(access, `select ${columns} from kb.event_subscriptions`)
    // One more failure is not the last yet, the next one is.
    yield* ask(access, "update kb.event_subscriptions set attempts = 14")
    yield* story.post("/objects", { type: "Thing" })
    yield* eventually(rows("attempts"), ([row]) => row?.[0] === 15)
    expect(said.filter((line) => line.includes("subscriptionId"))).toEqual([])
    yield* ask(access, "update kb.event_subscriptions set next_attempt_at = now()")
    const [row] = yield* eventually(rows("status, id, secret"), ([kept]) => kept?.[0] === "suspended")
    const told = yield* eventually(
      Effect.sync(() => said.filter((line) => line.includes("subscriptionId"))),
      (lines) => lines.length > 0
    )
    expect(told.map((line) => JSON.parse(line))).toEqual([
      [
        "Warn",
        [
          expect.stringContaining("16"),
          { subscriptionId: row?.[1], projectId: story.projectId, event: "object.created", fault: "http_4xx" }
        ]
      ]
    ])
    for (const secret of [hook.url, String(row?.[2])]) expect(told.join()).not.toContain(secret)
  })
)

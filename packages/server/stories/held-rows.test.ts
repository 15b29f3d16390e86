/**
 * What whoever writes is told where somebody else holds for long what he changes; PostgreSQL itself says so here, at once.
 */
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { keyed } from "../testing/chat-words.ts"
import { importLines, jsonl } from "../testing/import-words.ts"
import { ask } from "../testing/owner-rows.ts"
import { newStory, type Story } from "../testing/platform.ts"
import { expectProblem } from "../testing/problem-words.ts"
import { pendingOf, suggesting, suggestingOnce, updating } from "../testing/suggestion-words.ts"

/** Lets whoever changes the object of this key wait for its lock for too long, as often as he tries. */
const holding = (story: Story, key: string) =>
  Effect.forEach(
    [
      `create function kb.is_held() returns trigger language plpgsql as $$
       begin raise exception 'canceling statement due to lock timeout' using errcode = '55P03'; end $$`,
      `create trigger held before update on kb.graph_objects for each row when (old.key = '${key}') execute function kb.is_held()`
    ],
    (statement) => ask(story.access, statement)
  )

/** What is suggested of two objects, of which the first is held. */
const suggestedOfTwo = Effect.fnUntraced(function* (story: Story) {
  const agent = yield* suggesting(story)
  for (const key of ["held", "free"]) {
    const object = yield* story.post("/objects", { type: "Person", key })
    yield* suggestingOnce(story, agent, updating(object, { born: 1815 }))
  }
  yield* holding(story, "held")
  return (yield* pendingOf(story)).map(({ id }) => ({ taskId: id }))
})

describe("An object that somebody holds for long", () => {
  it.live("is told as such at each door, by which nothing was done, and may be changed later", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const story = yield* newStory
        const held = yield* story.post("/objects", { type: "Person", key: "held" })
        yield* holding(story, "held")
        const change = story.ask("PATCH", `/objects/${held.id}`, { properties: { born: 1815 } })
        const refused = yield* change
        expectProblem(refused, 503)
        expect(refused.headers.get("retry-after")).toBe("1")
        const told = yield* importLines(
          story,
          jsonl({ type: "Person", key: "held", properties: { born: 1815 } })
        )
        expect(told.at(-1)).toMatchObject({
          type: "failed",
          message: expect.stringContaining(refused.body.detail)
        })
        yield* ask(story.access, "drop trigger held on kb.graph_objects")
        expect((yield* change).status).toBe(200)
      })
    )
  )

  it.live("keeps nobody from deciding of others in the same request", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const story = yield* newStory
        const tasks = yield* suggestedOfTwo(story)
        const told = yield* story.post("/tasks/decisions", { decision: "approve", tasks })
        expect(told.items).toMatchObject([
          { problem: { status: 409, reason: "state" } },
          { task: { status: "completed" } }
        ])
        expect((yield* pendingOf(story)).map(({ id }) => id)).toEqual([told.items[0].taskId])
      })
    )
  )

  it.live("is decided of when the same request comes again under its key", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const story = yield* newStory
        const tasks = yield* suggestedOfTwo(story)
        const address = `/api/projects/${story.projectId}/tasks/decisions`
        const decide = story.send("POST", address, { decision: "approve", tasks }, keyed("all"))
        expect((yield* decide).body.items).toMatchObject([
          { problem: { status: 409, reason: "state" } },
          { task: { status: "completed" } }
        ])
        yield* ask(story.access, "drop trigger held on kb.graph_objects")
        const done = [{ task: { status: "completed" } }, { task: { status: "completed" } }]
        const decided = yield* decide
        expect(decided.body.items).toMatchObject(done)
        const again = yield* decide
        expect(again.body).toEqual(decided.body)
        expect(again.headers.get("idempotency-replayed")).toBe("true")
      })
    )
  )
})

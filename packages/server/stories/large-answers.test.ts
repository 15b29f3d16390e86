/**
 * What comes of a request under a key is kept up to a size: beyond it nothing is done, or what was done is told by its parts.
 */
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { OutcomeMaxBytes } from "../src/tenancy/idempotency-keys.ts"
import { freshDatabase } from "../testing/fresh-database.ts"
import { ask } from "../testing/owner-rows.ts"
import { newProject, startServer } from "../testing/platform.ts"
import { expectProblem } from "../testing/problem-words.ts"
import { suggested } from "../testing/suggestion-words.ts"

const maxBytes = 16_384

const storyWithBound = Effect.gen(function* () {
  const access = yield* freshDatabase
  const doors = yield* Effect.provideService(startServer(access), OutcomeMaxBytes, maxBytes)
  return yield* newProject(doors, access)
})

const newest =
  "select outcome #>> '{}' from kb.idempotency_keys where project_id = $1 order by created_at desc limit 1"

/** What a sealed text has beside its words. */
const nonceAndTagBytes = 28

const keyed = (key: string) => ({ "idempotency-key": key })

describe("The size of what is kept under a key", () => {
  it.live("an answer that nearly fills it is told again; a larger one is refused, and nothing is done", () =>
    Effect.gen(function* () {
      const story = yield* storyWithBound
      const path = `/api/projects/${story.projectId}/objects`
      const sized = (bytes: number) => ({ type: "Sized", properties: { text: "x".repeat(bytes) } })
      const send = (bytes: number, key: string) => story.send("POST", path, sized(bytes), keyed(key))
      /** How much is kept for an object with a text of so many bytes. */
      const keptFor = Effect.fnUntraced(function* (bytes: number) {
        yield* send(bytes, `of-${bytes}`)
        const [row] = yield* ask(story.access, newest, [story.projectId])
        return Buffer.from(String(row?.[0]).split(".")[2] ?? "", "base64url").length - nonceAndTagBytes
      })
      const least = yield* keptFor(0)
      const each = ((yield* keptFor(1_000)) - least) / 1_000
      const room = Math.floor((maxBytes - least) / each)
      expect([1, 2]).toContain(each)

      const first = yield* send(room, "near")
      const again = yield* send(room, "near")
      expect([first.status, again.status, again.headers.get("idempotency-replayed")]).toEqual([
        201,
        201,
        "true"
      ])
      expect(again.body).toEqual(first.body)
      const before = (yield* story.get("/objects?type=Sized")).items.length

      const beyond = sized(room + 1)
      for (const _ of [1, 2]) {
        const refused = yield* story.send("POST", path, beyond, keyed("beyond"))
        expectProblem(refused, 422, "idempotency-key")
      }
      expect((yield* story.get("/objects?type=Sized")).items).toHaveLength(before)
      expect((yield* story.send("POST", path, beyond)).status).toBe(201)
    }).pipe(Effect.scoped)
  )

  it.live("many decisions that are too much together are each told again, and none is made twice", () =>
    Effect.gen(function* () {
      const story = yield* storyWithBound
      const note = (number: number) => ({
        tool: "create_object",
        arguments: { type: "Note", properties: { number, text: "x".repeat(maxBytes / 4) } }
      })
      const { tasks } = yield* suggested(story, ...[1, 2, 3, 4].map(note))
      const decide = story.send(
        "POST",
        `/api/projects/${story.projectId}/tasks/decisions`,
        { decision: "approve", tasks: tasks.map(({ id, digest }) => ({ taskId: id, digest })) },
        keyed("all")
      )
      const [first, again] = [yield* decide, yield* decide]
      expect(Buffer.byteLength(JSON.stringify(first.body))).toBeGreaterThan(maxBytes)
      expect([first.status, again.status]).toEqual([200, 200])
      expect(first.body.items.map((item: { task?: { status: string } }) => item.task?.status)).toEqual(
        Array(4).fill("completed")
      )
      expect(again.body).toEqual(first.body)
      expect((yield* story.get("/objects?type=Note")).items).toHaveLength(4)
    }).pipe(Effect.scoped)
  )
})

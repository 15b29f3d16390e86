/**
 * A server dies between the commit and the answer: at another one the same request is told what came of it.
 */
import { describe, expect, it } from "@effect/vitest"
import { Effect, Exit } from "effect"
import type { CrashPointName } from "../src/crash-point.ts"
import { freshDatabase } from "../testing/fresh-database.ts"
import { type MortalServer, startMortal } from "../testing/mortal-servers.ts"
import { ask } from "../testing/owner-rows.ts"
import { type Answer, type Doors, newProject, storyIn } from "../testing/platform.ts"
import { suggested } from "../testing/suggestion-words.ts"
import { watcher } from "../testing/story-words.ts"

const send = (doors: Doors, path: string, body: unknown, key: string): Effect.Effect<Answer> =>
  doors.send("POST", path, body, { "idempotency-key": key })

const isRepeat = ({ headers }: Answer): boolean => headers.get("idempotency-replayed") === "true"

/** Sends a request to a server that dies over it: nobody is told anything. */
const lost = Effect.fnUntraced(function* (
  server: MortalServer,
  point: CrashPointName,
  request: Effect.Effect<Answer>
) {
  yield* server.dieAt(point, 1)
  expect(Exit.isFailure(yield* Effect.exit(request))).toBe(true)
  yield* server.died
})

const note = { tool: "create_object", arguments: { type: "Note", properties: {} } }

describe("A request whose answer was lost", () => {
  it.live(
    "is told at another server what came of it, when the first died behind the commit; before it, it is done there",
    () =>
      Effect.scoped(
        Effect.gen(function* () {
          const access = { ...(yield* freshDatabase), embedded: false }
          const [first, second, third] = yield* Effect.all(
            [startMortal(access), startMortal(access), startMortal(access)],
            { concurrency: 3 }
          )
          const here = yield* newProject(third, access)
          const at = (path: string) => `/api/projects/${here.projectId}${path}`
          const { task } = yield* suggested(here, note)
          const decision = { decision: "approve", tasks: [{ taskId: task.id, digest: task.digest }] }

          const object = { type: "A", properties: { a: 1 } }
          yield* lost(first, "graph.afterCommit", send(first, at("/objects"), object, "one"))
          const told = yield* send(third, at("/objects"), object, "one")
          expect([told.status, told.body, isRepeat(told)]).toEqual([
            201,
            yield* here.get(`/objects/${told.body.id}`),
            true
          ])
          expect((yield* here.get("/objects?type=A")).items).toHaveLength(1)

          // Many decisions are many transactions: the one that was made is not made again.
          yield* lost(second, "task.afterCommit", send(second, at("/tasks/decisions"), decision, "two"))
          const decided = yield* send(third, at("/tasks/decisions"), decision, "two")
          expect([decided.status, decided.body.items[0].task?.status]).toEqual([200, "completed"])
          expect((yield* here.get("/objects?type=Note")).items).toHaveLength(1)
          expect((yield* send(third, at("/tasks/decisions"), decision, "two")).body).toEqual(decided.body)

          const fourth = yield* startMortal(access)
          const other = { type: "B", properties: {} }
          yield* lost(fourth, "graph.beforeCommit", send(fourth, at("/objects"), other, "three"))
          const done = yield* send(third, at("/objects"), other, "three")
          expect([done.status, isRepeat(done)]).toEqual([201, false])
          expect((yield* here.get("/objects?type=B")).items).toHaveLength(1)
          const counted = yield* ask(
            access,
            "select count(*)::int from kb.graph_events where project_id = $1 and type = 'created'",
            [here.projectId]
          )
          // A Start, a Note, an A and a B.
          expect(counted).toEqual([[4]])
        })
      ),
    120_000
  )

  it.live("fifty at two servers at once have one effect and are told the same", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const access = { ...(yield* freshDatabase), embedded: false }
        const servers = yield* Effect.all([startMortal(access), startMortal(access)], { concurrency: 2 })
        const here = yield* newProject(servers[0], access)
        const there = storyIn(servers[1], access, here.projectId)
        const agent = watcher({ name: "one" })
        const answers = yield* Effect.forEach(
          Array.from({ length: 50 }, (_, index) => (index % 2 === 0 ? here : there)),
          (doors) => send(doors, `/api/projects/${here.projectId}/agents`, agent, "k"),
          { concurrency: "unbounded" }
        )
        expect(new Set(answers.map(({ body, status }) => JSON.stringify([status, body]))).size).toBe(1)
        expect([answers[0]?.status, answers.filter((answer) => !isRepeat(answer)).length]).toEqual([201, 1])
        const agents = (yield* there.get("/agents")).items.filter(
          ({ name }: { name: string }) => name === "one"
        )
        expect(agents).toHaveLength(1)
      })
    )
  )
})

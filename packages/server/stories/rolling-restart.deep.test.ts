/**
 * Two servers are started anew, one after the other, while people and agents work: nobody is refused and nothing is lost.
 */
import { describe, expect, it } from "@effect/vitest"
import { Effect, Fiber, Schedule } from "effect"
import { freeAddress } from "../testing/cluster-servers.ts"
import { freshDatabase } from "../testing/fresh-database.ts"
import { openStream } from "../testing/event-stream.ts"
import { type MortalServer, prepareMortal, startMortal } from "../testing/mortal-servers.ts"
import { ask } from "../testing/owner-rows.ts"
import { type Doors, eventually, type Json, newProject, storyIn } from "../testing/platform.ts"
import { calling, watcher } from "../testing/story-words.ts"

/** Asks one server whether it is ready, as a balancer does. */
const isReady = (doors: Doors): Effect.Effect<boolean> =>
  Effect.promise(() =>
    fetch(`${doors.url}/ready`).then(
      ({ status }) => status === 200,
      () => false
    )
  )

/** Says again and again which servers are ready. */
const balancing = (servers: ReadonlyArray<Doors>, ready: { now: ReadonlyArray<Doors> }) =>
  Effect.forEach(servers, isReady, { concurrency: servers.length }).pipe(
    Effect.tap((states) =>
      Effect.sync(() => {
        ready.now = servers.filter((_, index) => states[index])
      })
    ),
    Effect.repeat(Schedule.spaced("100 millis"))
  )

/** Who starts anew comes back at its address. */
const nobodys = Effect.succeed(undefined)

describe("A rolling restart of two servers", () => {
  it.live.each([
    { which: "by themselves", address: nobodys },
    { which: "of a cluster", address: freeAddress }
  ])(
    "$which refuses nobody whose requests go to a ready one, and loses no run and no event of a stream",
    ({ address }) =>
      Effect.scoped(
        Effect.gen(function* () {
          const access = { ...(yield* freshDatabase), embedded: false }
          const [here, there] = yield* Effect.all([address, address])
          const [one, other] = yield* Effect.all([startMortal(access, here), startMortal(access, there)], {
            concurrency: 2
          })
          const standBy = yield* Effect.all([prepareMortal(access, here), prepareMortal(access, there)], {
            concurrency: 2
          })
          const story = yield* newProject(one, access)
          yield* story.post(
            "/agents",
            watcher({
              reactionConfig: { objectTypes: ["Wish"], events: ["created"], concurrencyStrategy: "parallel" },
              model: calling({ tool: "create_object", arguments: { type: "Answer", properties: {} } })
            })
          )
          const servers: Array<MortalServer> = [one, other]
          const ready: { now: ReadonlyArray<Doors> } = { now: [one, other] }
          const balancer = yield* Effect.forkScoped(balancing(servers, ready))
          const answers: Array<Json> = []
          let turn = 0
          const wish = Effect.gen(function* () {
            const doors = ready.now[turn++ % ready.now.length]
            if (doors === undefined) return yield* Effect.die(new Error("No server is ready"))
            const answer = yield* storyIn(doors, access, story.projectId).ask("POST", "/objects", {
              type: "Wish",
              properties: { turn }
            })
            answers.push(answer.status === 201 ? answer.status : answer)
          })
          /** The numbers that somebody hears who listens where it is ready, and goes elsewhere when a stream ends. */
          const heard: Array<number> = []
          const listen = (doors: Doors) =>
            openStream(
              doors,
              `/api/projects/${story.projectId}/events?after=0`,
              heard.length === 0 ? undefined : String(heard.at(-1))
            )
          let stream = yield* listen(one)
          const elsewhere = (doors: Doors) =>
            Effect.gen(function* () {
              heard.push(...stream.heard.map(({ id }) => Number(id)))
              stream = yield* listen(doors)
            })
          let isOver = false
          const client = Effect.repeat(wish, {
            until: () => isOver,
            schedule: Schedule.spaced("100 millis")
          })
          const clients = yield* Effect.forkScoped(Effect.all([client, client], { concurrency: 2 }))
          for (const [index, start] of standBy.entries()) {
            const leaving = servers[index]
            if (leaving === undefined) throw new Error("There are two servers")
            const before = answers.length
            yield* eventually(
              Effect.sync(() => answers.length),
              (count) => count > before + 20
            )
            yield* leaving.stop
            // It says so at once, and closes what has no end of its own, while it still answers everybody.
            const refusal = yield* eventually(leaving.send("GET", "/ready"), ({ status }) => status === 503)
            expect([refusal.status, refusal.body.reason]).toEqual([503, "stopping"])
            expect(refusal.headers.get("connection")).toBe("close")
            yield* stream.ended
            expect((yield* leaving.send("GET", "/health")).status).toBe(200)
            const staying = servers[1 - index]
            if (staying) yield* elsewhere(staying)
            yield* leaving.died
            const began = yield* start
            servers[index] = began
            yield* eventually(
              Effect.sync(() => ready.now),
              (now) => now.includes(began)
            )
          }
          const beforeTheEnd = answers.length
          yield* eventually(
            Effect.sync(() => answers.length),
            (count) => count > beforeTheEnd + 20
          )
          isOver = true
          yield* Fiber.join(clients)
          yield* Fiber.interrupt(balancer)
          expect(answers.filter((answer) => answer !== 201)).toEqual([])
          const count = (from: string) =>
            Effect.map(
              ask(access, `select count(*)::int from kb.${from} and project_id = $1`, [story.projectId]),
              ([row]) => Number(row?.[0])
            )
          expect(yield* count("graph_objects where type = 'Wish'")).toBe(answers.length)
          yield* eventually(
            count("agent_runs where status = 'completed'"),
            (completed) => completed === answers.length,
            60_000
          )
          expect(yield* count("agent_runs where true")).toBe(answers.length)
          expect(yield* count("graph_objects where type = 'Answer'")).toBe(answers.length)
          // Everything that happened was heard, once and in order; an event has its place once it was dispatched.
          yield* eventually(count("graph_events where position is null"), (left) => left === 0)
          const positions = (yield* ask(
            access,
            "select position::int from kb.graph_events where project_id = $1 order by position",
            [story.projectId]
          )).map(([position]) => Number(position))
          const last = positions.at(-1)
          yield* stream.until((rest) => Number(rest.at(-1)?.id) === last)
          expect([...heard, ...stream.heard.map(({ id }) => Number(id))]).toEqual(positions)
        })
      ),
    600_000
  )
})

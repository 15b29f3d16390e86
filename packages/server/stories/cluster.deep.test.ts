/**
 * Servers that work together: whoever asks any of them is answered as by all, and where one goes the others go on.
 */
import { describe, expect, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { nameOf } from "../src/cluster/peers.ts"
import { clusterLimits } from "../src/cluster/limits.ts"
import type { PostgresAccess } from "../src/database/postgres-access.ts"
import { runLimits } from "../src/limits.ts"
import { freeAddress } from "../testing/cluster-servers.ts"
import { keyed } from "../testing/chat-words.ts"
import { logOf, newContext, say } from "../testing/context-words.ts"
import { type EventStream, openStream } from "../testing/event-stream.ts"
import { freshDatabase } from "../testing/fresh-database.ts"
import { startMortal } from "../testing/mortal-servers.ts"
import { ask } from "../testing/owner-rows.ts"
import {
  eventually,
  type Json,
  newProject,
  scripted,
  startServer,
  type Story,
  storyIn,
  storyKeys
} from "../testing/platform.ts"
import { clerk, passUntil } from "../testing/schedule-words.ts"
import { runsOf, watcher } from "../testing/story-words.ts"

const shared = Effect.map(freshDatabase, (access) => ({ ...access, embedded: false }))

const sentence = Array.from({ length: 40 }, (_, index) => `word${index}`).join(" ")

/** What a subscriber has heard of the answer that is being written. */
const words = ({ heard }: EventStream): string =>
  heard
    .filter(({ name }) => name === "TextDeltaEvent")
    .map(({ json }) => json.delta)
    .join("")

/** Where the run is worked on, in which attempt, and until when nobody else may take it unless its server is missed. */
const workOn = (access: PostgresAccess, runId: string) =>
  Effect.map(
    ask(
      access,
      "select split_part(worker_id, '#', 1), attempt, lease_expires_at from kb.agent_runs where id = $1 and status = 'running'",
      [runId]
    ),
    ([row]) =>
      row === undefined
        ? undefined
        : { address: String(row[0]), attempt: Number(row[1]), leaseEndsMs: Date.parse(String(row[2])) }
  )

/** Lets the lease of a first attempt outlast its story, so that only who misses its server takes the run; answers until when. */
const lengthenedLease = (access: PostgresAccess, runId: string) =>
  Effect.map(
    ask(
      access,
      "update kb.agent_runs set lease_expires_at = now() + interval '1 hour' where id = $1 and attempt = 1 returning lease_expires_at",
      [runId]
    ),
    ([row]) => Date.parse(String(row?.[0]))
  )

/** A server process of a cluster, with its address. */
const startOne = (access: PostgresAccess) =>
  Effect.flatMap(freeAddress, (at) =>
    Effect.map(startMortal(access, at), (server) => ({ at: nameOf(at), server }))
  )

describe("Servers that work together (S004-F14, S004-F15)", () => {
  it.live(
    "the words of an answer come live, each once and in order, at whichever server somebody watches",
    () =>
      Effect.scoped(
        Effect.gen(function* () {
          const access = yield* shared
          const start = Effect.flatMap(freeAddress, (at) =>
            startServer(access, [], undefined, undefined, storyKeys, at)
          )
          const servers = yield* Effect.all([start, start, start])
          const [first] = servers
          const story = yield* newProject(first, access)
          yield* newContext(story, "talk", scripted([{ say: sentence, tokensPerSecond: 20 }]))
          const path = `/api/projects/${story.projectId}/contexts/talk/events?after=start`
          const streams = yield* Effect.forEach(servers, (doors) => openStream(doors, path))
          const answers = (count: number) => (heard: EventStream["heard"]) =>
            heard.filter(({ name }) => name === "AssistantMessageEvent").length === count
          const asked = { count: 0 }
          const answer = Effect.gen(function* () {
            const before = streams.map((stream) => words(stream).length)
            yield* say(story, "talk", "Go on")
            asked.count += 1
            for (const stream of streams) yield* stream.until(answers(asked.count))
            return Effect.sync(() => streams.map((stream, index) => words(stream).slice(before[index])))
          })
          // What is said before the servers have found each other passes by.
          yield* eventually(Effect.flatten(answer), (all) => all.every((one) => one === sentence))
          const heard = yield* answer
          const come = yield* eventually(heard, (all) => all.every((one) => one.length >= sentence.length))
          expect(come).toEqual(servers.map(() => sentence))
        })
      ),
    300_000
  )

  it.live(
    "when a server dies its runs go on at another and its schedules fire there, though their leases had not ended",
    () =>
      Effect.scoped(
        Effect.gen(function* () {
          const access = yield* shared
          const start = startOne(access)
          const servers = yield* Effect.all([start, start, start], { concurrency: 3 })
          const [any] = servers
          const story = yield* newProject(any.server, access)
          const agent = yield* story.post(
            "/agents",
            clerk("0 0 1 1 *", {
              name: "slow",
              triggerType: "manual",
              cronSchedule: null,
              model: scripted([{ say: "Done", latencyMs: 12_000 }])
            })
          )
          const timed = yield* story.post(
            "/agents",
            clerk("0 0 1 1 *", { model: scripted([{ say: "Fired" }]) })
          )
          const run = yield* story.post(`/agents/${agent.id}/trigger?wait=false`, {})
          const begun = yield* eventually(workOn(access, run.id), (work) => work !== undefined)
          const dead = servers.find(({ at }) => at === begun?.address) ?? any
          yield* dead.server.kill
          const leaseEndsMs = yield* lengthenedLease(access, run.id)
          const rest = servers.filter((one) => one !== dead)
          const again = yield* eventually(workOn(access, run.id), (work) => work?.attempt === 2, 60_000)
          expect(rest.map(({ at }) => at)).toContain(again?.address)
          expect((again?.leaseEndsMs ?? Number.NaN) - runLimits.leaseMs).toBeLessThan(leaseEndsMs)

          // One server alone looks after the schedules: whichever dies, another takes that up.
          const [next = any, last = any] = rest
          const lastDoors = storyIn(last.server, access, story.projectId)
          const fires = Effect.map(runsOf(lastDoors, timed), (runs) => runs.length)
          yield* passUntil(access, timed, new Date("2026-01-01T00:00:00Z"))
          yield* eventually(fires, (count) => count === 1)
          yield* next.server.kill
          yield* passUntil(access, timed, new Date("2026-01-02T00:00:00Z"))
          yield* eventually(fires, (count) => count === 2)
          const done = yield* eventually(
            lastDoors.get(`/runs/${run.id}`),
            ({ status }) => status === "completed",
            40_000
          )
          expect(done.summary).toBe("Done")
        })
      ),
    300_000
  )

  it.live(
    "a server that stood still finds its attempt taken, and what it had in mind is not written",
    () =>
      Effect.scoped(
        Effect.gen(function* () {
          const access = yield* shared
          const start = startOne(access)
          const [one, other] = yield* Effect.all([start, start], { concurrency: 2 })
          const story = yield* newProject(one.server, access)
          yield* newContext(story, "talk", scripted([{ say: "Once", latencyMs: 10_000 }]))
          yield* say(story, "talk", "Speak")
          const [run] = yield* eventually(
            story.get("/runs"),
            ({ items }) => items[0]?.status === "running"
          ).pipe(Effect.map(({ items }) => items))
          const begun = yield* workOn(access, run.id)
          const [frozen, well] = begun?.address === one.at ? [one, other] : [other, one]
          yield* frozen.server.freeze
          const leaseEndsMs = yield* lengthenedLease(access, run.id)
          const doors = storyIn(well.server, access, story.projectId)
          const done = yield* eventually(
            doors.get(`/runs/${run.id}`),
            ({ status }) => status === "completed",
            60_000
          )
          expect(Date.parse(done.completedAt)).toBeLessThan(leaseEndsMs)
          yield* frozen.server.thaw
          const thawed = storyIn(frozen.server, access, story.projectId)
          const log = yield* logOf(thawed, "talk")
          expect(log.filter(({ type }: Json) => type === "AssistantMessageEvent").length).toBe(1)
          expect((yield* thawed.get(`/runs/${run.id}`)).status).toBe("completed")
        })
      ),
    300_000
  )
})

describe("A server that stands still in the middle of a transaction", () => {
  it.live(
    "holds up nobody for long who wants what it has locked, and finds that nothing of it was done",
    () =>
      Effect.scoped(
        Effect.gen(function* () {
          const access = yield* shared
          const [frozen, well] = yield* Effect.all([startMortal(access), startMortal(access)], {
            concurrency: 2
          })
          const story = yield* newProject(well, access)
          const thing = (by: string) => ({ type: "Thing", key: "wanted", properties: { by } })
          yield* frozen.freezeAt("graph.beforeCommit", 1)
          // Under a key it is a transaction of its own; a batch is sent whole, and a server that stands still holds nothing of it.
          const late = yield* Effect.forkScoped(
            frozen.send("POST", `/api/projects/${story.projectId}/objects`, thing("frozen"), keyed("late"))
          )
          yield* eventually(
            Effect.sync(() => frozen.passed()),
            (points) => points.includes("graph.beforeCommit")
          )
          const made = yield* story.ask("POST", "/objects", thing("well"))
          expect(made.status).toBe(201)
          yield* frozen.thaw
          expect((yield* Fiber.join(late)).body).toMatchObject({ type: "/problems/unavailable" })
          expect((yield* story.get(`/objects/${made.body.id}`)).properties).toEqual({ by: "well" })
          expect((yield* story.get("/objects?key=wanted")).items).toHaveLength(1)
        })
      ),
    300_000
  )
})

describe("The port between servers", () => {
  it.live("answers nobody who does not prove to be a server of the same database", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const access = yield* shared
        const at = yield* freeAddress
        yield* startServer(access, [], undefined, undefined, storyKeys, at)
        const knock = (headers: Record<string, string>) =>
          Effect.promise(() =>
            fetch(`http://${at.host}:${at.port}/`, { method: "POST", headers, body: "{}" }).then(
              ({ status }) => status
            )
          )
        expect(yield* knock({})).toBe(401)
        expect(yield* knock({ authorization: "Bearer a-token-for-stories" })).toBe(401)
      })
    )
  )
})

/** Refuses what servers write to say that they live, as if their connections for that were lost; their pools are well. */
const silence = Effect.fnUntraced(function* (access: PostgresAccess, ...silent: ReadonlyArray<string>) {
  yield* ask(access, "drop trigger if exists silence on kb_cluster.tropism_runners")
  if (silent.length > 0)
    yield* ask(
      access,
      `create trigger silence before update on kb_cluster.tropism_runners for each row
       when (new.address in (${silent.map((address) => `'${address}'`).join(", ")})) execute function kb_cluster.refuse()`
    )
  const { lookMs, silenceMs } = clusterLimits
  yield* eventually(
    ask(
      access,
      `select from kb_cluster.tropism_runners where case when address = any($1::text[])
         then last_heartbeat < now() - make_interval(secs => $2) else last_heartbeat > now() - interval '1500 ms' end`,
      [silent, (silenceMs + 3 * lookMs) / 1_000]
    ),
    ({ length }) => length === 2
  )
})

/** Begins some runs and answers, when all are done, at which servers and in which attempts that was. */
const done = Effect.fnUntraced(function* (story: Story, agent: Json) {
  const begin = story.post(`/agents/${agent.id}/trigger?wait=false`, {})
  const ids = (yield* Effect.all([begin, begin, begin, begin])).map(({ id }) => id)
  yield* eventually(
    Effect.forEach(ids, (id) => story.get(`/runs/${id}`)),
    (runs) => runs.every(({ completedAt }) => completedAt !== null),
    60_000
  )
  return yield* ask(
    story.access,
    `select distinct status, attempt, split_part(worker_id, '#', 1) from kb.agent_runs where id = any($1::uuid[])`,
    [ids]
  )
})

describe("A server that cannot say that it lives", () => {
  it.live(
    "takes no runs until others see it again, for what it took would be taken from it; where nobody is seen all go on",
    () =>
      Effect.scoped(
        Effect.gen(function* () {
          const access = yield* shared
          yield* ask(
            access,
            `create function kb_cluster.refuse() returns trigger language plpgsql as
             $$ begin raise exception 'A story has no sign of life here'; end $$`
          )
          const start = Effect.flatMap(freeAddress, (at) =>
            Effect.map(startServer(access, [], undefined, undefined, storyKeys, at), (doors) => ({
              at: nameOf(at),
              doors
            }))
          )
          const [one, other] = yield* Effect.all([start, start])
          const story = yield* newProject(one.doors, access)
          const model = scripted([{ say: "Done", latencyMs: 3_000 }])
          const agent = yield* story.post(
            "/agents",
            watcher({ triggerType: "manual", reactionConfig: null, model })
          )
          // Each run is told of first at the server that cannot take it.
          yield* silence(access, one.at)
          expect(yield* done(story, agent)).toEqual([["completed", 1, other.at]])
          yield* silence(access, other.at)
          expect(yield* done(storyIn(other.doors, access, story.projectId), agent)).toEqual([
            ["completed", 1, one.at]
          ])
          yield* silence(access, one.at, other.at)
          for (const [status, attempt] of yield* done(story, agent))
            expect([status, attempt]).toEqual(["completed", 1])
        })
      ),
    300_000
  )

  it.live("takes none while it cannot find out whether it is seen", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const access = yield* shared
        const at = yield* freeAddress
        const story = yield* newProject(
          yield* startServer(access, [], undefined, undefined, storyKeys, at),
          access
        )
        const agent = yield* story.post("/agents", watcher({ triggerType: "manual", reactionConfig: null }))
        yield* ask(access, "revoke select on kb_cluster.tropism_runners from tropism_server")
        const [[revokedAt] = []] = yield* ask(access, "select now()::text")
        yield* eventually(
          ask(
            access,
            `select from kb_cluster.tropism_runners where last_heartbeat < now() - interval '2 s'
               and now() - interval '2 s' > $1::timestamptz`,
            [revokedAt]
          ),
          ({ length }) => length === 1
        )
        const run = yield* story.post(`/agents/${agent.id}/trigger?wait=false`, {})
        yield* eventually(
          ask(
            access,
            "select from kb.agent_runs where id = $1 and status = 'queued' and created_at < now() - interval '2 s'",
            [run.id]
          ),
          ({ length }) => length === 1
        )
        yield* ask(access, "grant select on kb_cluster.tropism_runners to tropism_server")
        yield* eventually(story.get(`/runs/${run.id}`), ({ status }) => status === "completed")
      })
    )
  )
})

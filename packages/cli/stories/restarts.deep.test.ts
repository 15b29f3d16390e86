/**
 * Commands that go on while the server that they ask is killed and another one takes its place.
 */
import { type AddressInfo, connect, createServer, type Socket } from "node:net"
import { NodeServices } from "@effect/platform-node"
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { freshDatabase } from "../../server/testing/fresh-database.ts"
import { prepareMortal, startMortal } from "../../server/testing/mortal-servers.ts"
import { newProject, scripted, storyIn } from "../../server/testing/platform.ts"
import { make } from "../../server/testing/story-words.ts"
import { until } from "../testing/invoke.ts"
import { type Launched, launch, launcher } from "../testing/launch.ts"

/**
 * One address for whichever server is alive, as behind a balancer, until the scope ends.
 *
 * **Details** What a server answers to a trigger is kept back, and `swallowed` hears of it.
 */
const balanced = (alive: () => string, swallowed: () => void) =>
  Effect.map(
    Effect.acquireRelease(
      Effect.promise(() => {
        const sockets = new Set<Socket>()
        const doomed = alive()
        const balancer = createServer((near) => {
          const { hostname, port } = new URL(alive())
          const far = connect(Number(port), hostname)
          const end = () => {
            near.destroy()
            far.destroy()
          }
          for (const socket of [near, far]) {
            sockets.add(socket)
            socket.on("error", end).on("close", end)
          }
          let isTrigger = false
          near.on("data", (bytes) => (isTrigger ||= /^POST \S+\/trigger/.test(String(bytes)))).pipe(far)
          far.on("data", (bytes) => {
            if (!isTrigger || alive() !== doomed) return void near.write(bytes)
            end()
            swallowed()
          })
        })
        return new Promise<{ balancer: typeof balancer; sockets: typeof sockets }>((resolve) =>
          balancer.listen(0, "127.0.0.1", () => resolve({ balancer, sockets }))
        )
      }),
      ({ balancer, sockets }) =>
        Effect.sync(() => {
          balancer.close()
          for (const socket of sockets) socket.destroy()
        })
    ),
    ({ balancer }) => `http://127.0.0.1:${(balancer.address() as AddressInfo).port}`
  )

/** The places of the events that it has told, in the order in which it did. */
const placesIn = (tail: Launched): ReadonlyArray<number> =>
  tail
    .out()
    .split("\n")
    .slice(0, -1)
    .map((line) => JSON.parse(line))
    .flatMap(({ event, type }) => (type === "event" ? [event.position] : []))

const notices = ({ error }: Launched): ReadonlyArray<string> =>
  error()
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line).notice)

describe("Requirement: commands outlive the server that they ask", () => {
  it.live(
    "tail says that it waits and that it goes on, and run begins one run, over kill -9 of the server",
    () =>
      Effect.gen(function* () {
        const access = { ...(yield* freshDatabase), embedded: false }
        const first = yield* startMortal(access)
        const second = yield* prepareMortal(access)
        const here = yield* newProject(first, access)
        yield* here.post("/agents", {
          name: "digest",
          prompt: "x",
          triggerType: "manual",
          model: scripted([{ say: "Done." }])
        })
        let alive = first.url
        const at = [
          "--url",
          yield* balanced(
            () => alive,
            () => Effect.runSync(first.kill)
          ),
          "--json"
        ]
        const environment = { TROPISM_TOKEN: here.token }
        const tail = yield* launch(launcher, ["tail", "--after", "0", ...at], environment)
        for (const number of [1, 2, 3]) yield* make(here, "Thing", { number })
        yield* until(() => placesIn(tail).length === 3)
        expect(tail.error()).toBe("")

        // The run is made, and the server dies before it can say so.
        const run = yield* launch(launcher, ["run", "digest", "--detach", ...at], environment)
        yield* first.died
        yield* until(() => notices(tail).length === 1)
        expect(notices(tail)[0]).toContain(at[1])

        const server = yield* second
        alive = server.url
        const there = storyIn(server, access, here.projectId)
        for (const number of [4, 5]) yield* make(there, "Thing", { number })
        yield* until(() => placesIn(tail).length >= 5 && notices(tail).length >= 2)
        expect(placesIn(tail)).toEqual([1, 2, 3, 4, 5])
        // One notice that it waits, and one that the server is back.
        expect(notices(tail)).toHaveLength(2)

        yield* until(() => run.code() !== undefined)
        expect([run.code(), run.error()]).toEqual([0, ""])
        const { items } = yield* there.get("/runs")
        expect(items).toMatchObject([{ id: JSON.parse(run.out()).id }])
      }).pipe(Effect.provide(NodeServices.layer)),
    300_000
  )
})

/**
 * Everything around the servers: the project, the people in it, the time that passes, the faults that strike.
 *
 * All of it happens at once. When the people are done faults go on for a while,
 * and then nothing goes wrong any more until everything is final (`phases.ts`).
 */
import type { ProjectId } from "@tropism/domain/ids"
import { Effect, Fiber, Queue } from "effect"
import { tryOut } from "./backtest-keepers.ts"
import { type Cast, setUp } from "./casting.ts"
import type { Chance } from "./chance.ts"
import type { Conductor } from "./conductor.ts"
import type { Deed } from "./faults.ts"
import { distrust, halt, manage, retry, start } from "./agent-keepers.ts"
import { leaseLapseMs, nightMs, pass } from "./passing-time.ts"
import {
  type Acknowledged,
  askInProject,
  cancel,
  deliver,
  nothingAcknowledged,
  type Person,
  requestOf,
  review,
  talk,
  throwIn,
  write
} from "./people.ts"
import { answer, resume } from "./run-keepers.ts"
import { chatWith } from "./chatters.ts"
import { keepDiary } from "./diarist.ts"
import { sendFiles } from "./filers.ts"
import { sendAgain } from "./repeaters.ts"
import { answerCalls, paint } from "./painters.ts"
import { keepTodos } from "./todo-keepers.ts"
import { aftermath, becomesFinal, type Phases } from "./phases.ts"
import { aimOf, type Part, partFor } from "./places.ts"
import type { Radio } from "./radio.ts"
import type { Ground } from "./server-life.ts"
import { keepServers, type Servers } from "./servers.ts"
import { takeBack } from "./undoers.ts"
import { wander } from "./wanderers.ts"

/** What became of a world. */
export interface Played {
  readonly projectId: ProjectId
  readonly acknowledged: Acknowledged
  readonly calmSinceMs: number
  readonly phases: Phases
}

/** When agents have suggested what they will. */
const lateMs = 2_000

/** How often the schedule of a cast fires. */
const scheduleMs = 60_000

/** Everything but the servers' own work. */
export const playWorld = (ground: Ground, deeds: Queue.Dequeue<Deed>, seed: number, chance: Chance) =>
  Effect.gen(function* () {
    const { conductor, inbox, plan, radio, shop } = ground
    const { clock } = conductor
    const part = partFor(seed)
    const servers = yield* keepServers(ground, chance.pick([1, 1, 2, 2, 2, 2, 2, 3]), chance.fork("restarts"))
    const { projectId, cast } = yield* setUp(servers, chance.fork("cast"), part)
    const beginMs = clock.nowMs()
    plan.begin()
    const faults = yield* Effect.forkScoped(doDeeds(deeds, servers, conductor, chance.fork("deeds")))
    const acknowledged = nothingAcknowledged()
    const request = requestOf((effect) => servers.ask(effect))
    const ask = askInProject(projectId, request)
    const person = (name: string): Person => ({ chance: chance.fork(name), request, ask, acknowledged })
    const morning = Effect.andThen(Effect.sleep(chance.between(1, 1_000)), pass(clock, scheduleMs))
    yield* Effect.forkScoped(answer(person("answerer")))
    if (cast.talker !== undefined)
      for (const client of ["pablo", "pablo elsewhere"])
        yield* Effect.forkScoped(answerCalls(client, person(client)))
    const busy = [
      ...doings(person, projectId, cast, part, chance),
      ...(cast.dances ? [play(radio, chance.fork("songs"))] : []),
      ...(cast.rises ? [Effect.replicateEffect(morning, chance.between(1, 2))] : [])
    ]
    yield* Effect.all(busy, { concurrency: busy.length, discard: true })
    yield* aftermath(plan, aimOf(seed), chance.fork("aftermath"))
    plan.end()
    yield* Fiber.interrupt(faults)
    for (const { calmDown } of [radio, shop, inbox]) calmDown()
    yield* servers.settle
    const settledMs = clock.nowMs()
    const overdue = yield* becomesFinal(clock, projectId, cast.dances ? radio.end() : undefined)
    acknowledged.posted.push(...inbox.taken)
    const phases = { safetyMs: settledMs - beginMs, livenessMs: clock.nowMs() - settledMs, overdue }
    return { projectId, acknowledged, calmSinceMs: settledMs, phases } satisfies Played
  }).pipe(Effect.scoped, Effect.orDie)

/** Lets the radio play, some songs at once. */
const play = Effect.fnUntraced(function* ({ happen }: Radio, chance: Chance) {
  for (let songs = chance.between(3, 7); songs > 0; songs--) {
    if (!chance.oneIn(3)) yield* Effect.sleep(chance.between(1, 1_500))
    yield* happen
  }
})

/** What people do; each of them by chance, but somebody always writes and decides. */
const doings = (
  person: (name: string) => Person,
  projectId: ProjectId,
  cast: Cast,
  part: Part | undefined,
  chance: Chance
) => {
  const sometimes = <A>(n: number, doing: () => A): ReadonlyArray<A> => (chance.oneIn(n) ? [doing()] : [])
  return [
    write(person("writer")),
    ...sometimes(6, () => write(person("second writer"))),
    review("bob", person("bob")),
    ...sometimes(2, () => review("eve", person("eve"))),
    ...(part === "suggester" ? [Effect.andThen(Effect.sleep(lateMs), review("ivy", person("ivy")))] : []),
    ...(cast.throws === undefined ? [] : [throwIn(person("thrower"), cast.throws)]),
    ...(cast.webhookId === undefined
      ? []
      : [deliver(cast.webhookId, person("courier")), deliver(cast.webhookId, person("second courier"))]),
    ...(cast.talker === undefined ? [] : [talk(cast.talker, person("talker"))]),
    ...sometimes(5, () => cancel(person("canceller"))),
    ...sometimes(3, () => manage(person("manager"), cast.agents)),
    ...sometimes(3, () => distrust(person("sceptic"), cast.agents)),
    ...sometimes(4, () => retry(person("retrier"), cast.agents)),
    ...sometimes(5, () => start(person("starter"), cast.agents)),
    ...sometimes(3, () => resume(person("resumer"))),
    ...sometimes(8, () => halt(person("guard"), projectId, cast.agents)),
    ...sometimes(3, () => keepTodos("tess", person("tess"))),
    ...sometimes(3, () => keepTodos("tess", person("tess elsewhere"))),
    ...sometimes(3, () => keepTodos("bob", person("bob's todos"))),
    ...sometimes(2, () => takeBack("una", person("undoer"))),
    ...sometimes(3, () => Effect.andThen(Effect.sleep(lateMs), takeBack("uma", person("late undoer")))),
    ...sometimes(part === "tester" ? 1 : 3, () => tryOut(person("tester"), cast.agents)),
    ...(cast.talker === undefined
      ? []
      : [
          chatWith(cast.talker, projectId, person("sam")),
          chatWith(cast.talker, projectId, person("sam elsewhere")),
          wander(cast.talker, "walk", person("wanda")),
          ...(chance.fork("files").oneIn(2)
            ? [
                sendFiles(cast.talker, "fay", true, person("fay")),
                sendFiles(cast.talker, "finn", false, person("finn"))
              ]
            : []),
          ...(chance.fork("easel").oneIn(2) ? [paint(cast.talker, person("pia"))] : []),
          ...(part === "diary" || chance.fork("diary").oneIn(2)
            ? [keepDiary(cast.talker, person("dora"), part === "diary")]
            : []),
          ...(chance.fork("strolls").oneIn(2)
            ? [wander(cast.talker, "stroll", person("wanda elsewhere"))]
            : [])
        ]),
    sendAgain(person("ida")),
    sendAgain(person("ida elsewhere"))
  ]
}

/** Does what the fault plan asks for, to a server that is up. */
const doDeeds = Effect.fnUntraced(function* (
  deeds: Queue.Dequeue<Deed>,
  servers: Servers,
  conductor: Conductor,
  chance: Chance
) {
  while (true) {
    const deed = yield* Queue.take(deeds)
    const [first, ...rest] = servers.up()
    const server = first && chance.pick([first, ...rest])
    switch (deed.type) {
      case "lapse":
        conductor.clock.leap(leaseLapseMs)
        break
      case "night":
        conductor.clock.leap(nightMs)
        break
      case "freeze":
        if (server) server.program.sleepsUntilTurn = conductor.turns() + deed.turns
        if (deed.leasesLapse) yield* pass(conductor.clock, leaseLapseMs)
        break
      case "stop":
        if (server) yield* server.stop
        break
    }
  }
})

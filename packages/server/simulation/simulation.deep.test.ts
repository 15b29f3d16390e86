/**
 * Simulates many seeds in every test run, and shows that a seed repeats itself
 * and that every checker can complain.
 *
 * Each kind of fault is planted in the rows that the simulations left, and its
 * checker finds it. A plant is undone with its transaction. It is tried on one
 * simulation after another until there is one that it can spoil.
 */
import { describe, expect, layer } from "@effect/vitest"
import { Deferred, Effect, Fiber } from "effect"
import { ask } from "../testing/owner-rows.ts"
import { inNight } from "../testing/tier.ts"
import { check, checkerNames } from "./checkers.ts"
import type { CrashPointName } from "../src/crash-point.ts"
import { type Coverage, faultKinds, makeCoverage } from "./coverage.ts"
import { simulationDatabase } from "./database-for-tests.ts"
import { simulateAll } from "./lanes.ts"
import { places, seedsAimedAt } from "./places.ts"
import type { Plant } from "./plant.ts"
import { plants } from "../testing/plants.ts"
import { readRowsWith } from "./rows.ts"
import { type Project, seeds, Simulated } from "./simulated-for-tests.ts"
import { reportText, simulate } from "./simulate.ts"
import { openSurroundings } from "./surroundings.ts"

/** What is said to the database when the phase of liveness begins. */
const calendarEnds = "interval '1000 days'"

/** Of this database, but for who asks. */
const openTransactions = `select state, query from pg_stat_activity
  where datname = current_database() and xact_start is not null and pid <> pg_backend_pid()`

/** A simulation that goes round in circles ends by its turns; this is for a machine that is busy. */
const withinMs = 1_200_000

/** Crash points that the seeds of `npm test` leave out, as many at most. */
const mostNeverStruck = 16

/** The seeds of a soak are those below, and so many beyond them are aimed at a crash point that they left out. */
const soakSeeds = 81
const mostAims = 12

/** Plants a fault and asks the checkers; where there is no row that it could change there is nothing to find. */
const complaintsAfter = ({ sql, testimony }: Plant, { id, owner, remains }: Project) =>
  Effect.gen(function* () {
    yield* owner.query("begin")
    let changed = 0
    for (const statement of sql)
      changed += (yield* owner.query(statement, statement.includes("$1") ? [id] : [])).rowCount ?? 0
    if (changed === 0 && testimony === undefined) return []
    const acknowledged = { ...remains.acknowledged, ...testimony?.(remains) }
    return check({ ...remains, ...(yield* readRowsWith(owner, id)), acknowledged })
  }).pipe(Effect.ensuring(Effect.ignore(owner.query("rollback"))))

/** Simulates seeds beyond the soak's that aim at a crash point until one has struck it: those of the soak may have missed. */
const aimUntilStruck = Effect.fnUntraced(function* (coverage: Coverage, name: CrashPointName) {
  const surroundings = yield* Effect.flatMap(simulationDatabase, openSurroundings)
  for (const seed of seedsAimedAt(name)) {
    if (seed < soakSeeds) continue
    if (seed > soakSeeds + mostAims * places.length || coverage.ofPlaces().has(name)) return
    const report = yield* Effect.promise(() => simulate(surroundings, seed))
    expect(report.complaints.length === 0 ? "" : reportText(report)).toBe("")
    coverage.note(report.faults)
  }
})

layer(Simulated.layer, { excludeTestServices: true, timeout: withinMs })(
  "Simulations of the whole server on PostgreSQL",
  (it) => {
    describe("A simulation", () => {
      it.effect(
        `keeps every promise whatever crashes, freezes, breaks or is decided at the same time: ${seeds.length} seeds`,
        () =>
          Effect.gen(function* () {
            const { reports } = yield* Simulated
            expect(reports).toHaveLength(seeds.length)
            const broken = reports.filter(({ complaints }) => complaints.length > 0)
            expect(broken.map(reportText).join("\n")).toBe("")
            // So many seeds reach every way in which a run comes to rest.
            const rested = reports.flatMap(({ project }) =>
              (project?.remains.runs ?? []).map((run) => run.pauseReason ?? run.status)
            )
            expect([...new Set(rested)]).toEqual(
              expect.arrayContaining(["completed", "failed", "cancelled", "stepLimit", "timeout", "budget"])
            )
          })
      )

      it.effect(
        inNight(
          "is struck at every crash point and by every kind of fault",
          "is struck at most crash points"
        ),
        () =>
          Effect.gen(function* () {
            const { reports } = yield* Simulated
            const coverage = makeCoverage()
            for (const { faults } of reports) coverage.note(faults)
            for (const name of inNight(coverage.neverStruck(), [])) yield* aimUntilStruck(coverage, name)
            const never = coverage.neverStruck()
            expect(inNight(never, never.slice(mostNeverStruck))).toEqual([])
            const kinds = inNight(faultKinds, ["dieBefore", "dieAfter", "freeze", "lapse", "stop"])
            expect([...coverage.ofKinds().keys()]).toEqual(expect.arrayContaining([...kinds]))
          })
      )

      it.effect(
        "takes the same turns again for the same seed",
        () =>
          Effect.gen(function* () {
            const { reports } = yield* Simulated
            const surroundings = yield* Effect.flatMap(simulationDatabase, openSurroundings)
            const turnsOf = Effect.fnUntraced(function* (seed: number) {
              const turns: Array<string> = []
              const report = yield* Effect.promise(() =>
                simulate(surroundings, seed, (line) => void turns.push(line))
              )
              // What is logged names ids, which are new in each run of a seed.
              return { turns: turns.filter((line) => !line.startsWith("ERROR")), report }
            })
            let compared = 0
            // Which seeds can be repeated depends on what the machine does besides: those are asked that could be just now.
            for (const { seed } of reports.filter(({ isRepeatable }) => isRepeatable)) {
              if (compared === 2) break
              const first = yield* turnsOf(seed)
              const second = yield* turnsOf(seed)
              if (!first.report.isRepeatable || !second.report.isRepeatable) continue
              compared += 1
              expect(second.turns).toEqual(first.turns)
            }
            expect(compared).toBe(2)
          }),
        withinMs
      )

      for (const [phase, isUnderWay] of [
        ["safety", (lines) => lines === 300],
        ["liveness", (_, line) => line.includes(calendarEnds)]
      ] as ReadonlyArray<readonly [string, (lines: number, line: string) => boolean]>)
        it.effect(`moves no more once it is broken off in its ${phase}, and lets go of its database`, () =>
          Effect.gen(function* () {
            const access = yield* simulationDatabase
            const told: Array<string> = []
            const isTime = yield* Deferred.make<void>()
            const lanes = yield* Effect.forkChild(
              simulateAll({
                seeds: [1, 4],
                lanes: 1,
                openDatabase: Effect.succeed(access),
                onReport: () => Effect.die("It came to its end"),
                trace: (line) => {
                  if (isUnderWay(told.push(line), line)) Deferred.doneUnsafe(isTime, Effect.void)
                }
              })
            )
            yield* Deferred.await(isTime)
            yield* Fiber.interrupt(lanes)
            const before = [...told]
            expect(yield* ask(access, openTransactions)).toEqual([])
            expect(told).toEqual(before)
          })
        )
    })

    describe("A checker", () => {
      for (const plant of plants) {
        it.effect(
          `${plant.checker} complains when ${plant.fault}`,
          () =>
            Effect.gen(function* () {
              const { projectAt } = yield* Simulated
              for (let index = 0; ; index++) {
                const project = yield* projectAt(index)
                if (project === undefined)
                  return expect.fail(
                    "no simulation left a row that could be spoiled, or its checker is blind"
                  )
                const complaints = yield* complaintsAfter(plant, project)
                if (complaints.some(({ checker }) => checker === plant.checker)) return
              }
            }),
          withinMs
        )
      }

      it.effect("calm complains when a server logged an error and nothing was broken on purpose", () =>
        Effect.gen(function* () {
          const [project] = (yield* Simulated).projects
          const complaints =
            project && check({ ...project.remains, errors: ["deadlock detected"], excuses: [] })
          expect(complaints).toEqual([{ checker: "calm", detail: "deadlock detected" }])
        })
      )

      it("is shown to complain, each of them", () => {
        expect(new Set([...plants.map((plant) => plant.checker), "calm"])).toEqual(new Set(checkerNames))
      })
    })
  }
)

/**
 * How a server that `npm start` started ends: by Ctrl-C at its terminal, by a manager, by a terminal that closes.
 *
 * Real processes on a real terminal: the terminal tells npm, the launcher and the program, and each of the first
 * two passes on what it was told. Processes that are held (SIGSTOP) stand for a slow machine.
 */
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { describe, expect, it } from "@effect/vitest"
import { Effect, Schedule } from "effect"
import { quickDataFolder } from "../../server/testing/quick-folder.ts"
import { until } from "../testing/invoke.ts"
import { childrenOf, isAlive, nodePath } from "../testing/launch.ts"
import { programOnTerminal } from "../testing/terminal-process.ts"

/** How a line begins that says what becomes of the server. */
const lineOf = (type: "ready" | "stopping" | "stopped") => `{"type":"${type}"`

const checkout = fileURLToPath(new URL("../../..", import.meta.url))

/** `npm start` on a terminal, ready, with the ids of all that runs; PostgreSQL is never left behind. */
const npmStart = Effect.gen(function* () {
  const data = yield* quickDataFolder
  const terminal = yield* programOnTerminal(["npm", "--prefix", checkout, "start", "--", "--json"], {
    PATH: nodePath,
    HOME: data,
    TROPISM_DATA: data,
    TROPISM_MODEL: "scripted:default",
    PORT: "0"
  })
  yield* terminal.sees(lineOf("ready"))
  const [launcher = 0] = childrenOf(terminal.pid)
  const [program = 0] = childrenOf(launcher)
  const postgres = Number(readFileSync(join(data, "postgres", "postmaster.pid"), "utf8").split("\n", 1)[0])
  yield* Effect.addFinalizer(() =>
    Effect.suspend(() => {
      if (!isAlive(postgres)) return Effect.void
      process.kill(postgres, "SIGCONT")
      process.kill(postgres, "SIGQUIT")
      return until(() => !isAlive(postgres))
    })
  )
  return { ...terminal, launcher, program, postgres }
})

/** The sessions of the server. */
const sessionsOf = (postgres: number): ReadonlyArray<number> =>
  childrenOf(postgres).filter((pid) => readFileSync(`/proc/${pid}/cmdline`, "utf8").includes("127.0.0.1"))

/** Does something again and again, as who is impatient does, until it is so. */
const insist = (act: () => void, isSo: () => boolean) =>
  Effect.sync(() => {
    const so = isSo()
    if (!so) act()
    return so
  }).pipe(Effect.repeat({ until: (so) => so, schedule: Schedule.spaced("200 millis") }))

/** The same so many times, for as long as the program is there to be told. */
const insistFor = (times: number, program: number, act: () => void) => {
  let told = 0
  return insist(
    () => {
      told++
      act()
    },
    () => told === times || !isAlive(program)
  )
}

const ctrlC = "\u0003"

describe("Requirement: a server that is stopped leaves nothing behind", () => {
  it.live(
    "one Ctrl-C stops in good order, however late it is passed on",
    () =>
      Effect.gen(function* () {
        const { exitCode, launcher, postgres, press, program, seen, sees } = yield* npmStart
        process.kill(postgres, "SIGSTOP")
        process.kill(launcher, "SIGSTOP")
        yield* press(ctrlC)
        yield* sees(lineOf("stopping"))
        yield* insistFor(5, program, () => process.kill(launcher, "SIGINT"))
        process.kill(launcher, "SIGCONT")
        yield* insistFor(5, program, () => process.kill(launcher, "SIGINT"))
        expect(isAlive(program)).toBe(true)
        process.kill(postgres, "SIGCONT")
        yield* exitCode
        expect(seen()).toContain(lineOf("stopped"))
        expect([isAlive(program), isAlive(postgres)]).toEqual([false, false])
      }),
    300_000
  )

  it.live(
    "a second Ctrl-C ends it at once, and PostgreSQL first",
    () =>
      Effect.gen(function* () {
        const { exitCode, postgres, press, program, seen, sees } = yield* npmStart
        for (const pid of sessionsOf(postgres)) process.kill(pid, "SIGSTOP")
        yield* press(ctrlC)
        yield* sees(lineOf("stopping"))
        expect(isAlive(postgres)).toBe(true)
        yield* insist(
          () => Effect.runSync(press(ctrlC)),
          () => !isAlive(program)
        )
        expect(isAlive(postgres)).toBe(false)
        yield* exitCode
        expect(seen()).toContain('"exitCode":1')
      }),
    300_000
  )

  it.live(
    "what a manager and a closed terminal send is one wish to stop, however often it comes",
    () =>
      Effect.gen(function* () {
        const { exitCode, launcher, postgres, program, seen, sees } = yield* npmStart
        process.kill(postgres, "SIGSTOP")
        yield* insistFor(5, program, () => {
          for (const signal of ["SIGTERM", "SIGHUP"]) {
            process.kill(program, signal)
            process.kill(launcher, signal)
          }
        })
        yield* sees(lineOf("stopping"))
        expect(isAlive(program)).toBe(true)
        process.kill(postgres, "SIGCONT")
        yield* exitCode
        expect(seen()).toContain(lineOf("stopped"))
        expect([isAlive(program), isAlive(postgres)]).toEqual([false, false])
      }),
    300_000
  )
})

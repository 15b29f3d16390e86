/**
 * The machine: the program that runs us, the data folder, its disk, file handles and settings.
 */
import { findSettingFaults } from "@tropism/server/settings"
import { Effect, FileSystem, Option, Path } from "effect"
import { ChildProcess, ChildProcessSpawner } from "effect/process"
import { limits } from "../limits.ts"
import type { Environment } from "../settings.ts"
import { formatBytes } from "../terminal/text.ts"
import { fault, type Finding, ok, warn } from "@tropism/domain/finding"

const oldestBun = [1, 4] as const

const examineRuntime = Effect.sync((): Finding => {
  const [major = 0, minor = 0] = Bun.version.split(".").map(Number)
  return major > oldestBun[0] || (major === oldestBun[0] && minor >= oldestBun[1])
    ? ok("runtime", `Bun ${Bun.version}`)
    : fault("runtime", `Bun ${Bun.version} is too old; ${oldestBun.join(".")} is the minimum.`, "npm ci")
})

/** Says whether the folder and what is in it belong to us and to nobody else. */
const examineFolder = ({ dataFolder }: Environment) =>
  Effect.gen(function* () {
    const files = yield* FileSystem.FileSystem
    const path = yield* Path.Path
    const facts = yield* Effect.option(files.stat(dataFolder))
    if (Option.isNone(facts)) {
      const parent = path.dirname(dataFolder)
      const isOpen = yield* Effect.isSuccess(files.access(parent, { writable: true }))
      return isOpen
        ? ok("data folder", `${dataFolder} does not exist yet; the first start creates it.`)
        : fault(
            "data folder",
            `${dataFolder} does not exist and cannot be created.`,
            `mkdir -p ${dataFolder}`
          )
    }
    if (facts.value.type !== "Directory")
      return fault("data folder", `${dataFolder} is not a folder.`, "TROPISM_DATA=… tropism start")
    if (!(yield* Effect.isSuccess(files.access(dataFolder, { readable: true, writable: true }))))
      return fault(
        "data folder",
        `${dataFolder} is not writable by this user.`,
        `sudo chown -R "$USER" ${dataFolder}`
      )
    for (const name of ["token", "database.json", "encryption-key"]) {
      const file = path.join(dataFolder, name)
      const mode = yield* Effect.option(Effect.map(files.stat(file), (one) => one.mode & 0o077))
      if (Option.getOrElse(mode, () => 0) !== 0)
        return fault("data folder", `${file} is a secret but readable by others.`, `chmod 600 ${file}`)
    }
    return ok("data folder", dataFolder)
  })

/** The first line that a program says; none where it cannot be run. */
const saidBy = (command: string, args: ReadonlyArray<string>) =>
  Effect.flatMap(ChildProcessSpawner.ChildProcessSpawner, (spawner) =>
    spawner.lines(ChildProcess.make(command, [...args]))
  ).pipe(Effect.option)

const examineDisk = ({ dataFolder }: Environment) =>
  Effect.gen(function* () {
    const files = yield* FileSystem.FileSystem
    const path = yield* Path.Path
    const place = (yield* Effect.orElseSucceed(files.exists(dataFolder), () => false))
      ? dataFolder
      : path.dirname(dataFolder)
    const lines = Option.getOrElse(yield* saidBy("df", ["-Pk", place]), (): ReadonlyArray<string> => [])
    const free = Number((lines.at(-1) ?? "").split(/\s+/)[3]) * 1024
    if (!Number.isFinite(free) || (free === 0 && lines.length < 2))
      return warn("disk", `The free disk space at ${place} could not be determined.`, `df -h ${place}`)
    const detail = `${formatBytes(free)} are free at ${place}`
    if (free < limits.diskFaultBytes)
      return fault("disk", `Only ${detail}; PostgreSQL stops when it is full.`, `df -h ${place}`)
    return free < limits.diskWarnBytes
      ? warn("disk", `Only ${detail}.`, `df -h ${place}`)
      : ok("disk", `${detail}.`)
  })

const examineHandles = Effect.gen(function* () {
  const lines = yield* saidBy("sh", ["-c", "ulimit -n"])
  const count = Option.match(lines, {
    onNone: () => Number.NaN,
    onSome: ([line = ""]) => (line === "unlimited" ? Infinity : Number(line))
  })
  return count < limits.leastFileHandles
    ? warn(
        "file handles",
        `A process can open ${count} files and connections.`,
        `ulimit -n ${limits.leastFileHandles}`
      )
    : ok("file handles", Number.isFinite(count) ? `${count} at the same time` : "limit unknown")
})

const examineSettings = (environment: Environment) =>
  Effect.map(findSettingFaults(environment), (faults): ReadonlyArray<Finding> =>
    faults.length === 0
      ? [ok("settings", "A server can start with this environment.")]
      : faults.map((said) => fault("settings", said, howToSee(said)))
  )

/** Shows the setting that a sentence names first. */
const howToSee = (said: string): string => {
  const [name] = /\b(?:TROPISM|OPENAI|ANTHROPIC|GOOGLE|OTEL)_[A-Z_]+/.exec(said) ?? []
  return name === undefined ? "tropism start" : `env | grep '^${name}='`
}

export const examineMachine = (environment: Environment) =>
  Effect.all([
    Effect.map(examineRuntime, Array.of),
    Effect.map(examineFolder(environment), Array.of),
    Effect.map(examineDisk(environment), Array.of),
    Effect.map(examineHandles, Array.of),
    examineSettings(environment)
  ]).pipe(Effect.map((parts) => parts.flat()))

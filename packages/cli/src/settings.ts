/**
 * What every command may be told: by flags, else by the environment.
 *
 * Nothing here touches the network or a file except the token's; a wrong value
 * is refused with the variable's name before anything is begun.
 */
import { Config, Effect, FileSystem, Option, Path, Redacted } from "effect"
import { Flag, GlobalFlag } from "effect/cli"
import { type Connection, connectionFault } from "@tropism/client/connection"
import { exitCodes } from "./exit-codes.ts"
import { type Failure, failure } from "./failure.ts"

export const JsonFlag = GlobalFlag.Setting("json")({
  flag: Flag.Boolean("json").pipe(
    Flag.withDescription("Print JSON: one value, or one line per record for streams"),
    Flag.withDefault(false)
  )
})

export const QuietFlag = GlobalFlag.Setting("quiet")({
  flag: Flag.Boolean("quiet").pipe(
    Flag.withAlias("q"),
    Flag.withDescription("Print only results and errors"),
    Flag.withDefault(false)
  )
})

export const ProjectFlag = GlobalFlag.Setting("project")({
  flag: Flag.String("project").pipe(
    Flag.withMetavar("<id or name>"),
    Flag.withDescription("The project, if there are several"),
    Flag.optional
  )
})

export const UrlFlag = GlobalFlag.Setting("url")({
  flag: Flag.String("url").pipe(
    Flag.withMetavar("<address>"),
    Flag.withDescription("The server's URL (default: http://HOST:PORT)"),
    Flag.optional
  )
})

export const TokenFlag = GlobalFlag.Setting("token")({
  flag: Flag.Redacted("token").pipe(
    Flag.withDescription("Default: TROPISM_TOKEN, else $TROPISM_DATA/token"),
    Flag.optional
  )
})

export const globalFlags = [JsonFlag, QuietFlag, ProjectFlag, UrlFlag, TokenFlag] as const

export interface Environment {
  readonly host: string
  readonly port: number
  /** Absolute. */
  readonly dataFolder: string
  readonly databaseUrl: Option.Option<Redacted.Redacted<string>>
  readonly token: Option.Option<Redacted.Redacted<string>>
}

/** A variable that is set to nothing counts as not set. */
const variable = (name: string) =>
  Config.option(Config.String(name)).pipe(Config.map(Option.filter((value) => value.trim() !== "")))

/** Reads the environment of the server and of those who look for it. */
export const readEnvironment: Effect.Effect<Environment, Failure, Path.Path> = Effect.gen(function* () {
  const path = yield* Path.Path
  const values = yield* Config.all({
    host: variable("HOST"),
    port: variable("PORT"),
    data: variable("TROPISM_DATA"),
    database: variable("DATABASE_URL"),
    token: variable("TROPISM_TOKEN")
  }).pipe(Effect.mapError(() => failure("The environment cannot be read.")))
  const portText = Option.getOrElse(values.port, () => "4400")
  const port = /^\d{1,5}$/.test(portText) ? Number(portText) : Number.NaN
  if (!(port <= 65_535))
    return yield* failure(
      `PORT must be a number from 0 to 65535, not "${portText}". Set it to the port to listen on, e.g. PORT=4400.`
    )
  return {
    host: Option.getOrElse(values.host, () => "127.0.0.1"),
    port,
    dataFolder: path.resolve(Option.getOrElse(values.data, () => ".tropism")),
    databaseUrl: Option.map(values.database, (url) => Redacted.make(url)),
    token: Option.map(values.token, (token) => Redacted.make(token))
  }
})

/** The address under which a program on this machine reaches a server that listens there. */
export const addressOf = (host: string, port: number): string => {
  const reachable = host === "0.0.0.0" ? "127.0.0.1" : host === "::" ? "::1" : host
  return `http://${reachable.includes(":") ? `[${reachable}]` : reachable}:${port}`
}

/** Finds the server and the token: flags first, then the environment, then the token's file. */
export const readConnection: Effect.Effect<
  Connection,
  Failure,
  | GlobalFlag.Setting.Identifier<"url">
  | GlobalFlag.Setting.Identifier<"token">
  | FileSystem.FileSystem
  | Path.Path
> = Effect.gen(function* () {
  const environment = yield* readEnvironment
  const url = yield* Option.match(yield* UrlFlag, {
    onNone: () => Effect.succeed(addressOf(environment.host, environment.port)),
    onSome: readUrl
  })
  const given = Option.orElse(yield* TokenFlag, () => environment.token)
  const token = Option.isSome(given) ? given.value : yield* readTokenFile(environment.dataFolder)
  const fault = connectionFault({ url, token })
  return fault === undefined ? { url, token } : yield* failure(fault, exitCodes.usage)
})

const readUrl = (text: string): Effect.Effect<string, Failure> => {
  const url = URL.parse(text)
  return url && (url.protocol === "http:" || url.protocol === "https:")
    ? Effect.succeed(text.replace(/\/+$/, ""))
    : Effect.fail(
        failure(`--url must be a URL such as http://127.0.0.1:4400, not "${text}".`, exitCodes.usage)
      )
}

/** Reads the admin token that a server on this machine has made. */
export const readTokenFile = (
  dataFolder: string
): Effect.Effect<Redacted.Redacted<string>, Failure, FileSystem.FileSystem | Path.Path> =>
  Effect.gen(function* () {
    const files = yield* FileSystem.FileSystem
    const path = yield* Path.Path
    const file = path.join(dataFolder, "token")
    const text = yield* files
      .readFileString(file)
      .pipe(
        Effect.mapError((error) =>
          failure(
            error.reason._tag === "PermissionDenied"
              ? `No permission to read the token in ${file}. Set TROPISM_TOKEN or --token.`
              : `No token was found: TROPISM_TOKEN is not set and ${file} does not exist. Start the server ("tropism start") in this folder, or set TROPISM_TOKEN or TROPISM_DATA.`
          )
        )
      )
    if (text.trim() === "") return yield* failure(`The file ${file} is empty. Set TROPISM_TOKEN or --token.`)
    return Redacted.make(text.trim())
  })

/**
 * `tropism start`: the server in this process, with the console and, if asked for, the demo.
 *
 * The console is built beside the starting server and the demo does not wait
 * for it. Whatever goes wrong around the server is told and the server goes on;
 * only the server's own failure ends the command.
 */
import { Clock, Config, Context, Deferred, Effect, Fiber, Option, Redacted, References } from "effect"
import { Command, Flag, GlobalFlag } from "effect/cli"
import { StopReason } from "@tropism/domain/kill-switch"
import type { Ready } from "@tropism/server/main"
import { withClient } from "../access.ts"
import { type Checkout, findCheckout } from "../checkout.ts"
import { buildConsole, isConsoleStale } from "../console-build.ts"
import { openDemo, prepareDemo } from "../demo.ts"
import { keyVariables, makeDemoFeed, modelSentence } from "../demo-feed.ts"
import { exitCodes } from "../exit-codes.ts"
import { type Failure, failure } from "../failure.ts"
import { showStatus } from "../notice.ts"
import { serverLogLines } from "../server-log.ts"
import { type Environment, JsonFlag, readEnvironment } from "../settings.ts"
import { Screen } from "../terminal/screen.ts"
import { printable } from "../terminal/text.ts"
import { formatDuration } from "../terminal/time.ts"

/** Whoever may end the program early is told by it what to end first. */
export { ExitHooks } from "@tropism/server/database/postgres-programs"

/** Hears that a command has begun that goes on until it is stopped: stopping it is its success. */
export class StandingBegan extends Context.Reference<() => void>("@tropism/cli/commands/StandingBegan", {
  defaultValue: () => () => {}
}) {}

const demoFlag = Flag.Boolean("demo").pipe(
  Flag.withDescription(
    "In a new data folder: import the project's own dependencies and run three agents on them"
  ),
  Flag.withDefault(false)
)

const clusterFlag = Flag.Boolean("cluster").pipe(
  Flag.withDescription(
    "Form a cluster with the other servers of the same DATABASE_URL that use this flag; peers reach this server at TROPISM_CLUSTER_ADDRESS"
  ),
  Flag.withDefault(false)
)

const stoppedFlag = Flag.String("kill-switch").pipe(
  Flag.withDescription(
    "Turn the server's kill switch on for this reason before anything runs, e.g. after restoring a database"
  ),
  Flag.withSchema(StopReason),
  Flag.optional
)

export const startCommand = Command.make(
  "start",
  { demo: demoFlag, cluster: clusterFlag, stopped: stoppedFlag },
  ({ stopped, ...options }) => start({ ...options, stopped: Option.getOrUndefined(stopped) })
).pipe(
  Command.withDescription("Start the server, its database and its console"),
  Command.withExamples([
    { command: "tropism start", description: "Start on http://127.0.0.1:4400 with data in .tropism" },
    {
      command: "PORT=5000 TROPISM_DATA=/srv/tropism tropism start",
      description: "Start on another port with another data folder"
    },
    {
      command: 'tropism start --kill-switch "Restored from Tuesday"',
      description: "Start with all agents stopped, until tropism kill-switch off --server"
    },
    {
      command: "DATABASE_URL=… TROPISM_CLUSTER_ADDRESS=server-1:4500 tropism start --cluster",
      description: "Start one of several servers that share a database"
    }
  ])
)

export const demoCommand = Command.make("demo", {}, () => start({ demo: true })).pipe(
  Command.withDescription("The same as start --demo")
)

interface StartOptions {
  readonly demo: boolean
  readonly cluster?: boolean
  readonly stopped?: string | undefined
}

/** Starts it; with `--json` every line is an object, the first says that the server is ready. */
const start = (options: StartOptions) =>
  Effect.gen(function* () {
    const standingBegan = yield* StandingBegan
    standingBegan()
    const screen = yield* Screen
    const isJson = yield* JsonFlag
    const server = startServer(screen, options)
    yield* isJson ? Effect.provideService(server, Screen, jsonScreen(screen)) : server
  })

/** A screen on which every line that is said is a JSON object. */
const jsonScreen = (screen: Screen["Service"]): Screen["Service"] => {
  const print = (...lines: ReadonlyArray<string>) =>
    screen.print(
      ...lines
        .filter((line) => line.trim() !== "")
        .map((line) => JSON.stringify({ type: "said", text: line.trim() }))
    )
  return { ...screen, print, write: print }
}

const startServer = (raw: Screen["Service"], options: StartOptions) =>
  Effect.gen(function* () {
    const screen = yield* Screen
    const began = yield* Clock.currentTimeMillis
    const environment = yield* readEnvironment
    const checkout = yield* findCheckout
    const isJson = yield* JsonFlag
    const sayReady = isJson
      ? ({ loginLink, stopped, tokenFile, url }: Ready) =>
          raw.print(JSON.stringify({ type: "ready", url, loginLink, tokenFile, stopped }))
      : (_: Ready, tookMs: number) => screen.print(`The server was ready after ${formatDuration(tookMs)}.`)
    const ready = yield* Deferred.make<Ready>()
    yield* showStatus("Starting the server and its database …")
    const consoleBuild = yield* Effect.forkScoped(prepareConsole(checkout))
    const server = yield* Effect.forkScoped(
      runServer(environment, checkout, options, (info) => Deferred.succeed(ready, info))
    )
    const open = Effect.gen(function* () {
      const info = yield* Deferred.await(ready)
      yield* screen.redraw(undefined)
      yield* sayReady(info, (yield* Clock.currentTimeMillis) - began)
      const block = Effect.gen(function* () {
        yield* Fiber.join(consoleBuild)
        if (!isJson) yield* screen.print(...readyBlock(info, environment, screen.paint.link))
      })
      yield* options.demo ? runDemo(info, checkout, block) : block
      return yield* Effect.never
    })
    yield* Effect.raceFirst(Fiber.join(server), open)
  }).pipe(
    Effect.onInterrupt(() => sayStopState(raw, "stopping", "Stopping …")),
    Effect.scoped,
    Effect.onInterrupt(() => sayStopState(raw, "stopped", "Stopped."))
  )

/** Says how far a stop has come; a program reads the `type` of the line. */
const sayStopState = (raw: Screen["Service"], type: "stopping" | "stopped", line: string) =>
  Effect.gen(function* () {
    yield* raw.redraw(undefined)
    yield* raw.print((yield* JsonFlag) ? JSON.stringify({ type }) : line)
  })

/** Runs the server; its log goes to standard error and begins at warnings unless `--log-level` says otherwise. */
const runServer = (
  environment: Environment,
  checkout: Checkout,
  { cluster = false, stopped }: StartOptions,
  onReady: (info: Ready) => Effect.Effect<unknown>
) =>
  Effect.gen(function* () {
    const level = yield* GlobalFlag.LogLevel
    // Loaded here and not above, so that no other command waits for it.
    const { serve } = yield* Effect.promise(() => import("@tropism/server/main"))
    const { clusterAddress } = yield* Effect.promise(() => import("@tropism/server/settings"))
    const serving = Effect.gen(function* () {
      const reached = cluster ? yield* clusterAddress(environment) : undefined
      return yield* serve({
        host: environment.host,
        port: environment.port,
        dataFolder: environment.dataFolder,
        consoleFolder: `${checkout.consoleFolder}/dist`,
        stopped,
        cluster: reached,
        ...(Option.isSome(environment.databaseUrl) ? { databaseUrl: environment.databaseUrl.value } : {}),
        ...(Option.isSome(environment.token) ? { token: environment.token.value } : {}),
        onReady: (info) => Effect.asVoid(onReady(info))
      })
    })
    return yield* serving.pipe(
      Effect.mapError((error) =>
        failure(error.message, error._tag === "FlagUnmet" ? exitCodes.usage : exitCodes.failed)
      ),
      Effect.provideService(
        References.MinimumLogLevel,
        Option.getOrElse(level, () => "Warn" as const)
      ),
      Effect.provide(serverLogLines)
    )
  })

/** Builds the console if it has to be; says so in a line, and never fails. */
const prepareConsole = (checkout: Checkout) =>
  Effect.gen(function* () {
    const screen = yield* Screen
    const say = (yield* JsonFlag) ? () => Effect.void : (line: string) => screen.print(line)
    const build = Effect.gen(function* () {
      if (!(yield* isConsoleStale(checkout))) return
      yield* say("Building the console; this takes a few seconds.")
      const tookMs = yield* buildConsole(checkout, process.execPath)
      yield* say(`The console was built in ${formatDuration(tookMs)}.`)
    })
    yield* Effect.catch(build, (error) =>
      say(
        `The console could not be built: ${error.message}. The server runs without it, or with the previous build.`
      )
    )
  })

const runDemo = (info: Ready, checkout: Checkout, block: Effect.Effect<void>) =>
  Effect.gen(function* () {
    const screen = yield* Screen
    const connection = { url: info.url, token: info.token }
    yield* withClient(connection, (client) =>
      Effect.gen(function* () {
        const demo = yield* openDemo(client, connection)
        if (Option.isNone(demo)) {
          yield* screen.print(
            "The server already has projects, so no demo data was added. Set TROPISM_DATA to a new folder."
          )
          return yield* block
        }
        const isConfigured = yield* hasModel
        const feed = yield* makeDemoFeed(demo.value, {
          url: info.url,
          loginLink: info.loginLink,
          modelSentence: (model) => modelSentence(model, isConfigured)
        })
        const looking = yield* Effect.forkChild(feed.run)
        yield* prepareDemo(demo.value, checkout)
        yield* block
        yield* feed.showStatus
        yield* Fiber.join(looking)
      })
    )
  }).pipe(
    Effect.catch((error: Failure) => Effect.andThen(screenPrint(`The demo stopped: ${error.message}`), block))
  )

const screenPrint = (line: string) => Effect.flatMap(Screen, (screen) => screen.print(line))

/** Whether the environment names a model or holds a key. */
const hasModel = Effect.map(
  Effect.forEach(["TROPISM_MODEL", ...keyVariables], (name) => Config.option(Config.String(name))),
  (values) => values.some((value) => Option.isSome(value) && value.value.trim() !== "")
).pipe(Effect.orElseSucceed(() => false))

/** The last thing a start prints: where to look, where the data lies, how to stop. */
export const readyBlock = (
  info: Ready,
  environment: Environment,
  link: (text: string) => string
): ReadonlyArray<string> => [
  "",
  "  Tropism is running.",
  "",
  `  Open    ${link(info.loginLink)}`,
  "          The link signs in one browser, once; create another with npx tropism link.",
  `  API     ${info.url}/docs`,
  `  Data    ${Option.isSome(environment.databaseUrl) ? `${hostOf(environment.databaseUrl.value)}, ${environment.dataFolder}` : environment.dataFolder}`,
  `  Token   ${info.tokenFile ?? "as set in TROPISM_TOKEN"}`,
  ...(info.stopped === null
    ? []
    : [
        `  Paused  All agents are stopped: ${printable(info.stopped)}`,
        "          npx tropism kill-switch off --server resumes them."
      ]),
  "  Stop    Ctrl-C",
  ""
]

const hostOf = (databaseUrl: Redacted.Redacted<string>): string =>
  `PostgreSQL at ${URL.parse(Redacted.value(databaseUrl))?.host ?? "DATABASE_URL"}`

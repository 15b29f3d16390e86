/**
 * One connection to a foreign MCP server, its promises turned into effects.
 *
 * Flow: graph → outbox → dispatch → run → **tool** → task
 *
 * Each question has a bound in time and each answer one in size; what goes wrong
 * is a fault that says whether the tool may have worked. Nothing is retried.
 */
import { Client, SdkError, SdkErrorCode, SdkHttpError, type Tool } from "@modelcontextprotocol/client"
import type { McpTransport } from "@tropism/domain/mcp-server"
import { Clock, Config, Context, Deferred, Effect, Option, Redacted, type Scope } from "effect"
import { toolLimits } from "../limits.ts"
import { foreignLimits } from "./foreign-limits.ts"
import { type Cursor, repairPages, walkPages } from "./foreign-lists.ts"
import { type CallTool, makeCalls } from "./foreign-asking.ts"
import { faultLike, ForeignFault, lineOf, NeverSent, toFault, unanswered, unmade } from "./foreign-fault.ts"
import { checkPermit, mayEndHere } from "./foreign-permit.ts"
import { revealSecrets, scrubber } from "./foreign-secrets.ts"
import { admitTasks, taskCapabilities } from "./foreign-tasks.ts"
import { httpTransport } from "./http-transport.ts"
import type { Bearer, BearerToken } from "./oauth-grants.ts"
import { stdioTransport } from "./stdio-transport.ts"

export interface ForeignClient {
  /** What the server lists, each name once. */
  readonly listTools: Effect.Effect<ReadonlyArray<Tool>, ForeignFault>
  /** The tools of the last list that were left out of it, each with the reason. */
  readonly unfit: () => ReadonlyArray<string>
  /** Why the server may list more than the last list has; without it every list is whole. */
  readonly missing?: () => ForeignFault | undefined
  /** Makes a call, once. */
  readonly call: CallTool
  /** Asks what happened of a kind of event; nobody has judged the answer. A fault says whether another connection may do better. */
  readonly pollEvents: (params: Record<string, unknown>) => Effect.Effect<unknown, ForeignFault>
  /** Whether the server answers anything at all, within a short bound. */
  readonly isAlive: Effect.Effect<boolean>
  readonly isClosed: () => boolean
  /** Waits until the connection is closed. */
  readonly closed: Effect.Effect<void>
  /** Whether the last list is no more what the server lists: it has said so since, or has not listed when it was asked again. */
  readonly hasNews: () => boolean
  /** Takes every secret of the connection out of a text. */
  readonly scrub: (text: string) => string
}

/** How a server is connected to. A seam: a simulation has servers of its own. */
export class ForeignConnecting extends Context.Reference<
  (
    name: string,
    transport: McpTransport,
    bearer: Bearer | undefined
  ) => Effect.Effect<ForeignClient, ForeignFault, Scope.Scope>
>("@tropism/server/tool/ForeignConnecting", { defaultValue: () => connectForeign }) {}

/** Connects to a server and shakes hands, until the scope ends. */
export const connectForeign = Effect.fn("connectForeign")(function* (
  name: string,
  transport: McpTransport,
  bearer: Bearer | undefined
): Effect.fn.Return<ForeignClient, ForeignFault, Scope.Scope> {
  yield* checkPermit(transport)
  const { lastWords, make, scrub } = yield* transportOf(name, transport, bearer)
  const isProgram = transport.type === "stdio"
  const scrubbed = (fault: ForeignFault) => faultLike(fault, { message: scrub(fault.message) })
  const attempt = (isOld: boolean) =>
    Effect.gen(function* () {
      const client = new Client(
        { name: "tropism", version: "1" },
        {
          capabilities: taskCapabilities,
          versionNegotiation: { mode: "auto", probe: { timeoutMs: foreignLimits.probeTimeoutMs } },
          inputRequired: { autoFulfill: false }
        }
      )
      // The wire's end comes before the client's: a session is ended while requests can still be sent.
      yield* Effect.addFinalizer(() => Effect.ignore(Effect.tryPromise(() => client.close())))
      const wire = yield* make
      const unfit: ReadonlyArray<string> = []
      const missing: ForeignFault | undefined = undefined as ForeignFault | undefined
      const state = { isClosed: false, hasNews: false, unfit, missing }
      repairPages(wire, () => client.getProtocolEra() === "modern")
      admitTasks(wire)
      const closed = Deferred.makeUnsafe<void>()
      const onclose = () => {
        state.isClosed = true
        Deferred.doneUnsafe(closed, Effect.void)
      }
      const call = makeCalls(client)
      Object.assign(client, { onclose })
      client.setNotificationHandler("notifications/tools/list_changed", () => {
        state.hasNews = true
      })
      yield* asked(isProgram, foreignLimits.connectTimeoutMs, "did not shake hands", () =>
        client.connect(wire, {
          timeout: toolLimits.sdkTimeoutMs,
          ...(isOld ? { prior: { kind: "legacy" } } : {})
        })
      )
      return { call, client, closed, state }
    })
  // Some older servers end, or break, when they are asked something before the handshake: once more without.
  const { call, client, closed, state } = yield* Effect.catchIf(
    attempt(false),
    ({ isProbe }) => isProbe,
    () => attempt(true)
  ).pipe(
    Effect.catch(({ fault, hasEnded }) =>
      Effect.flatMap(hasEnded ? lastWords : Effect.succeed(""), (line) =>
        Effect.fail(
          scrubbed(
            line === ""
              ? fault
              : faultLike(fault, { message: `${fault.message}. It last wrote: ${line}`, isOurs: false })
          )
        )
      )
    )
  )
  const ask = <A>(timeoutMs: number, what: string, question: (signal: AbortSignal) => Promise<A>) =>
    Effect.mapError(asked(isProgram, timeoutMs, what, question), ({ fault }) => scrubbed(fault))
  const page = (cursor: Cursor | undefined) =>
    ask(foreignLimits.listTimeoutMs, "did not list its tools", (signal) =>
      client.listTools(
        // A number goes back as it came, though the SDK's type knows text alone.
        cursor === undefined ? undefined : { cursor: cursor as string },
        { cacheMode: "bypass", timeout: toolLimits.sdkTimeoutMs, signal }
      )
    )
  const listTools = Effect.suspend(() => {
    state.hasNews = false
    return walkPages(page).pipe(
      Effect.mapError((fault) =>
        fault.isSignedOut === true || fault.message.startsWith(unlisted)
          ? fault
          : faultLike(fault, { message: `${unlisted}: ${fault.message}` })
      ),
      Effect.map((listed) => {
        state.unfit = listed.unfit.map(scrub)
        state.missing = listed.missing
        // What is missing is asked for again.
        if (listed.missing !== undefined) state.hasNews = true
        return listed.tools
      }),
      // What it lists is not known by now, whatever it listed before.
      Effect.onError(() => Effect.sync(() => void (state.hasNews = true)))
    )
  })
  return {
    listTools,
    unfit: () => state.unfit,
    missing: () => state.missing,
    call: (tool, args) => Effect.mapError(call(tool, args), scrubbed),
    closed: Deferred.await(closed),
    pollEvents: (params) =>
      offersEvents(client)
        ? Effect.mapError(pollEvents(client, params), scrubbed)
        : // A program says the same as long as it runs; at an address there may be another server by now.
          Effect.fail(noEvents(!isProgram)),
    isAlive: isAnswering(client),
    isClosed: () => state.isClosed,
    hasNews: () => state.hasNews,
    scrub
  }
})

/** How the reason begins why a server that was reached has no list. */
const unlisted = "The server did not list its tools"

const pollEvents = (client: Client, params: Record<string, unknown>) =>
  Effect.tryPromise({
    try: (signal): Promise<unknown> =>
      client.request({ method: "events/poll", params }, anything, {
        timeout: toolLimits.sdkTimeoutMs,
        signal
      }),
    catch: toFault
  }).pipe(
    Effect.timeoutOrElse({
      duration: foreignLimits.pollTimeoutMs,
      orElse: () =>
        Effect.fail(
          unanswered(
            `The server did not say what happened within ${foreignLimits.pollTimeoutMs} milliseconds`
          )
        )
    })
  )

const noEvents = (isBroken: boolean) =>
  new ForeignFault({
    outcome: "answered",
    message: "The server does not offer events (io.modelcontextprotocol/events)",
    isBroken
  })

/** Whether the server says that it knows the Events extension; older ones say so beside the other capabilities. */
const offersEvents = (client: Client): boolean => {
  const capabilities: Record<string, unknown> = client.getServerCapabilities() ?? {}
  const extensions = capabilities["extensions"]
  return (
    "events" in capabilities ||
    (typeof extensions === "object" && extensions !== null && "io.modelcontextprotocol/events" in extensions)
  )
}

/** Asks what every server of the revision knows; a refusal is an answer, too. */
const isAnswering = (client: Client): Effect.Effect<boolean> => {
  const isOld = (client.getNegotiatedProtocolVersion() ?? "") < "2026"
  return Effect.tryPromise({
    try: (signal): Promise<unknown> => {
      const options = { timeout: toolLimits.sdkTimeoutMs, signal }
      return isOld ? client.ping(options) : client.discover(options)
    },
    catch: toFault
  }).pipe(
    Effect.match({ onSuccess: () => true, onFailure: ({ outcome }) => outcome === "answered" }),
    Effect.timeoutOrElse({ duration: foreignLimits.pingTimeoutMs, orElse: () => Effect.succeed(false) })
  )
}

/** Takes every answer as it came; whoever asked judges it. */
const anything = {
  "~standard": { version: 1, vendor: "tropism", validate: (value: unknown) => ({ value }) }
} as const

/** What went wrong while shaking hands, and whether the first question was too much for the server. */
interface Failure {
  readonly fault: ForeignFault
  readonly isProbe: boolean
  /** The other side has ended, and may have said why. */
  readonly hasEnded: boolean
}

/** Asks something that has no effect: whatever goes wrong, nothing was done. A connection over which the server answered no is as good as before. */
const asked = <A>(
  isProgram: boolean,
  timeoutMs: number,
  what: string,
  question: (signal: AbortSignal) => Promise<A>
): Effect.Effect<A, Failure> =>
  Effect.tryPromise({
    try: question,
    catch: (error): Failure => ({
      fault: asUnmade(toFault(error)),
      isProbe:
        error instanceof SdkError &&
        error.code === SdkErrorCode.EraNegotiationFailed &&
        (isProgram || error instanceof SdkHttpError),
      hasEnded:
        error instanceof NeverSent ||
        (error instanceof SdkError && error.code === SdkErrorCode.ConnectionClosed)
    })
  }).pipe(
    Effect.timeoutOrElse({
      duration: timeoutMs,
      orElse: () =>
        Effect.fail({
          fault: unmade(`The server ${what} within ${timeoutMs} milliseconds`),
          isProbe: false,
          hasEnded: false
        })
    })
  )

const asUnmade = (fault: ForeignFault): ForeignFault =>
  faultLike(fault, { outcome: "unmade", isBroken: fault.isBroken || fault.outcome !== "answered" })

/** How the wire is made, and what must not be told of it. */
const transportOf = Effect.fnUntraced(function* (
  name: string,
  transport: McpTransport,
  bearer: Bearer | undefined
) {
  if (transport.type === "http") {
    const { secrets, values } = yield* revealSecrets(transport.headers)
    const isLocalAllowed = yield* mayEndHere(transport)
    const { noted, scrub } = scrubbingTokens(secrets, bearer)
    return {
      make: httpTransport({ url: transport.url, headers: values, isLocalAllowed, bearer: noted }),
      lastWords: Effect.succeed(""),
      scrub
    }
  }
  const { secrets, values } = yield* revealSecrets(transport.env)
  const scrub = scrubber(secrets)
  const log = yield* makeLineLog(name, scrub)
  let last = ""
  const silent = Deferred.makeUnsafe<void>()
  const onLine = (line: string) => {
    if (line.trim() !== "") last = lineOf(line)
    log(line)
  }
  const onSilence = () => Deferred.doneUnsafe(silent, Effect.void)
  /** What a program wrote last before it ended; its end may be known before its words are. */
  const lastWords = Deferred.await(silent).pipe(
    Effect.timeoutOption(foreignLimits.lastWordsMs),
    Effect.map(() => last)
  )
  const env = { ...(yield* inherited), ...values }
  return {
    make: stdioTransport({ command: transport.command, args: transport.args ?? [], env, onLine, onSilence }),
    lastWords,
    scrub
  }
})

/** Takes the tokens of a sign-in out of what is told, too, as they come. */
const scrubbingTokens = (secrets: ReadonlyArray<Redacted.Redacted>, bearer: Bearer | undefined) => {
  if (bearer === undefined) return { noted: undefined, scrub: scrubber(secrets) }
  const seen = new Map<string, Redacted.Redacted>()
  let scrub = scrubber(secrets)
  const note = ({ value }: BearerToken) => {
    const text = Redacted.value(value)
    if (seen.has(text)) return
    const [oldest] = seen.keys()
    if (seen.size >= foreignLimits.scrubbedTokens && oldest !== undefined) seen.delete(oldest)
    seen.set(text, value)
    scrub = scrubber([...secrets, ...seen.values()])
  }
  const noting = (token: Effect.Effect<BearerToken, ForeignFault>) =>
    Effect.tap(token, (found) => Effect.sync(() => note(found)))
  const noted: Bearer = {
    ...bearer,
    token: noting(bearer.token),
    renewed: (refused) => noting(bearer.renewed(refused))
  }
  return { noted, scrub: (text: string) => scrub(text) }
}

/** What a program needs to run at all; nothing else of our environment reaches it. */
const inherited = Effect.gen(function* () {
  const env: Record<string, string> = {}
  for (const name of ["PATH", "HOME", "USER", "LOGNAME", "SHELL", "TERM", "TMPDIR", "LANG"]) {
    const value = yield* Effect.orElseSucceed(Config.option(Config.String(name)), () => Option.none())
    if (Option.isSome(value)) env[name] = value.value
  }
  return env
})

/** Logs what a program complains of, so many lines a minute. */
const makeLineLog = Effect.fnUntraced(function* (server: string, scrub: (text: string) => string) {
  const clock = yield* Clock.Clock
  const run = Effect.runForkWith(yield* Effect.context<never>())
  let minute = 0
  let lines = 0
  return (line: string): void => {
    const now = Math.floor(clock.currentTimeMillisUnsafe() / 60_000)
    lines = now === minute ? lines + 1 : 1
    minute = now
    if (lines <= foreignLimits.logLinesPerMinute && line.trim() !== "")
      run(Effect.logInfo("An MCP server wrote to its error stream", { server, line: scrub(lineOf(line)) }))
  }
})

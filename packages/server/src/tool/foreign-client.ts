/**
 * One connection to a foreign MCP server, its promises turned into effects.
 *
 * Flow: graph → outbox → dispatch → run → **tool** → task
 *
 * Each question has a bound in time and each answer one in size; what goes wrong
 * is a fault that says whether the tool may have worked. Nothing is retried.
 */
import { type CallToolResult, Client, SdkError, SdkErrorCode, type Tool } from "@modelcontextprotocol/client"
import type { McpTransport } from "@tropism/domain/mcp-server"
import { Clock, Config, Deferred, Effect, Option, type Scope } from "effect"
import { foreignLimits, toolLimits } from "../limits.ts"
import { ForeignFault, lineOf, NeverSent, toFault, unmade } from "./foreign-fault.ts"
import { checkPermit, LocalMcpServers } from "./foreign-permit.ts"
import { revealSecrets, scrubber } from "./foreign-secrets.ts"
import { httpTransport } from "./http-transport.ts"
import { stdioTransport } from "./stdio-transport.ts"
import { leaveOutUnfitTools } from "./unfit-tools.ts"

export interface ForeignClient {
  /** Everything that the server lists, page by page. */
  readonly listTools: Effect.Effect<ReadonlyArray<Tool>, ForeignFault>
  /** The tools of the last list that were left out of it, each with the reason. */
  readonly unfit: () => ReadonlyArray<string>
  /** Makes a call, once. */
  readonly call: (
    tool: Pick<Tool, "name" | "inputSchema">,
    args: Record<string, unknown>
  ) => Effect.Effect<CallToolResult, ForeignFault>
  readonly isClosed: () => boolean
  /** Whether the server has said since the last list that its tools are others. */
  readonly hasNews: () => boolean
  /** Takes every secret of the connection out of a text. */
  readonly scrub: (text: string) => string
}

/** Connects to a server and shakes hands, until the scope ends. */
export const connectForeign = Effect.fn("connectForeign")(function* (
  name: string,
  transport: McpTransport
): Effect.fn.Return<ForeignClient, ForeignFault, Scope.Scope> {
  yield* checkPermit(transport)
  const { lastWords, make, scrub } = yield* transportOf(name, transport)
  const scrubbed = ({ isBroken, message, outcome }: ForeignFault) =>
    new ForeignFault({ outcome, isBroken, message: scrub(message) })
  const attempt = (isOld: boolean) =>
    Effect.gen(function* () {
      const wire = yield* make
      const client = new Client(
        { name: "tropism", version: "1" },
        {
          versionNegotiation: { mode: "auto", probe: { timeoutMs: foreignLimits.probeTimeoutMs } },
          inputRequired: { autoFulfill: false },
          listMaxPages: foreignLimits.toolPages
        }
      )
      const unfit: Array<string> = []
      const state = { isClosed: false, hasNews: false, unfit }
      leaveOutUnfitTools(wire, (tool) => state.unfit.push(scrub(tool)))
      Object.assign(client, { onclose: () => Object.assign(state, { isClosed: true }) })
      client.setNotificationHandler("notifications/tools/list_changed", () => {
        state.hasNews = true
      })
      yield* Effect.addFinalizer(() => Effect.ignore(Effect.tryPromise(() => client.close())))
      yield* asked(foreignLimits.connectTimeoutMs, "did not shake hands", () =>
        client.connect(wire, {
          timeout: toolLimits.sdkTimeoutMs,
          ...(isOld ? { prior: { kind: "legacy" } } : {})
        })
      )
      return { client, state }
    })
  // Some older programs end when they are asked something before the handshake: they are started once more without.
  const { client, state } = yield* Effect.catchIf(
    attempt(false),
    ({ isProbe }) => isProbe && transport.type === "stdio",
    () => attempt(true)
  ).pipe(
    Effect.catch(({ fault, hasEnded }) =>
      Effect.flatMap(hasEnded ? lastWords : Effect.succeed(""), (line) =>
        Effect.fail(scrubbed(line === "" ? fault : unmade(`${fault.message}. It last wrote: ${line}`)))
      )
    )
  )
  const ask = <A>(timeoutMs: number, what: string, question: (signal: AbortSignal) => Promise<A>) =>
    Effect.mapError(asked(timeoutMs, what, question), ({ fault }) => scrubbed(fault))
  const listTools = Effect.suspend(() => {
    state.hasNews = false
    state.unfit = []
    return ask(foreignLimits.listTimeoutMs, "did not list its tools", (signal) =>
      client.listTools(undefined, { cacheMode: "bypass", timeout: toolLimits.sdkTimeoutMs, signal })
    )
  })
  return {
    listTools: Effect.map(listTools, ({ tools }) => tools),
    unfit: () => state.unfit,
    call: (tool, args) =>
      Effect.mapError(
        Effect.tryPromise({
          try: (signal) =>
            client.callTool(
              { name: tool.name, arguments: args },
              {
                timeout: toolLimits.sdkTimeoutMs,
                signal,
                toolDefinition: { name: tool.name, inputSchema: tool.inputSchema }
              }
            ),
          catch: toFault
        }),
        scrubbed
      ),
    isClosed: () => state.isClosed,
    hasNews: () => state.hasNews,
    scrub
  }
})

/** What went wrong while shaking hands, and whether the first question was too much for the server. */
interface Failure {
  readonly fault: ForeignFault
  readonly isProbe: boolean
  /** The other side has ended, and may have said why. */
  readonly hasEnded: boolean
}

/** Asks something that has no effect: whatever goes wrong, nothing was done. */
const asked = <A>(
  timeoutMs: number,
  what: string,
  question: (signal: AbortSignal) => Promise<A>
): Effect.Effect<A, Failure> =>
  Effect.tryPromise({
    try: question,
    catch: (error): Failure => ({
      fault: unmade(toFault(error).message),
      isProbe: error instanceof SdkError && error.code === SdkErrorCode.EraNegotiationFailed,
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

/** How the wire is made, and what must not be told of it. */
const transportOf = Effect.fnUntraced(function* (name: string, transport: McpTransport) {
  if (transport.type === "http") {
    const { secrets, values } = yield* revealSecrets(transport.headers)
    const isLocalAllowed = yield* LocalMcpServers
    return {
      make: httpTransport({ url: transport.url, headers: values, isLocalAllowed }),
      lastWords: Effect.succeed(""),
      scrub: scrubber(secrets)
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

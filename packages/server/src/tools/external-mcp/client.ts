/**
 * One connection to a foreign MCP server, with the SDK's promises as effects.
 *
 * Every request has a timeout and every answer a size limit. A fault states whether the tool may have run. Nothing is
 * retried.
 */
import { type ChildProcessByStdio, spawn } from "node:child_process"
import type { Readable, Writable } from "node:stream"
import {
  Client,
  SdkError,
  SdkErrorCode,
  SdkHttpError,
  type Tool,
  isJSONRPCErrorResponse,
  isJSONRPCRequest,
  isJSONRPCResultResponse,
  type JSONRPCMessage,
  ReadBuffer,
  type RequestId,
  serializeMessage,
  type Transport,
  type CallToolResult,
  isInputRequiredResult,
  ProtocolError,
  ProtocolErrorCode
} from "@modelcontextprotocol/client"
import type { McpTransport } from "@tropism/domain/mcp-server"
import { beginningOf } from "@tropism/domain/text-beginning"
import { Clock, Config, Context, Deferred, Effect, Option, Redacted, type Scope, Result } from "effect"
import { toolLimits } from "../../limits.ts"
import {
  faultLike,
  ExternalFault,
  lineOf,
  NeverSent,
  toFault,
  unanswered,
  unmade,
  checkPermit,
  mayEndHere,
  tooLong
} from "./faults.ts"
import { httpTransport } from "./http-transport.ts"
import { externalLimits } from "./limits.ts"
import type { Bearer, BearerToken } from "./oauth-grants.ts"
import {
  admitTasks,
  taskCapabilities,
  awaitTask,
  taskIn,
  wantedIn,
  type Wanted,
  wantsWords
} from "./results.ts"
import { revealSecrets, scrubber } from "./secrets.ts"
import { type Cursor, repairPages, walkPages, withoutNullsInLines } from "./tool-listing.ts"

export interface ExternalClient {
  /** The server's tools, each name once. */
  readonly listTools: Effect.Effect<ReadonlyArray<Tool>, ExternalFault>
  /** The tools that the last list left out, with reasons. */
  readonly unfit: () => ReadonlyArray<string>
  /** Why the last list may be incomplete; a connection without this always lists completely. */
  readonly missing?: () => ExternalFault | undefined
  /** Makes a call once. */
  readonly call: CallTool
  /** Polls for events of one kind; the answer is unchecked. A fault states whether a new connection may help. */
  readonly pollEvents: (params: Record<string, unknown>) => Effect.Effect<unknown, ExternalFault>
  /** Whether the server answers at all, within a short timeout. */
  readonly isAlive: Effect.Effect<boolean>
  readonly isClosed: () => boolean
  /** Completes when the connection is closed. */
  readonly closed: Effect.Effect<void>
  /** Whether the last list is outdated: the server sent a change notification, or failed to list again. */
  readonly hasNews: () => boolean
  /** Removes every secret of the connection from a text. */
  readonly scrub: (text: string) => string
}

/** How to connect to a server; the simulation replaces it. */
export class ExternalConnecting extends Context.Reference<
  (
    name: string,
    transport: McpTransport,
    bearer: Bearer | undefined
  ) => Effect.Effect<ExternalClient, ExternalFault, Scope.Scope>
>("@tropism/server/tool/ExternalConnecting", { defaultValue: () => connectExternal }) {}

/** Connects to a server and initializes the session, until the scope ends. */
export const connectExternal = Effect.fn("connectExternal")(function* (
  name: string,
  transport: McpTransport,
  bearer: Bearer | undefined
): Effect.fn.Return<ExternalClient, ExternalFault, Scope.Scope> {
  yield* checkPermit(transport)
  const { lastWords, make, scrub } = yield* transportOf(name, transport, bearer)
  const isProgram = transport.type === "stdio"
  const scrubbed = (fault: ExternalFault) => faultLike(fault, { message: scrub(fault.message) })
  const attempt = (isOld: boolean) =>
    Effect.gen(function* () {
      const client = new Client(
        { name: "tropism", version: "1" },
        {
          capabilities: taskCapabilities,
          versionNegotiation: { mode: "auto", probe: { timeoutMs: externalLimits.probeTimeoutMs } },
          inputRequired: { autoFulfill: false }
        }
      )
      // The transport's finalizer runs before the client's: a session is ended while requests can still be sent.
      yield* Effect.addFinalizer(() => Effect.ignore(Effect.tryPromise(() => client.close())))
      const wire = yield* make
      const unfit: ReadonlyArray<string> = []
      const missing: ExternalFault | undefined = undefined as ExternalFault | undefined
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
      yield* asked(isProgram, externalLimits.connectTimeoutMs, "did not shake hands", () =>
        client.connect(wire, {
          timeout: toolLimits.sdkTimeoutMs,
          ...(isOld ? { prior: { kind: "legacy" } } : {})
        })
      )
      return { call, client, closed, state }
    })
  // Some older servers exit or fail on a request before the handshake: try once more without it.
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
    ask(externalLimits.listTimeoutMs, "did not list its tools", (signal) =>
      client.listTools(
        // A numeric cursor is sent back unchanged, though the SDK's type only knows text.
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
        // Missing tools are requested again.
        if (listed.missing !== undefined) state.hasNews = true
        return listed.tools
      }),
      // After a failure the current list is unknown.
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
        : // A program reports the same as long as it runs; at an address there may be another server by now.
          Effect.fail(noEvents(!isProgram)),
    isAlive: isAnswering(client),
    isClosed: () => state.isClosed,
    hasNews: () => state.hasNews,
    scrub
  }
})

/** Prefix of the reason when a reachable server has no list. */
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
      duration: externalLimits.pollTimeoutMs,
      orElse: () =>
        Effect.fail(
          unanswered(
            `The server did not say what happened within ${externalLimits.pollTimeoutMs} milliseconds`
          )
        )
    })
  )

const noEvents = (isBroken: boolean) =>
  new ExternalFault({
    outcome: "answered",
    message: "The server does not offer events (io.modelcontextprotocol/events)",
    isBroken
  })

/** Whether the server declares the Events extension; older ones declare it beside the capabilities. */
const offersEvents = (client: Client): boolean => {
  const capabilities: Record<string, unknown> = client.getServerCapabilities() ?? {}
  const extensions = capabilities["extensions"]
  return (
    "events" in capabilities ||
    (typeof extensions === "object" && extensions !== null && "io.modelcontextprotocol/events" in extensions)
  )
}

/** Sends a request that every server of the revision knows; a refusal is an answer too. */
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
    Effect.timeoutOrElse({ duration: externalLimits.pingTimeoutMs, orElse: () => Effect.succeed(false) })
  )
}

/** Accepts every answer unchecked; the caller checks it. */
const anything = {
  "~standard": { version: 1, vendor: "tropism", validate: (value: unknown) => ({ value }) }
} as const

/** A failed handshake, and whether the first request broke the server. */
interface Failure {
  readonly fault: ExternalFault
  readonly isProbe: boolean
  /** The other side has ended, possibly with a reason. */
  readonly hasEnded: boolean
}

/**
 * Sends a request without side effects, so that every fault counts as `unmade`. After a refusal by the server the
 * connection stays usable.
 */
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

const asUnmade = (fault: ExternalFault): ExternalFault =>
  faultLike(fault, { outcome: "unmade", isBroken: fault.isBroken || fault.outcome !== "answered" })

/** Returns the transport, and the secrets to keep out of messages. */
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
  /** The last output of a program that exited; its exit may be known before its output. */
  const lastWords = Deferred.await(silent).pipe(
    Effect.timeoutOption(externalLimits.lastWordsMs),
    Effect.map(() => last)
  )
  const env = { ...(yield* inherited), ...values }
  return {
    make: stdioTransport({ command: transport.command, args: transport.args ?? [], env, onLine, onSilence }),
    lastWords,
    scrub
  }
})

/** Also removes the tokens of a sign-in from messages, as they are issued. */
const scrubbingTokens = (secrets: ReadonlyArray<Redacted.Redacted>, bearer: Bearer | undefined) => {
  if (bearer === undefined) return { noted: undefined, scrub: scrubber(secrets) }
  const seen = new Map<string, Redacted.Redacted>()
  let scrub = scrubber(secrets)
  const note = ({ value }: BearerToken) => {
    const text = Redacted.value(value)
    if (seen.has(text)) return
    const [oldest] = seen.keys()
    if (seen.size >= externalLimits.scrubbedTokens && oldest !== undefined) seen.delete(oldest)
    seen.set(text, value)
    scrub = scrubber([...secrets, ...seen.values()])
  }
  const noting = (token: Effect.Effect<BearerToken, ExternalFault>) =>
    Effect.tap(token, (found) => Effect.sync(() => note(found)))
  const noted: Bearer = {
    ...bearer,
    token: noting(bearer.token),
    renewed: (refused) => noting(bearer.renewed(refused))
  }
  return { noted, scrub: (text: string) => scrub(text) }
}

/** The environment variables that a program needs to run; it inherits no others. */
const inherited = Effect.gen(function* () {
  const env: Record<string, string> = {}
  for (const name of ["PATH", "HOME", "USER", "LOGNAME", "SHELL", "TERM", "TMPDIR", "LANG"]) {
    const value = yield* Effect.orElseSucceed(Config.option(Config.String(name)), () => Option.none())
    if (Option.isSome(value)) env[name] = value.value
  }
  return env
})

/** Logs a program's error stream, up to a number of lines per minute. */
const makeLineLog = Effect.fnUntraced(function* (server: string, scrub: (text: string) => string) {
  const clock = yield* Clock.Clock
  const run = Effect.runForkWith(yield* Effect.context<never>())
  let minute = 0
  let lines = 0
  return (line: string): void => {
    const now = Math.floor(clock.currentTimeMillisUnsafe() / 60_000)
    lines = now === minute ? lines + 1 : 1
    minute = now
    if (lines <= externalLimits.logLinesPerMinute && line.trim() !== "")
      run(Effect.logInfo("An MCP server wrote to its error stream", { server, line: scrub(lineOf(line)) }))
  }
})

// Runs a program whose standard streams carry MCP, one message per line.
//
// The SDK's own transport ends the program but not its children. Here each program leads a process group, and the group is
// ended with it. Effect's ChildProcess needs a platform service that this module does without.

export interface ProgramToRun {
  readonly command: string
  readonly args: ReadonlyArray<string>
  /** The complete environment of the program. */
  readonly env: Readonly<Record<string, string>>
  /** Called with each line of the program's error stream. */
  readonly onLine: (line: string) => void
  /** Called once when the error stream is closed. */
  readonly onSilence: () => void
}

type Child = ChildProcessByStdio<Writable, Readable, Readable>

/** Starts a program when the SDK opens the transport; the scope's end kills its whole group. */
const stdioTransport = (program: ProgramToRun): Effect.Effect<Transport, never, Scope.Scope> =>
  Effect.gen(function* () {
    const exited = Deferred.makeUnsafe<void>()
    let child: Child | undefined
    /** The requests without an answer. */
    const waiting = new Set<RequestId>()
    yield* Effect.addFinalizer(() =>
      child?.pid === undefined ? Effect.void : endGroup(child, child.pid, Deferred.await(exited))
    )
    const transport: StdioShaped = {
      // These two fields let the SDK treat silence as an old server and not as an outage.
      stderr: null,
      get pid() {
        return child?.pid ?? null
      },
      start: () =>
        new Promise((resolve, reject) => {
          child = launch(program, transport, waiting, () => Deferred.doneUnsafe(exited, Effect.void))
          child.on("spawn", () => resolve())
          child.on("error", reject)
        }),
      send: (message) => {
        if (isJSONRPCRequest(message)) waiting.add(message.id)
        return write(child, message)
      },
      close: () => {
        child?.stdin.end()
        return Promise.resolve()
      }
    }
    return transport
  })

interface StdioShaped extends Transport {
  readonly stderr: null
  readonly pid: number | null
}

/** Starts the program and forwards its messages; calls `onEnd` once when it has exited or failed to start. */
const launch = (
  { args, command, env, onLine, onSilence }: ProgramToRun,
  transport: Transport,
  waiting: Set<RequestId>,
  onEnd: () => boolean
): Child => {
  const child = spawn(command, [...args], { env, stdio: ["pipe", "pipe", "pipe"], detached: true })
  const ended = () => {
    if (onEnd()) transport.onclose?.()
  }
  const complain = (error: unknown) =>
    transport.onerror?.(error instanceof Error ? error : new Error(String(error)))
  // A child that inherited the streams may hold them open, so the program's exit ends its group.
  child.on("exit", () => {
    if (child.pid !== undefined) Effect.runSync(signalGroup(child.pid, "SIGTERM"))
    ended()
  })
  child.on("error", ended)
  for (const stream of [child.stdin, child.stdout, child.stderr]) stream.on("error", complain)
  const read = reader((message) => {
    const isAnswer = isJSONRPCResultResponse(message) || isJSONRPCErrorResponse(message)
    if (isAnswer && message.id !== undefined) waiting.delete(message.id)
    transport.onmessage?.(message)
  }, complain)
  child.stdout.on("data", (chunk: Buffer) => {
    if (read(chunk)) return
    // Answers waiting requests before the end is known, so that they get the reason.
    for (const id of waiting) transport.onmessage?.({ jsonrpc: "2.0", id, error: tooLong })
    waiting.clear()
    child.kill("SIGKILL")
  })
  const split = lineSplitter(onLine)
  child.stderr.on("data", (chunk: Buffer) => split(chunk.toString("utf8")))
  child.stderr.on("close", () => {
    // The last line may lack a line break.
    split("\n")
    onSilence()
  })
  return child
}

/** Parses incoming messages; false when one exceeds the size limit. */
const reader = (hear: (message: JSONRPCMessage) => void, complain: (error: unknown) => void) => {
  const buffer = new ReadBuffer({ maxBufferSize: externalLimits.messageMaxBytes })
  /** An incomplete line, one character per byte. */
  let rest = ""
  return (chunk: Buffer): boolean => {
    rest += chunk.toString("latin1")
    const end = rest.lastIndexOf("\n") + 1
    const lines = rest.slice(0, end)
    rest = rest.slice(end)
    if (rest.length > externalLimits.messageMaxBytes) return false
    if (lines === "") return true
    const appended = Result.try(() => buffer.append(Buffer.from(withoutNullsInLines(lines), "latin1")))
    if (Result.isFailure(appended)) return false
    for (;;) {
      // Skips lines that are not messages: some programs print a greeting.
      const read = Result.try(() => buffer.readMessage())
      if (Result.isFailure(read)) complain(read.failure)
      else if (read.success === null) return true
      else hear(read.success)
    }
  }
}

const write = (child: Child | undefined, message: JSONRPCMessage): Promise<void> =>
  new Promise((resolve, reject) => {
    const hasEnded = !child || child.exitCode !== null || child.signalCode !== null || child.stdin.destroyed
    if (hasEnded) reject(new NeverSent("The program has ended"))
    else child.stdin.write(serializeMessage(message), (error) => (error ? reject(error) : resolve()))
  })

/** Calls back with whole lines, each cut to its limit. */
const lineSplitter = (onLine: (line: string) => void) => {
  let rest = ""
  return (text: string): void => {
    const lines = (rest + text).split("\n")
    rest = beginningOf(lines.pop() ?? "", externalLimits.logLineMaxChars)
    for (const line of lines) onLine(beginningOf(line, externalLimits.logLineMaxChars))
  }
}

/** Ends a program and its group: closes its input, then SIGTERM, then SIGKILL. */
const endGroup = (child: Child, pid: number, exited: Effect.Effect<void>) => {
  const patiently = Effect.timeoutOption(exited, externalLimits.endGraceMs)
  return Effect.sync(() => child.stdin.end()).pipe(
    Effect.andThen(patiently),
    Effect.andThen(signalGroup(pid, "SIGTERM")),
    Effect.andThen(patiently),
    Effect.andThen(signalGroup(pid, "SIGKILL")),
    Effect.andThen(
      Effect.sync(() => {
        child.stdout.destroy()
        child.stderr.destroy()
      })
    )
  )
}

/** A group without processes is no error. */
const signalGroup = (pid: number, signal: "SIGTERM" | "SIGKILL") =>
  Effect.ignore(Effect.try({ try: () => process.kill(-pid, signal), catch: (error) => error }))

// Makes one call over a connection, from the request to its outcome.
//
// A server may answer at once, with a task, or with requests for input. The first two give an answer; input requests give a
// fault that quotes them.

type CallTool = (
  tool: Pick<Tool, "name" | "inputSchema">,
  args: Record<string, unknown>
) => Effect.Effect<CallToolResult, ExternalFault>

/** Makes calls over a client's connection; refuses and reports the server's requests for input meanwhile. */
const makeCalls = (client: Client): CallTool => {
  const wanted: Array<Wanted> = []
  let dropped = 0
  // A server of the earlier revision sends a request of its own.
  client.fallbackRequestHandler = ({ method, params }) => {
    wanted.push({ method, params })
    if (wanted.length > externalLimits.wantedTold) {
      wanted.shift()
      dropped += 1
    }
    return Promise.reject(
      new ProtocolError(
        ProtocolErrorCode.MethodNotFound,
        "Nobody answers this here: no capability was declared for it"
      )
    )
  }
  return (tool, args) =>
    Effect.suspend(() => {
      const before = dropped + wanted.length
      /** Requests since the call began; a concurrent call may have caused them. */
      const since = () => wanted.slice(Math.max(0, before - dropped))
      return ask(client, tool, args).pipe(
        Effect.flatMap((answer) => {
          const taskId = taskIn(answer)
          return taskId === undefined ? Effect.succeed(answer) : awaitTask(client, taskId)
        }),
        Effect.map((answer) =>
          answer.isError === true && since().length > 0
            ? {
                ...answer,
                content: [...answer.content, { type: "text" as const, text: wantsWords(since()) }]
              }
            : answer
        ),
        Effect.mapError((fault) =>
          since().length === 0
            ? fault
            : faultLike(fault, {
                message: lineOf(`${fault.message}. ${wantsWords(since())}`),
                isOurs: false
              })
        )
      )
    })
}

const ask = (client: Client, tool: Pick<Tool, "name" | "inputSchema">, args: Record<string, unknown>) =>
  Effect.tryPromise({
    try: (signal) =>
      client.callTool(
        { name: tool.name, arguments: args },
        {
          allowInputRequired: true,
          timeout: toolLimits.sdkTimeoutMs,
          signal,
          toolDefinition: { name: tool.name, inputSchema: tool.inputSchema }
        }
      ),
    catch: toFault
  }).pipe(
    Effect.flatMap((answer): Effect.Effect<CallToolResult, ExternalFault> =>
      isInputRequiredResult(answer)
        ? Effect.fail(
            new ExternalFault({
              outcome: "answered",
              message: lineOf(wantsWords(wantedIn(answer.inputRequests))),
              isBroken: false
            })
          )
        : Effect.succeed(answer)
    )
  )

/**
 * A program whose standard streams carry MCP, one message a line.
 *
 * Flow: graph → outbox → dispatch → run → **tool** → task
 *
 * The SDK's own transport ends the program and not what the program has started.
 * Here each program leads a process group, and the group goes with it. Effect's
 * ChildProcess would need a platform service that this stage does without.
 */
import { type ChildProcessByStdio, spawn } from "node:child_process"
import type { Readable, Writable } from "node:stream"
import {
  isJSONRPCErrorResponse,
  isJSONRPCRequest,
  isJSONRPCResultResponse,
  type JSONRPCMessage,
  ReadBuffer,
  type RequestId,
  serializeMessage,
  type Transport
} from "@modelcontextprotocol/client"
import { beginningOf } from "@tropism/domain/text-beginning"
import { Deferred, Effect, Result, type Scope } from "effect"
import { foreignLimits } from "./foreign-limits.ts"
import { withoutNullsInLines } from "./foreign-lists.ts"
import { NeverSent, tooLong } from "./foreign-fault.ts"

export interface ProgramToRun {
  readonly command: string
  readonly args: ReadonlyArray<string>
  /** The whole environment of the program. */
  readonly env: Readonly<Record<string, string>>
  /** Told each line that the program writes to its error stream. */
  readonly onLine: (line: string) => void
  /** Told once that nobody writes to its error stream any more. */
  readonly onSilence: () => void
}

type Child = ChildProcessByStdio<Writable, Readable, Readable>

/** Starts a program when the SDK says so, until the scope ends: then nothing of it is left. */
export const stdioTransport = (program: ProgramToRun): Effect.Effect<Transport, never, Scope.Scope> =>
  Effect.gen(function* () {
    const exited = Deferred.makeUnsafe<void>()
    let child: Child | undefined
    /** The requests that have no answer yet. */
    const waiting = new Set<RequestId>()
    yield* Effect.addFinalizer(() =>
      child?.pid === undefined ? Effect.void : endGroup(child, child.pid, Deferred.await(exited))
    )
    const transport: StdioShaped = {
      // By this field and the next the SDK knows that silence means an old server here, and no outage.
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

/** Starts the program and hands on what it says; `onEnd` hears once that it has ended, or could not start. */
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
  // Whoever inherited the streams may hold them open: the end of the program is the end of its group.
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
    // Before its end is known: who waits learns why it was ended.
    for (const id of waiting) transport.onmessage?.({ jsonrpc: "2.0", id, error: tooLong })
    waiting.clear()
    child.kill("SIGKILL")
  })
  const split = lineSplitter(onLine)
  child.stderr.on("data", (chunk: Buffer) => split(chunk.toString("utf8")))
  child.stderr.on("close", () => {
    // The last line may lack its end.
    split("\n")
    onSilence()
  })
  return child
}

/** Reads messages out of what comes in; false when one is larger than any may be. */
const reader = (hear: (message: JSONRPCMessage) => void, complain: (error: unknown) => void) => {
  const buffer = new ReadBuffer({ maxBufferSize: foreignLimits.messageMaxBytes })
  /** A line without its end, one character a byte. */
  let rest = ""
  return (chunk: Buffer): boolean => {
    rest += chunk.toString("latin1")
    const end = rest.lastIndexOf("\n") + 1
    const lines = rest.slice(0, end)
    rest = rest.slice(end)
    if (rest.length > foreignLimits.messageMaxBytes) return false
    if (lines === "") return true
    const appended = Result.try(() => buffer.append(Buffer.from(withoutNullsInLines(lines), "latin1")))
    if (Result.isFailure(appended)) return false
    for (;;) {
      // A line that is no message is passed over: programs print greetings.
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

/** Calls back with whole lines, each cut to its bound. */
const lineSplitter = (onLine: (line: string) => void) => {
  let rest = ""
  return (text: string): void => {
    const lines = (rest + text).split("\n")
    rest = beginningOf(lines.pop() ?? "", foreignLimits.logLineMaxChars)
    for (const line of lines) onLine(beginningOf(line, foreignLimits.logLineMaxChars))
  }
}

/** Ends a program and its group: by the end of its input, by a signal, by force. */
const endGroup = (child: Child, pid: number, exited: Effect.Effect<void>) => {
  const patiently = Effect.timeoutOption(exited, foreignLimits.endGraceMs)
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

/** A group of which nobody is left is no error. */
const signalGroup = (pid: number, signal: "SIGTERM" | "SIGKILL") =>
  Effect.ignore(Effect.try({ try: () => process.kill(-pid, signal), catch: (error) => error }))

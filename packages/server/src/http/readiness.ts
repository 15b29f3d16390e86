/**
 * Whether this server should be sent work: not while it stops, and not when a part that moves work along has ended.
 *
 * Flow: **http** → graph → outbox → dispatch → run → tool → task
 *
 * A server that stops says so at once and keeps its doors open for a moment
 * longer, if anybody has asked lately whether it is ready: whoever sends
 * requests to ready servers finds out before the doors close. Whether the
 * database can be written is the database's own answer.
 */
import { Clock, Context, Effect, Layer } from "effect"
import { edgeLimits } from "./edge-limits.ts"

export class Readiness extends Context.Service<
  Readiness,
  {
    /** Why the server should not be sent work, for whoever watches it; undefined when nothing is known. */
    readonly look: Effect.Effect<
      { readonly reason: "stopping" | "partEnded"; readonly detail: string } | undefined
    >
    /** What has ended that should go on for as long as the server does; null where nothing has. Unlike `look` it is nobody's watch. */
    readonly fault: Effect.Effect<string | null>
    /** Whether the server stops. */
    readonly isStopping: Effect.Effect<boolean>
    /** Says that the server stops, and waits for so long if anybody watches it. */
    readonly leave: (noticeMs: number) => Effect.Effect<void>
    /** Runs a loop that is to go on for as long as the server does. */
    readonly depend: <R>(name: string, loop: Effect.Effect<never, never, R>) => Effect.Effect<never, never, R>
  }
>()("@tropism/server/http/Readiness") {
  static readonly layer = Layer.sync(Readiness, () => {
    let isStopping = false
    let lookedAtMs: number | undefined
    const ended: Array<string> = []

    const look = Effect.map(Clock.currentTimeMillis, (nowMs) => {
      lookedAtMs = nowMs
      if (isStopping)
        return { reason: "stopping" as const, detail: "The server is stopping: ask another one" }
      const detail = endedWords()
      return detail === undefined ? undefined : { reason: "partEnded" as const, detail }
    })

    const endedWords = () =>
      ended.length === 0
        ? undefined
        : `A part of the server has ended and must be started again with it: ${ended.join(", ")}`

    const leave = Effect.fnUntraced(function* (noticeMs: number) {
      isStopping = true
      const nowMs = yield* Clock.currentTimeMillis
      const isWatched = lookedAtMs !== undefined && nowMs - lookedAtMs < edgeLimits.watchedMs
      if (isWatched && noticeMs > 0) yield* Effect.sleep(noticeMs)
    })

    const depend = <R>(name: string, loop: Effect.Effect<never, never, R>) =>
      Effect.onExit(loop, () =>
        Effect.suspend(() => {
          if (isStopping) return Effect.void
          ended.push(name)
          return Effect.logError(`The ${name} has ended: nothing that it moves goes on at this server`)
        })
      )

    return Readiness.of({
      look,
      fault: Effect.sync(() => endedWords() ?? null),
      isStopping: Effect.sync(() => isStopping),
      leave,
      depend
    })
  })
}

/**
 * What a person types: lines, Ctrl-C and the end of the input, one after another.
 *
 * While somebody listens, Ctrl-C is a word like any other and ends nothing by
 * itself; whoever listens decides. On a terminal lines are edited and
 * remembered; from a pipe they come as they are.
 */
import { createInterface, type Interface } from "node:readline"
import { Clock, Context, Effect, Layer, Option, Queue, type Scope } from "effect"
import { limits } from "../limits.ts"

export type Typed =
  | { readonly type: "line"; readonly text: string }
  | { readonly type: "interrupt" }
  | { readonly type: "end" }

export interface Listening {
  readonly typed: Queue.Dequeue<Typed>
  /** Asks for the next line. */
  readonly prompt: Effect.Effect<void>
}

export class Keyboard extends Context.Service<
  Keyboard,
  {
    readonly isTerminal: boolean
    /** Listens until the scope ends; lines are read only where they are wanted. */
    readonly listen: (wants: "lines" | "interrupts") => Effect.Effect<Listening, never, Scope.Scope>
  }
>()("tropism/terminal/Keyboard") {
  static readonly layer = Layer.sync(Keyboard, () => {
    const isTerminal = process.stdin.isTTY === true && process.stdout.isTTY === true
    return Keyboard.of({
      isTerminal,
      listen: Effect.fnUntraced(function* (wants) {
        const typed = yield* Queue.bounded<Typed>(limits.typedAhead)
        const offer = (each: Typed) => void Queue.offerUnsafe(typed, each)
        yield* onInterrupts(yield* Clock.Clock, () => offer({ type: "interrupt" }))
        if (wants === "interrupts") return { typed, prompt: Effect.void }
        const lines = yield* reader(isTerminal, offer)
        return { typed, prompt: Effect.sync(() => (isTerminal ? lines.prompt() : undefined)) }
      })
    })
  })
}

/** What is typed, one after another, while something is done now and then. */
export const takingTyped = ({ typed }: Listening) => {
  const ahead: Array<Typed> = []
  const pressed: Effect.Effect<void> = Effect.suspend(() =>
    ahead.length >= limits.typedAhead
      ? Effect.never
      : Effect.flatMap(Queue.take(typed), (each) => {
          if (each.type === "interrupt") return Effect.void
          ahead.push(each)
          return pressed
        })
  )
  return {
    next: Effect.suspend(() => {
      const first = ahead.shift()
      return first ? Effect.succeed(first) : Queue.take(typed)
    }),
    /** Does something until Ctrl-C is pressed, which breaks it off; all else that is typed meanwhile waits its turn. */
    untilPressed: <A, E, R>(effect: Effect.Effect<A, E, R>) =>
      Effect.raceFirst(Effect.asSome(effect), Effect.as(pressed, Option.none<A>()))
  }
}

const reader = (isTerminal: boolean, offer: (typed: Typed) => void) =>
  Effect.acquireRelease(
    Effect.sync((): Interface => {
      const lines = createInterface({
        input: process.stdin,
        ...(isTerminal ? { output: process.stdout, prompt: "> " } : {}),
        terminal: isTerminal,
        crlfDelay: Number.POSITIVE_INFINITY
      })
      lines.on("line", (text) => offer({ type: "line", text }))
      // A terminal in which lines are edited sends no signal.
      lines.on("SIGINT", () => offer({ type: "interrupt" }))
      lines.on("close", () => offer({ type: "end" }))
      return lines
    }),
    (lines) => Effect.sync(() => lines.close())
  )

/** Takes the signal from whoever else would end the program with it, until the scope ends. */
const onInterrupts = (clock: Clock.Clock, does: () => void) =>
  Effect.acquireRelease(
    Effect.sync(() => {
      const others = process.listeners("SIGINT")
      process.removeAllListeners("SIGINT")
      let lastMs = Number.NEGATIVE_INFINITY
      process.on("SIGINT", () => {
        // A terminal tells the launcher too, which passes it on: one press of the key comes twice.
        const nowMs = clock.currentTimeMillisUnsafe()
        if (nowMs - lastMs < limits.sameInterruptMs) return
        lastMs = nowMs
        does()
      })
      return others
    }),
    (others) =>
      Effect.sync(() => {
        process.removeAllListeners("SIGINT")
        for (const other of others) process.on("SIGINT", other)
      })
  )

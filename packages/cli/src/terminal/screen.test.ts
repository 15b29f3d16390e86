/**
 * The screen on a terminal, by what it writes and what a terminal then shows.
 */
import { describe, expect, it } from "@effect/vitest"
import { Effect, Layer, Terminal } from "effect"
import { TerminalCapabilities } from "effect/cli"
import { Screen } from "./screen.ts"

/** A terminal that keeps every write and the lines a person would see. */
const fakeTerminal = (columns: number) => {
  const writes: Array<string> = []
  const layer = Layer.succeed(
    Terminal.Terminal,
    Terminal.make({
      columns: Effect.succeed(columns),
      rows: Effect.succeed(24),
      size: Effect.die("unused"),
      readInput: Effect.die("unused"),
      readLine: Effect.die("unused"),
      display: (text) => Effect.sync(() => void writes.push(text))
    })
  )
  return { writes, layer, seen: () => show(writes.join("")) }
}

/** Interprets carriage return, line feed and erase-to-the-right as a terminal does. */
const show = (text: string): ReadonlyArray<string> => {
  const lines = [""]
  let column = 0
  // eslint-disable-next-line no-control-regex -- it interprets them
  for (const part of text.split(/(\r|\n|\u001B\[K)/)) {
    const line = lines.at(-1) ?? ""
    if (part === "\r") column = 0
    else if (part === "\n") {
      lines.push("")
      column = 0
    } else if (part === "\u001B[K") lines[lines.length - 1] = line.slice(0, column)
    else {
      lines[lines.length - 1] = line.slice(0, column) + part + line.slice(column + part.length)
      column += part.length
    }
  }
  return lines
}

const withScreen = <A, E>(
  terminal: ReturnType<typeof fakeTerminal>,
  isTerminal: boolean,
  body: (screen: Screen["Service"]) => Effect.Effect<A, E>
) =>
  Effect.flatMap(Screen, body).pipe(
    Effect.provide(Layer.provide(Screen.layer, terminal.layer)),
    Effect.provideService(TerminalCapabilities.TerminalCapabilities, {
      canColor: false,
      canAnimate: isTerminal,
      canPrompt: false
    })
  )

describe("Screen", () => {
  it.effect("prints lines above the one that is redrawn, each drawing in one write", () =>
    Effect.gen(function* () {
      const terminal = fakeTerminal(40)
      yield* withScreen(terminal, true, (screen) =>
        Effect.gen(function* () {
          yield* screen.redraw(() => "a longer status line")
          yield* screen.print("first", "second")
          yield* screen.redraw(() => "short")
          expect(terminal.seen()).toEqual(["first", "second", "short"])
          expect(terminal.writes).toHaveLength(3)
        })
      )
    })
  )

  it.effect("takes the redrawn line away at the end", () =>
    Effect.gen(function* () {
      const terminal = fakeTerminal(40)
      yield* withScreen(terminal, true, (screen) =>
        Effect.andThen(
          screen.redraw(() => "busy"),
          screen.print("done")
        )
      )
      expect(terminal.seen()).toEqual(["done", ""])
    })
  )

  it.effect("cuts the redrawn line, so that it never wraps", () =>
    Effect.gen(function* () {
      const terminal = fakeTerminal(10)
      yield* withScreen(terminal, true, (screen) =>
        Effect.gen(function* () {
          yield* screen.redraw((columns) => "x".repeat(columns + 5))
          expect(terminal.seen()).toEqual([`${"x".repeat(8)}…`])
        })
      )
    })
  )

  it.effect("writes no control character where there is no terminal", () =>
    Effect.gen(function* () {
      const terminal = fakeTerminal(0)
      yield* withScreen(terminal, false, (screen) =>
        Effect.gen(function* () {
          expect(yield* screen.width).toBeUndefined()
          yield* screen.redraw(() => "busy")
          yield* screen.print("line")
        })
      )
      expect(terminal.writes).toEqual(["line\n"])
    })
  )
})

/**
 * The one writer of standard output: lines that stay, above one line that is redrawn in place.
 *
 * Each drawing is one write that overwrites and then erases the rest of the
 * line, so nothing flickers, and lines never tear the redrawn one. Where output
 * is no terminal the redrawn line does not exist at all.
 */
import { Context, Effect, Layer, Semaphore, Terminal } from "effect"
import { TerminalCapabilities } from "effect/cli"
import { outputLost, systemCode } from "../failure.ts"
import { coloured, type Paint, plain } from "./paint.ts"
import { cutEnd } from "./text.ts"

export class Screen extends Context.Service<
  Screen,
  {
    readonly paint: Paint
    /** Whether a line can be redrawn in place. */
    readonly isLive: boolean
    /** The width of the terminal in columns; undefined where there is none. */
    readonly width: Effect.Effect<number | undefined>
    /** Prints lines that stay. */
    readonly print: (...lines: ReadonlyArray<string>) => Effect.Effect<void>
    /** Writes as it is, with no end of a line; for words that come piece by piece. */
    readonly write: (text: string) => Effect.Effect<void>
    /** Redraws the last line; undefined takes it away. The text is drawn for the width it is given. */
    readonly redraw: (draw: ((columns: number) => string) | undefined) => Effect.Effect<void>
  }
>()("tropism/terminal/Screen") {
  static readonly layer = Layer.effect(
    Screen,
    Effect.gen(function* () {
      const terminal = yield* Terminal.Terminal
      const { canAnimate, canColor } = yield* TerminalCapabilities.TerminalCapabilities
      // A reader that went away has seen enough: whatever else is to be done is done. What cannot be kept ends the command.
      const write = (text: string) =>
        Effect.catch(terminal.display(text), (error) =>
          systemCode(error) === "EPIPE" ? Effect.void : Effect.die(outputLost(error))
        )
      const lock = yield* Semaphore.make(1)
      const columns = Effect.map(terminal.columns, (count) => (count > 0 ? count : 80))
      let draw: ((columns: number) => string) | undefined

      const lastLine = Effect.map(columns, (count) =>
        draw ? `${cutEnd(draw(count - 1), count - 1)}${eraseRight}` : ""
      )

      const print = (...lines: ReadonlyArray<string>) =>
        lines.length === 0
          ? Effect.void
          : lock.withPermits(1)(
              Effect.flatMap(lastLine, (last) =>
                write(
                  last === ""
                    ? `${lines.join("\n")}\n`
                    : `\r${lines.map((line) => `${line}${eraseRight}\n`).join("")}${last}`
                )
              )
            )

      const redraw = (next: ((columns: number) => string) | undefined) =>
        canAnimate
          ? lock.withPermits(1)(
              Effect.suspend(() => {
                draw = next
                // Written even where no line was: the terminal may have echoed a ^C there.
                if (next === undefined) return write(`\r${eraseRight}`)
                return Effect.flatMap(lastLine, (last) => write(`\r${last}`))
              })
            )
          : Effect.void

      yield* Effect.addFinalizer(() => redraw(undefined))
      return {
        paint: canColor ? coloured : plain,
        isLive: canAnimate,
        width: canAnimate
          ? columns.pipe(Effect.map((count): number | undefined => count))
          : Effect.succeed(undefined),
        print,
        write: (text) => lock.withPermits(1)(write(text)),
        redraw
      }
    })
  )

  /** A screen that is no terminal and keeps what is printed. */
  static readonly layerMemory = (lines: Array<string>): Layer.Layer<Screen> =>
    Layer.succeed(Screen, {
      paint: plain,
      isLive: false,
      width: Effect.succeed(undefined),
      print: (...more) => Effect.sync(() => void lines.push(...more)),
      write: (text) => Effect.sync(() => void lines.push(text)),
      redraw: () => Effect.void
    })
}

/** Erases from the cursor to the end of the line. */
export const eraseRight = "\u001B[K"

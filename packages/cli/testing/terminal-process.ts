/**
 * The command line as a process on a terminal of its own, as a person has it.
 */
import { fileURLToPath } from "node:url"
import { Effect } from "effect"
import { until } from "./invoke.ts"

const main = fileURLToPath(new URL("../src/main.ts", import.meta.url))

/** Starts the command; it is killed with the scope. */
export const onTerminal = (args: ReadonlyArray<string>, environment: Record<string, string>) =>
  programOnTerminal([process.execPath, main, ...args], environment)

/** Starts any program; it is killed with the scope. */
export const programOnTerminal = (command: ReadonlyArray<string>, environment: Record<string, string>) =>
  Effect.map(
    Effect.acquireRelease(
      Effect.sync(() => {
        const screen = { text: "", all: "" }
        const decoder = new TextDecoder()
        const child = Bun.spawn([...command], {
          env: { PATH: process.env["PATH"] ?? "", HOME: "/nowhere", TERM: "xterm", ...environment },
          terminal: {
            cols: 120,
            rows: 40,
            data: (_terminal, bytes) => {
              const text = decoder.decode(bytes, { stream: true })
              screen.text += text
              screen.all += text
            }
          }
        })
        return { child, screen }
      }),
      ({ child }) =>
        Effect.promise(() => {
          child.kill("SIGKILL")
          child.terminal?.close()
          return child.exited
        })
    ),
    ({ child, screen }) => ({
      pid: child.pid,
      /** Presses keys. */
      press: (keys: string) => Effect.sync(() => child.terminal?.write(keys)),
      /** Waits until the screen shows a text behind what was seen before; answers nothing. */
      sees: (text: string) =>
        Effect.flatMap(
          until(() => screen.text.includes(text)),
          () =>
            Effect.sync(() => {
              screen.text = screen.text.slice(screen.text.indexOf(text) + text.length)
            })
        ),
      /** All that the screen was told so far. */
      seen: () => screen.all,
      exitCode: Effect.promise(() => child.exited)
    })
  )

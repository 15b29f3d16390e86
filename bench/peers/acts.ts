/**
 * A peer as a program: it does what it is told over the channel to its parent and answers what it measured.
 *
 * Its clock is the machine's, so that an instant of one process means the same
 * in another.
 */
import { setTimeout as sleep } from "node:timers/promises"

// oxlint-disable-next-line typescript/no-explicit-any -- each act knows the shape of what it is told
export type Act = (input: any) => Promise<unknown>

/** Milliseconds of the machine's clock, finer than a millisecond. */
export const nowMs = (): number => performance.timeOrigin + performance.now()

/** The address of the peer's own database. */
export const databaseUrl = process.env["BENCH_DATABASE_URL"] ?? ""

const say = (message: unknown): void => void process.send?.(message)

/** Serves acts by name until the parent says `stop` or is gone. */
export const serveActs = (
  acts: Readonly<Record<string, Act>>,
  stop: () => Promise<unknown> = () => Promise.resolve()
): void => {
  const end = async (): Promise<void> => {
    await stop().catch(() => undefined)
    process.kill(process.pid, "SIGKILL")
  }
  process.on("message", async ({ act, id, input }: { act: string; id: number; input: unknown }) => {
    if (act === "stop") return end()
    try {
      const serve = acts[act]
      if (serve === undefined) throw new Error(`knows ${Object.keys(acts).join(", ")}, not ${act}`)
      say({ id, answer: await serve(input) })
    } catch (error) {
      say({ id, fault: error instanceof Error ? error.stack : String(error) })
    }
  })
  process.on("disconnect", () => void end())
  say({ ready: true })
}

/** Does something again and again with so many hands and answers how many milliseconds that took. */
export const withHands = async (
  hands: number,
  times: number,
  act: (index: number) => Promise<unknown>
): Promise<number> => {
  const begun = nowMs()
  let next = 0
  const hand = async () => {
    while (next < times) await act(next++)
  }
  await Promise.all(Array.from({ length: hands }, hand))
  return nowMs() - begun
}

/** Begins something at a steady rate and does not wait for one before it begins the next. */
export const atRate = async (
  perSecond: number,
  times: number,
  act: (index: number) => Promise<unknown>
): Promise<void> => {
  const begun = nowMs()
  const acts: Array<Promise<unknown>> = []
  for (let index = 0; index < times; index++) {
    const early = begun + (index * 1_000) / perSecond - nowMs()
    if (early > 0) await sleep(early)
    acts.push(act(index))
  }
  await Promise.all(acts)
}

/** The value in the middle. */
export const median = (values: ReadonlyArray<number>): number =>
  values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN

/** Runs an act several times and answers the median of what each took for one of its steps. */
export const medianPerStep = async (
  { steps, times }: { readonly steps: number; readonly times: number },
  act: () => Promise<unknown>
): Promise<number> => {
  const each: Array<number> = []
  for (let time = 0; time < times; time++) {
    const begun = nowMs()
    await act()
    each.push((nowMs() - begun) / steps)
  }
  return median(each)
}

/** The agent's only tool call and what comes of it, the same for every peer. */
export const toolCall = {
  name: "search_objects",
  arguments: { type: "Nothing", limit: 1 },
  result: { objects: [] }
} as const

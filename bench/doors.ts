/**
 * The bench as a client: requests over kept connections, each with the times at which it began and ended.
 *
 * A refusal is a fault of the bench or of the server and ends the run: a figure
 * made of refused requests would be a lie.
 */
import type { ServerProcess } from "./server-process.ts"

/** Milliseconds of the machine's clock, finer than a millisecond. */
export const nowMs = (): number => performance.timeOrigin + performance.now()

// oxlint-disable-next-line typescript/no-explicit-any -- the bench reads answers of every shape
export type Json = any

export type Send = (method: string, path: string, body?: unknown) => Promise<Json>

export const doorsOf =
  ({ url, token }: ServerProcess): Send =>
  async (method, path, body) => {
    const response = await fetch(url + path, {
      method,
      headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
      ...(body === undefined ? {} : { body: JSON.stringify(body) })
    })
    const text = await response.text()
    if (!response.ok) throw new Error(`${method} ${path} answered ${response.status}: ${text}`)
    return text === "" ? null : JSON.parse(text)
  }

/** How long the bench waits for what must come. */
export const patienceMs = 300_000

/** Looks again and again until what is seen satisfies, and answers it; fails with `what` when that takes too long. */
export const until = async <A>(
  look: () => Promise<A>,
  satisfies: (seen: A) => boolean,
  what: string,
  everyMs = 25
): Promise<A> => {
  const deadline = nowMs() + patienceMs
  for (;;) {
    const seen = await look()
    if (satisfies(seen)) return seen
    if (nowMs() > deadline) throw new Error(`${what}; last seen: ${JSON.stringify(seen)}`)
    await Bun.sleep(everyMs)
  }
}

/** A project of the bench's own, by its path. */
export const newProject = async (send: Send): Promise<{ readonly id: string; readonly path: string }> => {
  const { id } = await send("POST", "/api/projects", { name: "AttemptContext" })
  return { id, path: `/api/projects/${id}` }
}

/** Does something again and again with so many hands, until the time is up or it was done often enough. */
export const withHands = async (
  hands: number,
  bound: { readonly ms: number; readonly times: number },
  act: (index: number) => Promise<void>
): Promise<{ readonly durations: ReadonlyArray<number>; readonly elapsedMs: number }> => {
  const durations: Array<number> = []
  const start = nowMs()
  let next = 0
  const hand = async () => {
    while (next < bound.times && nowMs() - start < bound.ms) {
      const begun = nowMs()
      await act(next++)
      durations.push(nowMs() - begun)
    }
  }
  await Promise.all(Array.from({ length: hands }, hand))
  return { durations, elapsedMs: nowMs() - start }
}

/**
 * Begins something at a steady rate, tells it when it was due, and does not wait for one before it begins the next.
 *
 * **Details** After one that failed it begins no other, lets those that are under way end, and fails with that one's reason.
 */
export const atRate = async (
  perSecond: number,
  times: number,
  act: (index: number, dueMs: number) => Promise<void>
): Promise<void> => {
  const start = nowMs()
  const open = new Set<Promise<void>>()
  const failures: Array<unknown> = []
  for (let index = 0; index < times && failures.length === 0; index++) {
    const due = start + (index * 1_000) / perSecond
    if (due > nowMs()) await Bun.sleep(due - nowMs())
    const one: Promise<void> = act(index, due)
      .catch((failure: unknown) => void failures.push(failure))
      .then(() => void open.delete(one))
    open.add(one)
  }
  await Promise.all(open)
  if (failures.length > 0) throw failures[0]
}

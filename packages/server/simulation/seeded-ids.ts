/**
 * Ids of a simulation: UUIDv7 whose order and bits follow from the seed.
 *
 * The time is the simulation's, a counter keeps them in order, and `salt` tells
 * apart two runs of one seed in one database without touching the order.
 */
import { Effect } from "effect"
import type { Ids } from "../src/ids.ts"

export const seededIds = (nowMs: () => number, salt: string): (typeof Ids)["Service"] => {
  let made = 0
  const next = (): string => {
    made += 1
    const time = nowMs().toString(16).padStart(12, "0")
    const low = (made & 0xfff).toString(16).padStart(3, "0")
    const high = (made >>> 12).toString(16).padStart(3, "0")
    return `${time.slice(0, 8)}-${time.slice(8)}-7${high}-8${low}-${salt}`
  }
  return {
    next: Effect.sync(next),
    secret: Effect.sync(() => next().replaceAll("-", "").padEnd(64, "0"))
  }
}

/** Twelve hexadecimal digits that no other run has. */
export const newSalt = (): string => Buffer.from(crypto.getRandomValues(new Uint8Array(6))).toString("hex")

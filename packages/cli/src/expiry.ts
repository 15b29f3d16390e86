/**
 * When something ends, as somebody types it: after so long, or at an instant.
 */
import { Instant } from "@tropism/api/instant"
import { Clock, Effect, Schema } from "effect"
import { exitCodes } from "./exit-codes.ts"
import { failure } from "./failure.ts"

const units = { m: 60_000, h: 3_600_000, d: 86_400_000, w: 604_800_000 } as const

const isInstant = Schema.is(Instant)

/** Reads `90d`, `12h`, `30m`, `2w` or an instant as an instant that is still to come. */
export const readExpiry = (text: string) =>
  Effect.gen(function* () {
    const { count, unit } = /^(?<count>[1-9]\d{0,5})(?<unit>[mhdw])$/.exec(text)?.groups ?? {}
    const now = yield* Clock.currentTimeMillis
    if (count === undefined) {
      if (!isInstant(text))
        return yield* failure(
          `--expires must be a duration such as 12h, 90d or 2w, or a time such as 2027-06-30T00:00:00Z; "${text}" is neither.`,
          exitCodes.usage
        )
      if (Date.parse(text) <= now)
        return yield* failure(`--expires must be in the future; ${text} is in the past.`, exitCodes.usage)
      return text
    }
    return new Date(now + Number(count) * units[unit as keyof typeof units]).toISOString()
  })

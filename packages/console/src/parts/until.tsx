/**
 * When something ends, from now on.
 */
import type { ReactNode } from "react"
import { ShownTime, useNow } from "./time-ago.tsx"
import { durationText } from "../words/durations.ts"

interface UntilProps {
  /** Null is never. */
  readonly instant: string | null
}

export const Until = ({ instant }: UntilProps): ReactNode => {
  const leftMs = Date.parse(instant ?? "") - useNow()
  if (instant === null) return <span>never expires</span>
  return <ShownTime instant={instant}>{leftMs <= 0 ? "expired" : `expires in ${leftText(leftMs)}`}</ShownTime>
}

const dayMs = 86_400_000

/** Days are enough where there are some. */
const leftText = (ms: number): string =>
  ms < 2 * dayMs ? durationText(ms) : `${Math.floor(ms / dayMs).toLocaleString("en")} days`

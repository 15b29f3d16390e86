/**
 * Points in time as every page tells them: how long ago, or by the clock; kept right while the page stays open.
 */
import { createContext, type ReactNode, useContext, useEffect, useState } from "react"
import { ageText } from "../words/durations.ts"
import { clockText } from "../words/local-time.ts"
import { readClock } from "./read-clock.ts"

const tickMs = 10_000

const Now = createContext(0)

/** Ticks once for all ages on the page. */
export const NowProvider = ({ children }: { readonly children: ReactNode }): ReactNode => {
  const [now, setNow] = useState(readClock)
  useEffect(() => {
    const timer = setInterval(() => setNow(readClock()), tickMs)
    return () => clearInterval(timer)
  }, [])
  return <Now value={now}>{children}</Now>
}

/** The present, good to ten seconds. */
export const useNow = (): number => useContext(Now)

interface ShownTimeProps {
  readonly instant: string
  /** How it is said; what the clock shows then is told to who points at it. */
  readonly children: ReactNode
  readonly className?: string
}

/** A point in time in any words, and to the second as the reader's clock shows it. */
export const ShownTime = ({ instant, children, className }: ShownTimeProps): ReactNode => (
  <time dateTime={instant} title={clockText(instant, useNow(), "seconds")} className={className}>
    {children}
  </time>
)

export const TimeAgo = ({ instant }: { readonly instant: string }): ReactNode => {
  const age = ageText(instant, useNow())
  return (
    <ShownTime instant={instant} className="whitespace-nowrap">
      {age === "now" ? "just now" : `${age} ago`}
    </ShownTime>
  )
}

/** When something will be or was, by the reader's clock. */
export const ClockTime = ({ instant }: { readonly instant: string }): ReactNode => (
  <ShownTime instant={instant}>{clockText(instant, useNow())}</ShownTime>
)

/**
 * How long ago something was, kept right while the page stays open.
 */
import { createContext, type ReactNode, useContext, useEffect, useState } from "react"
import { ageText } from "../words/durations.ts"
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

export const TimeAgo = ({ instant }: { readonly instant: string }): ReactNode => {
  const age = ageText(instant, useNow())
  const time = new Date(instant)
  const full = Number.isNaN(time.getTime())
    ? instant
    : time.toLocaleString(undefined, { dateStyle: "medium", timeStyle: "medium" })
  return (
    <time dateTime={instant} title={full} className="whitespace-nowrap">
      {age === "now" ? "just now" : `${age} ago`}
    </time>
  )
}

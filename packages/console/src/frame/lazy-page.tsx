/**
 * A page whose code is fetched when it is first opened, or before that while the browser is idle.
 *
 * Where the code does not come the frame stays and the page says so: an
 * address is never loaded again, because without a server that would leave
 * nothing of the console.
 */
import { Effect, Schedule } from "effect"
import { type ComponentType, type ReactNode, useEffect, useState } from "react"
import { limits } from "../limits.ts"
import { Skeleton } from "../parts/skeleton.tsx"
import { PageFault } from "./page-fault.tsx"

/** A component for a route; the router fetches it by `preload` when its link is approached. */
export interface LazyPage {
  (): ReactNode
  readonly preload: () => Promise<void>
}

/** The page that a module exports by a name. */
export const lazyPage = <Name extends string>(
  load: () => Promise<Readonly<Record<Name, ComponentType>>>,
  name: Name
): LazyPage => {
  let known: ComponentType | undefined
  const fetching = Effect.tryPromise(() => load().catch(fetchedAnew)).pipe(
    Effect.map((module): ComponentType | undefined => module[name]),
    Effect.flatMap(Effect.fromNullishOr),
    Effect.tap((page) =>
      Effect.sync(() => {
        known = page
      })
    )
  )
  const Page = (): ReactNode => {
    const [attempt, setAttempt] = useState(0)
    const [state, setState] = useState<"fetching" | "here" | "missing">(known ? "here" : "fetching")
    useEffect(() => {
      if (known) return
      const patient = Effect.retry(fetching, {
        times: limits.pageRetries,
        schedule: Schedule.spaced(limits.pageRetryMs)
      })
      const abort = new AbortController()
      Effect.runPromise(Effect.isSuccess(patient), { signal: abort.signal }).then(
        (isHere) => setState(isHere ? "here" : "missing"),
        () => {}
      )
      return () => abort.abort()
    }, [attempt])
    const again = () => {
      setState("fetching")
      setAttempt((before) => before + 1)
    }
    useEffect(() => {
      if (state !== "missing") return
      // Whoever was away comes back to the page that they asked for.
      addEventListener("online", again)
      return () => removeEventListener("online", again)
    }, [state])
    const Known = known
    if (Known && state === "here") return <Known />
    if (state !== "missing") return <Skeleton label="Fetching the page …" />
    return (
      <PageFault title="This page is not here yet" onAgain={again}>
        The code of this page could not be fetched from the server. Either the server does not answer, or it
        has another version by now: then reload the console.
      </PageFault>
    )
  }
  const preloading = Effect.ignore(fetching)
  waiting.push(preloading)
  return Object.assign(Page, { preload: () => Effect.runPromise(preloading) })
}

/** A browser may keep that an address could not be fetched; the same file under another address is asked for again. */
const fetchedAnew = (error: unknown) => {
  const file = /\/assets\/[\w.-]+\.js/.exec(String(error))?.[0]
  if (file === undefined) throw error
  return import(/* @vite-ignore */ `${file}?again=${++again}`)
}

let again = 0

const waiting: Array<Effect.Effect<void>> = []

/** Waits until nothing is drawn, which leaves more time than there is between two frames: nobody who scrolls waits for code. */
const untilIdle = Effect.suspend(() =>
  "requestIdleCallback" in window
    ? Effect.repeat(idleTime, { until: (ms) => ms > limits.frameMs })
    : Effect.sleep(limits.idleMs)
)

/** How long the browser has nothing to do, when it next has. */
const idleTime = Effect.callback<number>((resume) => {
  requestIdleCallback((left) => resume(Effect.succeed(left.timeRemaining())))
})

/** Fetches the code of all pages, one after the other, each when the browser has nothing else to do. */
export const preloadPages = (): Promise<void> =>
  Effect.runPromise(
    Effect.forEach(waiting.splice(0), (preloading) => Effect.andThen(untilIdle, preloading), {
      discard: true
    })
  )

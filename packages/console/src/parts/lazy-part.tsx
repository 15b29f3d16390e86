/**
 * A part of the console whose code is fetched when it is first drawn, or before that while the browser is idle.
 *
 * Where the code does not come, what stands around the part stays: without a
 * server, loading the address again would leave nothing of the console. A whole
 * page is loaded again where its code does not come though the server answers: a
 * browser keeps which of the files that it shares with others could not be fetched.
 */
import { Effect, Schedule } from "effect"
import { type ComponentType, type ReactNode, useEffect, useState } from "react"
import { limits } from "../limits.ts"

/** A component whose code comes later; `preload` fetches it. */
export interface LazyPart<Props> {
  (props: Props): ReactNode
  readonly preload: () => Promise<void>
}

interface Meanwhile<Props> {
  readonly fetching: (props: Props) => ReactNode
  /** It could not be fetched; `again` tries anew. */
  readonly missing: (props: Props, again: () => void) => ReactNode
  /** It is all there is to lose: the address may be loaded again for it. */
  readonly isPage?: boolean
}

/** The component that a module exports by a name, and what is drawn while it is not there. */
export const lazyPart = <Name extends string, Props extends object>(
  load: () => Promise<Readonly<Record<Name, ComponentType<Props>>>>,
  name: Name,
  meanwhile: Meanwhile<Props>
): LazyPart<Props> => {
  let known: ComponentType<Props> | undefined
  const fetching = Effect.tryPromise(() => load().catch(fetchedAnew)).pipe(
    Effect.map((module): ComponentType<Props> | undefined => module[name]),
    Effect.flatMap(Effect.fromNullishOr),
    Effect.tap((part) =>
      Effect.sync(() => {
        known = part
      })
    )
  )
  const Part = (props: Props): ReactNode => {
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
        (isHere) => {
          setState(isHere ? "here" : "missing")
          if (!isHere && attempt > 0 && meanwhile.isPage === true) void reloadWithServer()
        },
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
      // Whoever was away comes back to what they asked for.
      addEventListener("online", again)
      return () => removeEventListener("online", again)
    }, [state])
    const Known = known
    if (Known && state === "here") return <Known {...props} />
    return state === "missing" ? meanwhile.missing(props, again) : meanwhile.fetching(props)
  }
  const preloading = Effect.ignore(fetching)
  waiting.push(preloading)
  return Object.assign(Part, { preload: () => Effect.runPromise(preloading) })
}

/** Loads the address again, if the server answers. */
const reloadWithServer = (): Promise<void> =>
  fetch(location.href, { cache: "no-store", headers: { accept: "text/html" } }).then(
    ({ ok }) => {
      if (ok) location.reload()
    },
    () => {}
  )

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

/** Fetches the code of all parts, one after the other, each when the browser has nothing else to do. */
export const preloadParts = (): Promise<void> =>
  Effect.runPromise(
    Effect.forEach(waiting.splice(0), (preloading) => Effect.andThen(untilIdle, preloading), {
      discard: true
    })
  )

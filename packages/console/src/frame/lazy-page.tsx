/**
 * A page whose code is fetched when it is first opened, or before that while the browser is idle.
 *
 * Where the code does not come the frame stays and the page says so.
 */
import type { ComponentType, ReactNode } from "react"
import { lazyPart } from "../parts/lazy-part.tsx"
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
  const Part = lazyPart(load, name, {
    isPage: true,
    fetching: () => <Skeleton label="Loading page …" />,
    missing: (_, again) => (
      <PageFault fault="notFetched" title="Page not loaded" onAgain={again}>
        The page could not be loaded. The server may be unreachable or updated; reload the console.
      </PageFault>
    )
  })
  return Object.assign((): ReactNode => <Part />, { preload: Part.preload })
}

/**
 * The root of all addresses: the frame, what an unknown address shows, and how parameters are read.
 */
import { createRootRoute, retainSearchParams } from "@tanstack/react-router"
import type { ReactNode } from "react"
import type { Address } from "../parts/use-address.ts"
import { Centred, ConsoleFrame, NoSuchPage } from "./console-frame.tsx"

/** What may stand behind the question mark. Every link keeps the project. */
export interface ConsoleAddress extends Address {
  /** The project of the page, when there are several. */
  readonly project?: string | undefined
}

const Broken = (): ReactNode => (
  <Centred fault="failed" title="The console has crashed">
    This is a bug in the console; your data is not affected. Reload the page.
  </Centred>
)

export const rootRoute = createRootRoute({
  component: ConsoleFrame,
  notFoundComponent: NoSuchPage,
  errorComponent: Broken,
  validateSearch: (search: Record<string, unknown>): ConsoleAddress =>
    Object.fromEntries(
      Object.entries(search).flatMap(([name, value]) =>
        typeof value === "string" && value !== "" ? [[name, value]] : []
      )
    ),
  search: { middlewares: [retainSearchParams(["project"])] }
})

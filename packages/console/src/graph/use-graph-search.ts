/**
 * What is looked for in the graph, as the address says it and as the API is asked.
 */
import { useMemo } from "react"
import type { Choice } from "../parts/filter-bar.tsx"
import { useAddress } from "../parts/use-address.ts"
import type { Parameters } from "../server/request.ts"
import { instantOf } from "../words/local-time.ts"
import { parseConditions } from "./conditions.ts"

export interface GraphSearch {
  /** The same as long as the same is looked for, whatever is half typed and in whichever order it is listed. */
  readonly parameters: Parameters
  /** In which order the list is asked for; undefined is the server's own. */
  readonly sort: string | undefined
  /** As of when the graph is shown; undefined is now. */
  readonly asOf: string | undefined
  readonly isFiltered: boolean
  /** What was typed and not understood, as sentences. */
  readonly faults: ReadonlyArray<string>
}

export const useGraphSearch = (): GraphSearch => {
  const [{ q, type, where = "", asOf: wanted, sort }] = useAddress()
  const asOf = instantOf(wanted ?? "")
  const { conditions, faults } = useMemo(() => parseConditions(where), [where])
  const understood = conditions.length === 0 ? undefined : JSON.stringify(conditions)
  const parameters = useMemo(() => ({ query: q, type, where: understood, asOf }), [q, type, understood, asOf])
  return {
    parameters,
    sort: ordersOf(q, asOf).find(({ value }) => value !== "" && value === sort)?.value,
    asOf,
    isFiltered: Object.values(parameters).some((value) => value !== undefined),
    faults
  }
}

/** The orders in which what is looked for can be listed, the one that nobody has to choose first. */
export const ordersOf = (q: string | undefined, asOf: string | undefined): ReadonlyArray<Choice> => {
  const first = q === undefined ? "Newest first" : "Best match first"
  const own = { value: "", label: first }
  // Of how the graph was no index is kept.
  return asOf === undefined ? [own, ...orders.filter(({ label }) => label !== first)] : [own]
}

const orders: ReadonlyArray<Choice> = [
  { value: "createdAt", label: "Newest first" },
  { value: "updatedAt", label: "Recently changed" },
  { value: "name", label: "By name" },
  { value: "type", label: "By type, then name" }
]

/**
 * What is looked for in the graph, as the address says it and as the API is asked.
 */
import { useMemo } from "react"
import { useAddress } from "../parts/use-address.ts"
import type { Parameters } from "../server/request.ts"
import { instantOf } from "../words/local-time.ts"
import { parseConditions } from "./conditions.ts"

export interface GraphSearch {
  readonly parameters: Parameters
  /** As of when the graph is shown; undefined is now. */
  readonly asOf: string | undefined
  readonly isFiltered: boolean
  /** What was typed and not understood, as sentences. */
  readonly faults: ReadonlyArray<string>
}

export const useGraphSearch = (): GraphSearch => {
  const [{ q, type, where = "", asOf: wanted }] = useAddress()
  return useMemo(() => {
    const asOf = instantOf(wanted ?? "")
    const { conditions, faults } = parseConditions(where)
    const parameters = {
      query: q,
      type,
      where: conditions.length === 0 ? undefined : JSON.stringify(conditions),
      asOf
    }
    return {
      parameters,
      asOf,
      isFiltered: Object.values(parameters).some((value) => value !== undefined),
      faults
    }
  }, [q, type, where, wanted])
}

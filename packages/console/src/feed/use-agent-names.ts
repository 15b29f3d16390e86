/**
 * The names of the project's agents by their ids.
 */
import { useQuery } from "@tanstack/react-query"
import { useCallback, useMemo } from "react"
import { agentsQuery } from "../server/agent-queries.ts"
import type { NameOf } from "./feed-row.tsx"

export const useAgentNames = (projectId: string): NameOf => {
  const { data } = useQuery(agentsQuery(projectId))
  const names = useMemo(
    () => new Map(data?.items.map(({ id, name }): [string, string] => [id, name])),
    [data]
  )
  return useCallback((agentId) => names.get(agentId), [names])
}

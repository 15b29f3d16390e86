/**
 * The names of the project's agents by their ids.
 */
import { useQuery } from "@tanstack/react-query"
import { useCallback } from "react"
import { agentNamesQuery } from "../server/agent-queries.ts"
import type { NameOf } from "./feed-row.tsx"

export const useAgentNames = (projectId: string): NameOf => {
  const { data: names } = useQuery(agentNamesQuery(projectId))
  return useCallback((agentId) => names?.get(agentId), [names])
}

/**
 * Reads the records of a run again when it has moved: what belongs to its last step is there only when it has ended.
 */
import type { Run } from "@tropism/domain/run"
import { useQueryClient } from "@tanstack/react-query"
import { useEffect, useRef } from "react"
import { useConsole } from "../frame/console-context.tsx"

const kinds = [
  "run-steps",
  "run-tool-calls",
  "run-events",
  "run-objects",
  "model-calls",
  "open-request"
] as const

export const useFreshRecords = ({ id, status, stepCount }: Run): void => {
  const { project } = useConsole()
  const queryClient = useQueryClient()
  const place = `${status} ${stepCount}`
  const before = useRef(place)
  useEffect(() => {
    if (before.current === place) return
    before.current = place
    for (const kind of kinds) void queryClient.invalidateQueries({ queryKey: [project.id, kind, id] })
  }, [place, id, project.id, queryClient])
}

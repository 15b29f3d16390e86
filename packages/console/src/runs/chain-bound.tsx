/**
 * The way to what a chain may use, where its budget keeps a run of it from going on; nothing where it does not.
 */
import type { Chain } from "@tropism/api/chains-api"
import { findSpentBudget, microsPerDollar } from "@tropism/domain/chain"
import { useQuery } from "@tanstack/react-query"
import { Link } from "@tanstack/react-router"
import type { ReactNode } from "react"
import { useConsole } from "../frame/console-context.tsx"
import { chainHeadQuery } from "../server/run-queries.ts"

export const ChainBound = ({ rootEventId }: { readonly rootEventId: string }): ReactNode => {
  const { project } = useConsole()
  const { data } = useQuery(chainHeadQuery(project.id, rootEventId))
  if (data === undefined || !isSpent(data)) return null
  return (
    <Link
      to="/settings"
      search={{ tab: "project" }}
      className="rounded text-sm font-medium text-leaf underline-offset-2 hover:underline"
    >
      Raise chain limits
    </Link>
  )
}

const isSpent = ({ limits, use: { costUsd, ...used } }: Chain): boolean =>
  findSpentBudget({ ...used, costMicros: Math.round(costUsd * microsPerDollar) }, limits) !== undefined

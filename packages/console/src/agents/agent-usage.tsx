/**
 * What an agent used, day by day, and how much of its day's budget is left.
 */
import type { Agent } from "@tropism/domain/agent"
import type { AgentDay, SpendingLimit } from "@tropism/domain/budget"
import type { Usage } from "@tropism/domain/run"
import { useQuery } from "@tanstack/react-query"
import { DateTime } from "effect"
import type { ReactNode } from "react"
import { useConsole } from "../frame/console-context.tsx"
import { Failure } from "../parts/failure.tsx"
import { TableHead } from "../parts/table-head.tsx"
import { useNow } from "../parts/time-ago.tsx"
import { Visible } from "../parts/visible.tsx"
import { agentModelUsageQuery, agentUsageQuery } from "../server/agent-queries.ts"
import { moneyText, tokensText } from "../words/amounts.ts"
import { dayText } from "../words/local-time.ts"

const daysShown = 7

export const AgentUsage = ({ agent }: { readonly agent: Agent }): ReactNode => {
  const { project } = useConsole()
  const { data, error } = useQuery(agentUsageQuery(project.id, agent.id, daysShown))
  const now = useNow()
  const today = DateTime.formatIsoDateUtc(DateTime.makeUnsafe(now))
  const perDay = agent.budget?.perDay ?? null
  return (
    <section aria-label="Usage" data-testid="usage" className="mb-8">
      <h2 className="mb-2 text-sm font-semibold">Usage</h2>
      {error !== null && <Failure error={error} hasOlder={data !== undefined} />}
      {data !== undefined && perDay !== null && (
        <p className="mb-2 text-sm text-ink-soft">
          {leftText(
            perDay,
            data.items.find(({ date }) => date === today)
          )}
        </p>
      )}
      {data?.items.length === 0 && (
        <p className="text-sm text-ink-soft">No model requests in the last {daysShown} days.</p>
      )}
      {data !== undefined && data.items.length > 0 && (
        <table className="w-full text-left text-sm">
          <TableHead titles={["Day (UTC)", "Runs", "Input", "Cached input", "Output", "Cost"]} />
          <tbody>
            {data.items.map(({ date, runs, usage, costUsd }) => (
              <tr key={date} className="border-b border-line">
                <th scope="row" className="py-1.5 pr-3 font-normal">
                  {date === today ? "today" : dayText(date, now)}
                </th>
                <td className="pr-3">{runs.toLocaleString("en")}</td>
                <td className="pr-3">{tokensText(usage.inputTokens)}</td>
                <td className="pr-3">{cachedText(usage)}</td>
                <td className="pr-3">{tokensText(usage.outputTokens)}</td>
                <td>{moneyText(costUsd)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      {data !== undefined && data.items.length > 0 && <ModelUsage agent={agent} />}
    </section>
  )
}

/** The same days by model: a model that reads little from the cache costs more than it needs to. */
const ModelUsage = ({ agent }: { readonly agent: Agent }): ReactNode => {
  const { project } = useConsole()
  const { data, error } = useQuery(agentModelUsageQuery(project.id, agent.id, daysShown))
  return (
    <>
      {error !== null && <Failure error={error} hasOlder={data !== undefined} />}
      {data !== undefined && data.items.length > 0 && (
        <table data-testid="model-usage" className="mt-4 w-full text-left text-sm">
          <TableHead titles={["Model", "Requests", "Input", "Cached input", "Output", "Cost"]} />
          <tbody>
            {data.items.map(({ provider, model, requests, usage, cacheHitRate, costUsd }) => (
              <tr key={`${provider}:${model}`} className="border-b border-line">
                <th scope="row" className="py-1.5 pr-3 font-normal [overflow-wrap:anywhere]">
                  <Visible text={`${provider}:${model}`} />
                </th>
                <td className="pr-3">{requests.toLocaleString("en")}</td>
                <td className="pr-3">{tokensText(usage.inputTokens)}</td>
                <td className="pr-3">
                  {usage.inputTokens === 0 ? "–" : `${Math.round(100 * cacheHitRate)}%`}
                </td>
                <td className="pr-3">{tokensText(usage.outputTokens)}</td>
                <td>{costUsd === null ? "unknown" : moneyText(costUsd)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </>
  )
}

/** The share of what was read that the provider had in its cache. */
const cachedText = ({ cachedInputTokens = 0, inputTokens }: Usage): string =>
  inputTokens === 0 ? "–" : `${Math.round((100 * cachedInputTokens) / inputTokens)}%`

/** `Left of today's budget: 48 k tokens of 50 k tokens, $0.90 of $1.00.` */
const leftText = ({ maxCostUsd, maxTokens }: SpendingLimit, day: AgentDay | undefined): string => {
  const used = day === undefined ? 0 : day.usage.inputTokens + day.usage.outputTokens
  const parts = [
    ...(typeof maxTokens === "number"
      ? [`${tokensText(Math.max(0, maxTokens - used))} of ${tokensText(maxTokens)}`]
      : []),
    ...(typeof maxCostUsd === "number"
      ? [`${moneyText(Math.max(0, maxCostUsd - (day?.costUsd ?? 0)))} of ${moneyText(maxCostUsd)}`]
      : [])
  ]
  return parts.length === 0 ? "No daily limit." : `Remaining today (UTC): ${parts.join(", ")}.`
}

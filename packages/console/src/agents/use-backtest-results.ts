/**
 * The events of a dry run, page by page from the oldest on, kept fresh while their runs are at work.
 */
import type { Page } from "@tropism/api/page"
import type { Backtest, BacktestResult } from "@tropism/domain/backtest"
import { infiniteQueryOptions, useInfiniteQuery } from "@tanstack/react-query"
import { Effect } from "effect"
import { limits } from "../limits.ts"
import { agentPath } from "../server/agent-queries.ts"
import { call, inProject, queryText } from "../server/request.ts"

const resultPages = (projectId: string, { agentId, id }: Backtest) =>
  infiniteQueryOptions({
    queryKey: [projectId, "backtest-results", id],
    queryFn: ({ pageParam, signal }) =>
      Effect.runPromise(
        call<Page<BacktestResult>>(
          inProject(
            projectId,
            agentPath(agentId, `/backtests/${encodeURIComponent(id)}/results`) +
              queryText({ limit: limits.backtestEventsPerPage, cursor: pageParam })
          )
        ),
        { signal }
      ),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (page) => page.nextCursor ?? undefined,
    refetchInterval: ({ state }) =>
      (state.data?.pages.length ?? 1) > limits.maxLivePages
        ? limits.longListRefreshIntervalMs
        : limits.refreshIntervalMs
  })

export const useBacktestResults = (projectId: string, backtest: Backtest) => {
  const { data, error, hasNextPage, fetchNextPage, isFetchingNextPage } = useInfiniteQuery(
    resultPages(projectId, backtest)
  )
  return {
    results: data?.pages.flatMap(({ items }) => items) ?? [],
    error,
    hasMore: hasNextPage,
    isReadingMore: isFetchingNextPage,
    readMore: () => {
      if (!isFetchingNextPage) fetchNextPage()
    }
  }
}

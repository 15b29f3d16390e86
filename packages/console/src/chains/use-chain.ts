/**
 * A chain and as many of its links as were asked for, kept fresh.
 */
import type { Chain } from "@tropism/api/chains-api"
import { infiniteQueryOptions, useInfiniteQuery } from "@tanstack/react-query"
import { Effect } from "effect"
import { limits } from "../limits.ts"
import { call, inProject, queryText } from "../server/request.ts"

const chainPages = (projectId: string, rootEventId: string) =>
  infiniteQueryOptions({
    queryKey: [projectId, "chain", rootEventId],
    queryFn: ({ pageParam, signal }) =>
      Effect.runPromise(
        call<Chain>(
          inProject(
            projectId,
            `chains/${encodeURIComponent(rootEventId)}${queryText({ limit: limits.rowsPerPage, cursor: pageParam })}`
          )
        ),
        { signal }
      ),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (page) => page.nextCursor ?? undefined,
    refetchInterval: limits.refreshIntervalMs
  })

export const useChain = (projectId: string, rootEventId: string) => {
  const { data, error, hasNextPage, fetchNextPage, isFetchingNextPage } = useInfiniteQuery(
    chainPages(projectId, rootEventId)
  )
  return {
    /** The newest head: what the last page says is at least as new as the others. */
    chain: data?.pages.at(-1),
    links: data?.pages.flatMap(({ items }) => items) ?? [],
    error,
    hasMore: hasNextPage,
    readMore: () => {
      if (!isFetchingNextPage) fetchNextPage()
    }
  }
}

/**
 * Long lists, page by page: the pages that were asked for, under a head that stays fresh.
 *
 * Reading all pages again at every wake-up would cost what the list is long.
 * So only the newest page is read again, and laid over the others. While a list
 * under other filters is on its way, the rows of the one before stay and say so.
 */
import type { Page } from "@tropism/api/page"
import {
  hashKey,
  infiniteQueryOptions,
  queryOptions,
  useInfiniteQuery,
  type UseInfiniteQueryResult,
  useQuery
} from "@tanstack/react-query"
import { Effect, Fiber } from "effect"
import { useEffect, useMemo } from "react"
import { limits } from "../limits.ts"
import { isRefused } from "./problem.ts"
import { call, inProject, queryText, type Parameters } from "./request.ts"

export interface PagedList<A> {
  readonly rows: ReadonlyArray<A>
  /** The rows are those of the filters before; the new ones are on their way. */
  readonly isOlder: boolean
  readonly isPending: boolean
  /** All that the list holds is among the rows. */
  readonly isWhole: boolean
  readonly error: unknown
  readonly hasMore: boolean
  readonly isReadingMore: boolean
  /** Reads the next page; one that could not be read is tried again by itself, after a while. */
  readonly readMore: () => void
}

interface PagedSource {
  readonly projectId: string
  /** What is listed, first the kind: `touched.ts` goes by it. */
  readonly key: ReadonlyArray<unknown>
  /** The address behind the project's. */
  readonly path: string
  readonly parameters?: Parameters
  /** How often the head is read again without a wake-up; false is never. */
  readonly refreshMs?: number | false
  readonly isEnabled?: boolean
}

/** A list of the API, newest first. */
export const usePagedList = <A extends { readonly id: string }>(source: PagedSource): PagedList<A> => {
  const { isEnabled = true } = source
  const head = useQuery({ ...headQuery<A>(source), enabled: isEnabled })
  const tail = useInfiniteQuery({ ...tailQuery<A>(source), enabled: isEnabled })
  const isOlder = head.isPlaceholderData && tail.isPlaceholderData
  const newest = head.isPlaceholderData && !isOlder ? tail.data?.pages[0] : head.data
  // Where only one of the two has come, what the other one still shows is of another list.
  const further = tail.isPlaceholderData && !isOlder ? undefined : tail.data
  const cursor = newest?.nextCursor ?? null
  const older = useMemo(() => further?.pages.flatMap(({ items }) => items) ?? [], [further])
  const { rows, hasGap } = useMemo(
    () => withHead(newest ?? { items: [], nextCursor: null }, older),
    [newest, older]
  )
  const isReadThrough = further !== undefined && !tail.hasNextPage
  const { refetch, isFetchingNextPage } = tail
  const gapBelow = hasGap ? newest : undefined
  // With each head that leaves a gap all is read anew, unless that is under way; a further page waits for it.
  useEffect(() => {
    if (gapBelow !== undefined) refetch({ cancelRefetch: isFetchingNextPage })
  }, [gapBelow, isFetchingNextPage, refetch])
  useTriesAgain(tail)
  return {
    rows,
    isOlder: isOlder && rows.length > 0,
    // That there is nothing is known only of what was asked for.
    isPending: head.isPending || (isOlder && rows.length === 0),
    isWhole: !isOlder && newest !== undefined && !hasGap && (cursor === null || isReadThrough),
    error: head.error ?? tail.error,
    hasMore: !isOlder && cursor !== null && tail.hasNextPage,
    isReadingMore: isFetchingNextPage,
    readMore: () => {
      if (!tail.isFetching && !hasGap && tail.error === null) tail.fetchNextPage()
    }
  }
}

type Tail = Pick<UseInfiniteQueryResult, "error" | "isFetchNextPageError" | "fetchNextPage" | "refetch">

/** The head is read again and again anyway; of the pages below it, those that could not be read are asked for again after a while. */
export const useTriesAgain = ({ error, isFetchNextPageError, fetchNextPage, refetch }: Tail): void => {
  useEffect(() => {
    if (error === null || isRefused(error)) return
    const read = isFetchNextPageError ? fetchNextPage : refetch
    const again = Effect.sync(() => void read({ cancelRefetch: false }))
    const fiber = Effect.runFork(Effect.delay(again, limits.refreshIntervalMs))
    return () => {
      Effect.runFork(Fiber.interrupt(fiber))
    }
  }, [error, isFetchNextPageError, fetchNextPage, refetch])
}

/** Reads the pages that are left one after the other, until so many rows are here. */
export const useReadThrough = <A>(list: PagedList<A>, maxRows: number): void => {
  const { error, hasMore, isReadingMore, readMore, rows } = list
  useEffect(() => {
    if (error === null && hasMore && !isReadingMore && rows.length < maxRows) readMore()
  })
}

const headQuery = <A>(source: PagedSource) => {
  const { projectId, key, path, parameters, refreshMs } = source
  return queryOptions({
    queryKey: [projectId, ...key, "head", parameters],
    queryFn: ({ signal }) => readPage<A>(projectId, path, parameters, undefined, signal),
    refetchInterval: refreshMs ?? limits.refreshIntervalMs,
    placeholderData: keepSame(source, "head")
  })
}

const tailQuery = <A>(source: PagedSource) => {
  const { projectId, key, path, parameters } = source
  return infiniteQueryOptions({
    queryKey: [projectId, ...key, "pages", parameters],
    queryFn: ({ pageParam, signal }) => readPage<A>(projectId, path, parameters, pageParam, signal),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (page: Page<A>) => page.nextCursor ?? undefined,
    staleTime: Infinity,
    placeholderData: keepSame(source, "pages")
  })
}

/** What was read of the same list under other filters, which are the last part of the key; of another list nothing. */
const keepSame =
  ({ projectId, key }: PagedSource, part: string) =>
  <D>(data: D | undefined, query: { readonly queryKey: ReadonlyArray<unknown> } | undefined): D | undefined =>
    query !== undefined && hashKey(query.queryKey.slice(0, -1)) === hashKey([projectId, ...key, part])
      ? data
      : undefined

const readPage = <A>(
  projectId: string,
  path: string,
  parameters: Parameters | undefined,
  cursor: string | undefined,
  signal: AbortSignal
): Promise<Page<A>> =>
  Effect.runPromise(
    call<Page<A>>(
      inProject(projectId, path + queryText({ limit: limits.rowsPerPage, ...parameters, cursor }))
    ),
    { signal }
  )

/**
 * The head laid over older rows: it replaces all down to its own last row. With a gap nobody knows what lies between.
 *
 * **Details** What changes moves, so one may be on several pages: it stands where it was read last, which is the head or else the last of them.
 * A last row that has changed may have come up from below. Where the head has not all that stood above it, nobody knows whether
 * that is gone or stands below the head: it stays, and there is a gap.
 */
export const withHead = <A extends { readonly id: string }>(
  head: Page<A>,
  older: ReadonlyArray<A>
): { readonly rows: ReadonlyArray<A>; readonly hasGap: boolean } => {
  const last = head.items.at(-1)
  if (head.nextCursor === null || last === undefined) return { rows: head.items, hasGap: false }
  const seam = seamOf(head.items, last, older)
  const placeOf = new Map(older.map(({ id }, place) => [id, place]))
  for (const { id } of head.items) placeOf.delete(id)
  const below = older.filter(({ id }, place) => place > seam && placeOf.get(id) === place)
  return { rows: [...head.items, ...below], hasGap: seam === -1 && older.length > 0 }
}

/** The place among older rows at which the head ends; -1 where that is not certain. */
const seamOf = <A extends { readonly id: string }>(
  head: ReadonlyArray<A>,
  last: A,
  older: ReadonlyArray<A>
): number => {
  const at = older.findIndex(({ id }) => id === last.id)
  // What an order goes by stands in the row, so what is as it was has not moved.
  if (at === -1 || hashKey([older[at]]) === hashKey([last])) return at
  const ids = new Set(head.map(({ id }) => id))
  return older.slice(0, at).every(({ id }) => ids.has(id)) ? at : -1
}

/**
 * One read of the API as query options: its key, its address, and how often it is read again.
 *
 * The key begins with the project and the kind of what is read, by which a
 * wake-up of the feed knows what may be old (`touched.ts`).
 */
import { queryOptions } from "@tanstack/react-query"
import { Effect } from "effect"
import { call, inProject, type Parameters, queryText } from "./request.ts"

interface Reading {
  readonly projectId: string
  /** The kind of what is read, then what of it. */
  readonly key: readonly [kind: string, ...what: ReadonlyArray<unknown>]
  /** The address behind the project's; what comes from elsewhere is encoded. */
  readonly path: string
  readonly parameters?: Parameters
  /** How often it is read again without a wake-up; it is not, unless given. */
  readonly refreshMs?: number
  /** For what never changes. */
  readonly isLasting?: boolean
}

export const reading = <A>({ projectId, key, path, parameters = {}, refreshMs, isLasting }: Reading) =>
  queryOptions({
    queryKey: [projectId, ...key, parameters],
    queryFn: ({ signal }) =>
      Effect.runPromise(call<A>(inProject(projectId, path + queryText(parameters))), { signal }),
    ...(refreshMs !== undefined && { refetchInterval: refreshMs }),
    ...(isLasting === true && { staleTime: Infinity })
  })

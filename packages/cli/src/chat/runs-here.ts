/**
 * The runs in which an agent answers in one context, among all that it has elsewhere.
 *
 * The server lists runs by agent and not by context. So what is open is read
 * whole, and what has ended only as far back as the runs that were known before.
 */
import type { Agent } from "@tropism/domain/agent"
import type { ContextName } from "@tropism/domain/context-event"
import type { RunId } from "@tropism/domain/ids"
import type { Run } from "@tropism/domain/run"
import { Effect } from "effect"
import { type Access, readPages } from "../access.ts"
import { limits } from "../limits.ts"

/** What is known of an agent's runs at one moment. */
export interface KnownRuns {
  /** The newest of them. */
  readonly ids: ReadonlySet<RunId>
  /** When the newest was made; undefined where there was none. */
  readonly newest: string | undefined
  /** The one that is open in the context. */
  readonly open: RunId | undefined
}

/** The ways to ask for the runs in a context. */
export const runsIn = ({ client, params }: Access, { id: agentId }: Agent, name: ContextName) => {
  const isHere = (run: Run) => run.contextName === name

  /** The run that is not over yet. */
  const open = Effect.map(
    readPages(
      (query) =>
        client.runs.list({
          params,
          query: { ...query, agentId, status: ["queued", "running", "paused"] }
        }),
      Infinity
    ),
    ({ items }) => items.find(isHere)
  )

  const known = Effect.gen(function* () {
    const { items } = yield* client.runs.list({ params, query: { agentId, limit: limits.chatRuns } })
    const found: KnownRuns = {
      ids: new Set(items.map(({ id }) => id)),
      newest: items[0]?.createdAt,
      open: (yield* open)?.id
    }
    return found
  })

  /** The newest run here: of those since and of the one that was open then; else of a page of the newest, where nothing is known. */
  const newest = Effect.fnUntraced(function* (before: KnownRuns | undefined) {
    const since = before?.newest === undefined ? {} : { from: before.newest }
    const { items } = yield* readPages(
      (query) => client.runs.list({ params, query: { ...query, agentId, ...since } }),
      before === undefined ? limits.chatRuns : Infinity
    )
    const made = items.find((run) => isHere(run) && before?.ids.has(run.id) !== true)
    if (made || before?.open === undefined) return made
    return yield* client.runs.get({ params: { ...params, runId: before.open } })
  })

  return { open, known, newest }
}

/**
 * Many events through ten agents: each is reacted to once, and the last as fast as the first.
 *
 * Half of the agents say a sentence, half call a tool that writes to the graph
 * first. Writers keep a bounded number of events ahead of the agents, so that the
 * load is as large as the server can carry and stays so.
 */
import { registerAgent, wakingType } from "../bench/agents.ts"
import type { Rows } from "../bench/database.ts"
import { newProject, nowMs, type Send, until, withHands } from "../bench/doors.ts"
import { atMost, exactly, type Finding, flatness, told, type Trial } from "./trial.ts"
import { watch } from "./watch.ts"

const agents = 10
const writers = 16
/** Written before anything is looked at. */
const warmUpShare = 0.02
/** Of the pace in the second quarter. */
const slowestTimes = 1.25
/** How often writers ask whether they may go on, and how often again while they may not. */
const askEveryWrites = 100
const askEveryMs = 200

/** What no agent has come to rest about: events that nobody gave a place, entries and runs that are not over. */
const waiting = async (rows: Rows, projectId: string): Promise<number> => {
  const [row] = await rows.ask((sql) =>
    sql.unsafe<{ count: number }>(
      `select (select count(*) from kb.graph_events where project_id = $1 and dispatched_at is null)::int
         + (select count(*) from kb.agent_processing_log where project_id = $1 and status in ('pending', 'processing'))::int as count`,
      [projectId]
    )
  )
  return row?.count ?? Number.NaN
}

export const passEvents = async ({ rows, send, server, size }: Trial): Promise<ReadonlyArray<Finding>> => {
  const { id, path } = await newProject(send)
  const agentIds = await registerAll(send, path)
  const written: Array<number> = Array.from({ length: agents }, () => 0)
  const writtenAtMs: Array<number> = []
  /** Waits until fewer than so many wait. */
  const room = async (ahead: number): Promise<void> =>
    void (await until(
      () => waiting(rows, id),
      (count) => count < ahead,
      "Nothing is reacted to any more",
      askEveryMs
    ))
  const through = async (times: number, wrote: () => void): Promise<void> => {
    let allowed = Promise.resolve()
    await withHands(writers, { ms: Number.MAX_SAFE_INTEGER, times }, async (index) => {
      if (index % askEveryWrites === 0) allowed = room(size.ahead)
      await allowed
      const number = index % agents
      await send("POST", `${path}/objects`, { type: wakingType + number, properties: { index } })
      written[number] = (written[number] ?? 0) + 1
      wrote()
    })
    await room(1)
  }
  const warmUp = Math.ceil((size.events * warmUpShare) / agents) * agents
  await through(warmUp, () => undefined)
  const before = await server.heapBytes()
  const stop = watch(server, rows, size.lookEveryMs)
  const begun = nowMs()
  await through(size.events - warmUp, () => writtenAtMs.push(nowMs()))
  const elapsedMs = nowMs() - begun
  const looks = await stop()
  const after = await server.heapBytes()
  return [
    ...(await outcomes(rows, id, agentIds, written)),
    told("reactions with their writes", ((size.events - warmUp) * 1_000) / elapsedMs, "/s"),
    atMost("the last quarter's time, of the second's", slowing(writtenAtMs), slowestTimes, "×"),
    ...flatness(looks, { before, after })
  ]
}

const registerAll = async (send: Send, path: string): Promise<ReadonlyArray<string>> => {
  const ids: Array<string> = []
  for (let number = 0; number < agents; number++) {
    const work = number % 2 === 0 ? "says one sentence" : "calls one tool, then says one sentence"
    const listens = { name: `reacts-${number}`, objectType: wakingType + number }
    ids.push(await registerAgent(send, path, work, listens))
  }
  return ids
}

/** How much longer the last quarter of the events took than the second one. */
const slowing = (atMs: ReadonlyArray<number>): number => {
  const at = (share: number) => atMs[Math.floor((atMs.length - 1) * share)] ?? Number.NaN
  return (at(1) - at(0.75)) / (at(0.5) - at(0.25))
}

/** Each event: one entry, one run of the agent that it is for, completed; and what half of the agents wrote, once. */
const outcomes = async (
  rows: Rows,
  projectId: string,
  agentIds: ReadonlyArray<string>,
  written: ReadonlyArray<number>
): Promise<ReadonlyArray<Finding>> => {
  const [row] = await rows.ask((sql) =>
    sql.unsafe<Record<"objects" | "entries" | "runs" | "reacted" | "right" | "updates" | "wrote", number>>(
      `select (select count(*) from kb.graph_objects where project_id = $1)::int as objects,
         (select count(*) from kb.agent_processing_log where project_id = $1)::int as entries,
         (select count(*) from kb.agent_runs where project_id = $1)::int as runs,
         (select count(distinct e.graph_object_id) from kb.agent_processing_log e join kb.agent_runs r on r.id = e.run_id
           where e.project_id = $1 and e.status = 'completed' and r.status = 'completed')::int as reacted,
         (select count(*) from kb.agent_processing_log e join kb.graph_objects o on o.id = e.graph_object_id
           where e.project_id = $1 and e.agent_id::text = ($2::text::jsonb->>o.type))::int as "right",
         (select count(*) from kb.graph_object_versions where project_id = $1 and version > 1)::int as updates,
         (select count(*) from kb.graph_objects where project_id = $1 and version = 2 and properties->>'seen' = 'true')::int as wrote`,
      [projectId, JSON.stringify(Object.fromEntries(agentIds.map((id, number) => [wakingType + number, id])))]
    )
  )
  const all = written.reduce((sum, each) => sum + each, 0)
  const writing = written.reduce((sum, each, number) => sum + (number % 2 === 0 ? 0 : each), 0)
  const seen = (name: "objects" | "entries" | "runs" | "reacted" | "right" | "updates" | "wrote") =>
    row?.[name] ?? Number.NaN
  return [
    exactly("objects that were written", seen("objects"), all),
    exactly("entries, one for each", seen("entries"), all),
    exactly("runs, one for each", seen("runs"), all),
    exactly("objects with a completed run", seen("reacted"), all),
    exactly("entries of the agent that listens to that type", seen("right"), all),
    exactly("changes that agents made", seen("updates"), writing),
    exactly("objects that an agent has changed once", seen("wrote"), writing)
  ]
}

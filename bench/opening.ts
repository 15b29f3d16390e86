/**
 * What it costs to open a context: one of a hundred events beside one of ten thousand, with and without a snapshot.
 *
 * The events are written straight into the tables. A context is opened by whoever
 * looks at its state, and by a run that answers a message; the first such run
 * leaves a snapshot behind.
 */
import { newProject, nowMs, until } from "./doors.ts"
import { quantile } from "./figures.ts"
import type { AttemptContext } from "./measures.ts"

/** Answers in one word. */
export const opener = {
  name: "opens",
  prompt: "Answer.",
  triggerType: "manual",
  tools: [],
  model: { provider: "scripted", name: "bench", script: { rules: [{ say: "Yes." }] } }
}

const makeLog = ({ rows }: AttemptContext, projectId: string, agentId: string, count: number) =>
  rows.alone([
    `insert into kb.contexts (project_id, name, agent_id, last_event_number) values ('${projectId}', 'log-${count}', '${agentId}', ${count})`,
    `insert into kb.context_events (project_id, context_name, number, type, payload, parent_event_id, triggers_agent_turn, created_at)
     select '${projectId}', 'log-${count}', event, 'UserMessageEvent', jsonb_build_object('content', 'Remark ' || event || repeat(' so it is', 20)),
       case when event > 1 then 'log-${count}:' || event - 1 end, false, now()
     from generate_series(1, ${count}) event`,
    "analyze kb.context_events"
  ])

/** What one context costs to look at, and to answer in, as it is now. */
const measureOnce = async (
  { rows, send, server, size }: AttemptContext,
  path: string,
  agentId: string,
  count: number
) => {
  const context = `${path}/contexts/log-${count}`
  const looks: Array<number> = []
  for (let look = 0; look <= size.opens; look++) {
    const begun = nowMs()
    await send("GET", `${context}/state`)
    // The first look at a context is also that of PostgreSQL's at its pages.
    if (look > 0) looks.push(nowMs() - begun)
  }
  const before = await server.cpuMs()
  await send("POST", `${context}/events`, { type: "UserMessageEvent", content: "Are you there?" })
  await until(
    () =>
      rows.ask((sql) =>
        sql.unsafe<{ open: number }>(
          `select count(*) filter (where status in ('queued', 'running'))::int as open from kb.agent_runs where agent_id = '${agentId}'`
        )
      ),
    ([row]) => row?.open === 0,
    "Nobody answered",
    100
  )
  const after = await server.cpuMs()
  return { lookMs: quantile(looks, 0.5), answerMs: after.server - before.server }
}

export const measureOpening = async (bench: AttemptContext): Promise<void> => {
  const { report, send, size } = bench
  const { id: projectId, path } = await newProject(send)
  const { id: agentId } = await send("POST", `${path}/agents`, opener)
  const [first = 0] = size.opened
  // Whatever is compiled and planned once is compiled and planned by then.
  await makeLog(bench, projectId, agentId, first + 1)
  await measureOnce(bench, path, agentId, first + 1)
  let shortest: Awaited<ReturnType<typeof measureOnce>> | undefined
  for (const count of size.opened) {
    await makeLog(bench, projectId, agentId, count)
    const measures = [
      ["no snapshot", await measureOnce(bench, path, agentId, count)],
      ["as it was left", await measureOnce(bench, path, agentId, count)]
    ] as const
    for (const [state, measured] of measures) {
      const load = `${count.toLocaleString("en")} events, ${state}`
      shortest ??= measured
      const beside = (value: number) => ({ name: `of ${first.toLocaleString("en")} events`, value })
      report({
        name: "open: state of a context, p50",
        load,
        value: measured.lookMs,
        unit: "ms",
        beside: beside(shortest.lookMs)
      })
      report({
        name: "open: server's processor time for an answer",
        load,
        value: measured.answerMs,
        unit: "ms",
        beside: beside(shortest.answerMs)
      })
    }
  }
}

/**
 * Opening a context of ten thousand messages, beside a plain read of the same rows, LangGraph and Mastra.
 *
 * To open is to have all that the context says in memory: the state that
 * Tropism folds a log to, a thread's state in LangGraph, its messages in Mastra.
 */
import { Redacted } from "effect"
import { newProject, nowMs, until } from "../doors.ts"
import { opener } from "../opening.ts"
import { quantile } from "../figures.ts"
import type { Bound, Prepared, Subject, Units } from "./comparison.ts"
import { wordsOf } from "./said.ts"
import type { Stage } from "./stage.ts"

const opening = "opening a context of 10,000 messages"

export const openingUnits: Units = { [opening]: "ms" }

const messageCharacters = 200

/** Writes a log of messages straight into the tables, as one that was lived through would lie there. */
const makeLog = async (
  { rows }: Stage,
  projectId: string,
  agentId: string,
  name: string,
  messages: ReadonlyArray<string>
) => {
  await rows.alone([
    `insert into kb.contexts (project_id, name, agent_id, last_event_number) values ('${projectId}', '${name}', '${agentId}', ${messages.length})`
  ])
  for (let from = 0; from < messages.length; from += 1_000) {
    const some = messages.slice(from, from + 1_000)
    await rows.alone([
      `insert into kb.context_events (project_id, context_name, number, type, payload, parent_event_id, triggers_agent_turn, created_at)
       values ${some
         .map((text, index) => {
           const number = from + index + 1
           const parent = number > 1 ? `'${name}:${number - 1}'` : "null"
           return `('${projectId}', '${name}', ${number}, 'UserMessageEvent', '${JSON.stringify({ content: text })}', ${parent}, false, now())`
         })
         .join(", ")}`
    ])
  }
  await rows.alone(["analyze kb.context_events"])
}

/** Has the context answered in once, which leaves a snapshot behind. */
const answerIn = async ({ rows, send }: Stage, path: string, name: string): Promise<void> => {
  await send("POST", `${path}/contexts/${name}/events`, { type: "UserMessageEvent", content: "And?" })
  await until(
    () =>
      rows.ask((sql) =>
        sql.unsafe<{ count: number }>(
          "select count(*)::int as count from kb.agent_runs where context_name = $1 and status = 'completed'",
          [name]
        )
      ),
    ([row]) => (row?.count ?? 0) > 0,
    "Nobody answered"
  )
}

const ours = { subject: "Tropism", figure: opening }
const ofSnapshot = { subject: "Tropism, from its snapshot", figure: opening }
const floor = { subject: "plain read", figure: opening }

const bounds: ReadonlyArray<Bound> = [
  { of: ours, against: floor, most: 1.5 },
  { of: ofSnapshot, against: floor, most: 1.5 },
  ...["LangGraph", "Mastra"].map((subject) => ({ of: ours, against: { subject, figure: opening } }))
]

export const prepareOpenings = async (stage: Stage): Promise<Prepared> => {
  const { scale, send, server } = stage
  const messages = Array.from({ length: scale.openedEvents }, (_, seed) => wordsOf(seed, messageCharacters))
  const { id: projectId, path } = await newProject(send)
  const { id: agentId } = await send("POST", `${path}/agents`, opener)
  for (const name of ["log", "snapshot"]) await makeLog(stage, projectId, agentId, name, messages)
  await answerIn(stage, path, "snapshot")
  const pg = await stage.startPeer("plain-pg")
  const peers = [
    { name: "LangGraph", program: await stage.startPeer("langgraph") },
    { name: "Mastra", program: await stage.startPeer("mastra") }
  ]
  for (const { program } of peers) await program.act("fill", { name: "log", messages })
  const subjectOf = (name: string, open: () => Promise<number>, times = scale.opens): Subject => ({
    name,
    measure: async () => {
      const each: Array<number> = []
      for (let time = 0; time < times; time++) each.push(await open())
      return { [opening]: quantile(each, 0.5) }
    }
  })
  const openOurs = (name: string) => async () => {
    const begun = nowMs()
    await send("GET", `${path}/contexts/${name}/state`)
    return nowMs() - begun
  }
  const whole = ({ count, ms }: { readonly count: number; readonly ms: number }): number => {
    if (count !== messages.length) throw new Error(`${count} of ${messages.length} messages were there`)
    return ms
  }
  return {
    subjects: [
      subjectOf(ours.subject, openOurs("log")),
      subjectOf(ofSnapshot.subject, openOurs("snapshot")),
      subjectOf(floor.subject, async () =>
        whole(
          await pg.act("read", {
            url: Redacted.value(server.ownerUrl),
            text: "select * from kb.context_events where project_id = $1 and context_name = $2 order by number",
            values: [projectId, "log"]
          })
        )
      ),
      ...peers.map(({ name, program }) =>
        subjectOf(name, async () => whole(await program.act("open", { name: "log" })), 1)
      )
    ],
    bounds,
    close: async () => void (await Promise.all([pg.stop(), ...peers.map(({ program }) => program.stop())]))
  }
}

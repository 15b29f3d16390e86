/**
 * A turn of a conversation that has gone on for a thousand turns beside one of ten, and what such a conversation weighs.
 *
 * A turn is a message and an answer of a model without latency; the time in which
 * Tropism waits whether somebody says more is taken off, for it is no work. Every turn of the
 * long conversation is lived through, so its bytes are those that it leaves.
 */
import { runLimits } from "@tropism/server/limits"
import { newProject, nowMs, type Send } from "../doors.ts"
import { quantile } from "../figures.ts"
import type { Bound, Prepared, Subject, Units } from "./comparison.ts"
import { wordsOf } from "./said.ts"
import type { Stage } from "./stage.ts"

const early = "a turn behind few"
const late = "a turn behind many"
const stored = "bytes stored for a byte said"

export const turnUnits: Units = { [early]: "ms", [late]: "ms", [stored]: "×" }

const messageCharacters = 200
const answerCharacters = 1_000
const answer = wordsOf(0, answerCharacters)

/** How one subject keeps a conversation. */
interface Conversing {
  /** Takes so many turns, one after the other, and answers how long each took. */
  readonly turns: (name: string, count: number) => Promise<ReadonlyArray<number>>
  readonly bytes: () => Promise<number>
}

const agent = {
  name: "answers",
  prompt: "Answer.",
  triggerType: "manual",
  tools: [],
  model: { provider: "scripted", name: "bench", script: { rules: [{ say: answer }] } }
}

let said = 0
const nextMessage = (): string => wordsOf(++said, messageCharacters)

const inTropism = async ({ rows, send }: Stage): Promise<Conversing> => {
  const { path } = await newProject(send)
  const { id: agentId } = await send("POST", `${path}/agents`, agent)
  const conversations = new Map<string, string>()
  return {
    turns: async (name, count) => {
      const conversationId = conversations.get(name) ?? (await begin(send, path, agentId))
      conversations.set(name, conversationId)
      const durations: Array<number> = []
      for (let turn = 0; turn < count; turn++) {
        const begun = nowMs()
        const { message } = await send("POST", `${path}/chat`, { conversationId, message: nextMessage() })
        durations.push(nowMs() - begun - runLimits.debounceQuietMs)
        if (message === "") throw new Error("Nobody answered")
      }
      return durations
    },
    bytes: async () => {
      const [row] = await rows.ask((sql) =>
        sql.unsafe<{ bytes: number }>("select pg_database_size(current_database())::float8 as bytes")
      )
      return row?.bytes ?? Number.NaN
    }
  }
}

const begin = async (send: Send, path: string, agentId: string): Promise<string> =>
  (await send("POST", `${path}/conversations`, { agentId })).id

/** Measures a subject: a new short conversation in each round, in turns with the long one. */
const subjectOf = async ({ scale }: Stage, name: string, { bytes, turns }: Conversing): Promise<Subject> => {
  const { fewTurns, manyTurns, measuredTurns } = scale
  // What is made once, tables and their first pages, is not the conversation's.
  await turns("first", fewTurns)
  const before = await bytes()
  await turns("long", manyTurns)
  const ratio = ((await bytes()) - before) / (manyTurns * (messageCharacters + answerCharacters))
  let round = 0
  return {
    name,
    measure: async () => {
      const short = `short-${round++}`
      await turns(short, fewTurns)
      const few: Array<number> = []
      const many: Array<number> = []
      for (let turn = 0; turn < measuredTurns; turn++) {
        few.push(...(await turns(short, 1)))
        many.push(...(await turns("long", 1)))
      }
      return { [early]: quantile(few, 0.5), [late]: quantile(many, 0.5), [stored]: ratio }
    }
  }
}

const bounds: ReadonlyArray<Bound> = [
  { of: { subject: "Tropism", figure: late }, against: { subject: "Tropism", figure: early }, most: 1.2 },
  { of: { subject: "LangGraph", figure: late }, against: { subject: "LangGraph", figure: early } },
  { of: { subject: "Tropism", figure: stored }, most: 2 }
]

export const prepareTurns = async (stage: Stage): Promise<Prepared> => {
  const langgraph = await stage.startPeer("langgraph")
  const inLangGraph: Conversing = {
    turns: (name, count) =>
      langgraph.act("converse", {
        name,
        answer,
        messages: Array.from({ length: count }, nextMessage)
      }),
    bytes: () => stage.databaseBytes("langgraph")
  }
  return {
    subjects: [
      await subjectOf(stage, "Tropism", await inTropism(stage)),
      await subjectOf(stage, "LangGraph", inLangGraph)
    ],
    bounds,
    close: langgraph.stop
  }
}

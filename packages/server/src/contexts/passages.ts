/**
 * What was said in the contexts of an agent, found again by its words (S004-F04).
 *
 * A passage is a message or a summary; each append keeps the words of its own. How much a word
 * says is judged from the agent's newest passages: one that many of them have says
 * little and is not looked for. For each of the others the newest that have it are
 * looked at, so a question costs what it asks for and not what the agent remembers.
 * What was said in somebody's own context is found in theirs alone.
 */
import type { ContextEventId, ContextName } from "@tropism/domain/context-event"
import type { AgentId, ProjectId } from "@tropism/domain/ids"
import { Context, Effect, Layer } from "effect"
import { SqlClient, type Statement } from "effect/sql"
import { orDie, ProjectTransaction } from "../database/database.ts"

/** What somebody said in a context. */
export interface Passage {
  readonly context: ContextName
  readonly eventId: ContextEventId
  readonly type: string
  readonly content: string
  readonly saidAt: Date
  /** It was said when the context had been shown something untrusted. */
  readonly isTainted: boolean
}

/** What is looked for, and for whom. */
export interface Reminder {
  readonly agentId: AgentId
  /** Who is reminded: what is in its log, shared or its own, is not found. */
  readonly context: ContextName
  readonly asked: string
  /** What it was reminded of already. */
  readonly known: ReadonlyArray<ContextEventId>
  readonly limit: number
}

/** The best passages first, and the words by which they were found, the rarest first. */
export interface Recalled {
  readonly passages: ReadonlyArray<Passage>
  readonly words: ReadonlyArray<string>
}

export class Passages extends Context.Service<
  Passages,
  {
    /** Finds the passages of the agent's other contexts that have the most to do with what was asked. */
    readonly recall: (reminder: Reminder) => Effect.Effect<Recalled, never, ProjectTransaction>
  }
>()("@tropism/server/agent/Passages") {
  static readonly layer = Layer.effect(
    Passages,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient

      const recall = Effect.fn("Passages.recall")(function* (reminder: Reminder) {
        const { projectId } = yield* ProjectTransaction
        const sought = soughtOf(yield* counting(sql, reminder))
        const passages = sought.length === 0 ? [] : yield* finding(sql, projectId, reminder, sought)
        return { passages, words: sought.map(({ word }) => word) }
      }, orDie)

      return Passages.of({ recall })
    })
  )
}

/** A word of a question, without its ending, and how many of the sampled passages have it. */
interface CountedWord {
  readonly word: string
  readonly having: number
  readonly sampled: number
}

/** A word that is looked for, and how much it says. */
interface SoughtWord {
  readonly word: string
  readonly weight: number
}

/** Asks how many of the agent's newest passages have each word of a question. */
export const counting = (sql: SqlClient.SqlClient, { agentId, asked }: Reminder) =>
  sql<CountedWord>`
    with asked as (
      select lexeme, quote_literal(lexeme)::tsquery as query
      from unnest(kb.passage_words(${asked.slice(0, recallLimits.askedMaxChars).toWellFormed()}))
      order by positions[1] limit ${recallLimits.askedWords}
    ),
    sample as materialized (
      select words from kb.project_passages where agent_id = ${agentId} order by created_at desc limit ${recallLimits.sampledPassages}
    )
    select lexeme as word, count(sample.words)::int as having, (select count(*)::int from sample) as sampled
    from asked left join sample on sample.words @@ asked.query group by lexeme`

/** The words that say something, the rarest first. */
const soughtOf = (words: ReadonlyArray<CountedWord>): ReadonlyArray<SoughtWord> =>
  words
    .map(({ having, sampled, word }): SoughtWord => ({ word, weight: weightOf(having, sampled) }))
    .filter(({ weight }) => weight > 0)
    .toSorted((one, other) => other.weight - one.weight || (one.word < other.word ? -1 : 1))
    .slice(0, recallLimits.soughtWords)

/**
 * How much a word says that so many of the sampled passages have.
 *
 * **Details** Nothing, or less, for one that two in five of many passages have. Few passages prove little: what all of thirty say
 * may still be what the agent is about.
 */
const weightOf = (having: number, sampled: number): number => Math.log((sampled + 60) / (3 * having + 1))

/** Asks for the passages that have the words: each word is a question of its own, and planned by how often it occurs. */
export const finding = (
  sql: SqlClient.SqlClient,
  projectId: ProjectId,
  { agentId, context, known, limit }: Reminder,
  sought: ReadonlyArray<SoughtWord>
) => {
  const having = sought.map(
    ({ weight, word }) => sql`(
      select context_name, number, created_at, ${weight}::float8 as weight from kb.project_passages
      where agent_id = ${agentId} and words @@ ${`'${word}'`}::tsquery and context_name <> ${context}
        and context_name || ':' || number <> all(${known}::text[])
        and not exists (select from line where line.name = context_name and number <= line.until)
        and (owner is null or owner = (select owner from kb.contexts where project_id = ${projectId} and name = ${context}))
      order by created_at desc limit ${recallLimits.passagesOfWord})`
  )
  return sql<Passage>`
    with recursive line as (
      select forked_from as name, forked_at as until from kb.contexts
      where project_id = ${projectId} and name = ${context} and forked_from is not null
      union all
      select origin.forked_from, least(origin.forked_at, line.until)
      from line join kb.contexts origin on origin.project_id = ${projectId} and origin.name = line.name
      where origin.forked_from is not null
    ),
    found as (${having.reduce((all, one) => sql`${all} union all ${one}`)}),
    scored as (
      select context_name, number, created_at, sum(weight) as score from found group by context_name, number, created_at
    ),
    best as (
      select *, max(score) over () as highest from scored order by score desc, created_at desc, context_name, number desc limit ${limit}
    )
    select best.context_name as context, best.context_name || ':' || best.number as event_id, event.type,
      event.payload ->> 'content' as content, event.created_at as said_at,
      coalesce(event.number >= (source.tainted_by -> 0 ->> 'at')::int, false) as is_tainted
    from best join kb.context_events event
      on event.project_id = ${projectId} and event.context_name = best.context_name and event.number = best.number
    join kb.contexts source on source.project_id = ${projectId} and source.name = best.context_name
    where best.score >= best.highest * ${recallLimits.shareOfBest}::float8
    order by best.score desc, best.created_at desc, best.context_name, best.number desc`
}

/** Of these the newest of a context is remembered, for it takes the place of those before it. */
const summaries: ReadonlySet<string> = new Set(["ContextNotedEvent", "ContextSummarizedEvent"])

/** The events whose words are kept. */
const remembered: ReadonlySet<string> = new Set(["UserMessageEvent", "AssistantMessageEvent", ...summaries])

/** Whether any of these events has words that are kept. */
export const hasWords = (
  events: ReadonlyArray<{ readonly type: string; readonly [field: string]: unknown }>
): boolean => events.some(({ content, type }) => remembered.has(type) && Boolean(content))

/** The part of an append by which the words of its messages and summaries can be found. */
export const remembering = (sql: SqlClient.SqlClient): Statement.Fragment =>
  sql`remembered as (
    insert into kb.passages (project_id, agent_id, context_name, number, type, created_at, words, owner)
    select appended.project_id, appended.agent_id, appended.name, event.number, event.type, appended.at, kb.passage_words(event.payload ->> 'content'), appended.owner
    from appended, jsonb_to_recordset(appended.events) as event(number int, type text, payload jsonb)
    where appended.is_remembered and event.type in ${sql.in([...remembered])} and event.payload ->> 'content' <> ''
    on conflict (project_id, context_name, type) where type in ('ContextNotedEvent', 'ContextSummarizedEvent')
    do update set number = excluded.number, created_at = excluded.created_at, words = excluded.words)`

// The bounds of what an agent is reminded of from its other contexts, and of the notes that they keep.
//
// Beside `limits.ts`, which has the bounds of every stage and would be too long with these.

export const recallLimits = {
  /** Of what was asked: its beginning, and the first of its words. */
  askedMaxChars: 4_000,
  askedWords: 48,
  /** The newest passages of the agent, by which a word is judged that is looked for. */
  sampledPassages: 200,
  /** The rarest words are looked for, and of each the newest passages that have it. */
  soughtWords: 12,
  passagesOfWord: 100,
  /** A passage that has so much less to do with what was asked than the best is left out. */
  shareOfBest: 0.25,
  /** Of one passage as the agent reads it, and of all together. */
  passageMaxChars: 1_000,
  toldMaxChars: 12_000,
  /** Of the notes of a context, and of what was said since the last as the model is shown it. */
  notesMaxChars: 4_000,
  notedMaxChars: 60_000
} as const

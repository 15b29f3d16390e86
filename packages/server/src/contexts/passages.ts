/**
 * Searches an agent's messages and summaries in all its contexts (S004-F04).
 *
 * A passage is a message or a summary; each append indexes the words of its own. The weight of a word is estimated from the agent's newest
 * passages: a word that many of them contain has little weight and is not searched. For every other word only the newest passages are read,
 * so the cost follows the query and not the size of the memory. Passages of a person's own contexts are found only in contexts of the same
 * person.
 */
import type { ContextEventId, ContextName } from "@tropism/domain/context-event"
import type { AgentId, ProjectId } from "@tropism/domain/ids"
import { Context, Effect, Layer } from "effect"
import { SqlClient, type Statement } from "effect/sql"
import { orDie, ProjectTransaction } from "../database/database.ts"

/** A message or summary of a context. */
export interface Passage {
  readonly context: ContextName
  readonly eventId: ContextEventId
  readonly type: string
  readonly content: string
  readonly saidAt: Date
  /** The context had been shown untrusted input before. */
  readonly isTainted: boolean
}

/** A query, and the context it is for. */
export interface Reminder {
  readonly agentId: AgentId
  /** The querying context: its own log, shared events included, is not searched. */
  readonly context: ContextName
  readonly asked: string
  /** Passages that were recalled before. */
  readonly known: ReadonlyArray<ContextEventId>
  readonly limit: number
}

/** The passages, best first, and the words that found them, rarest first. */
export interface Recalled {
  readonly passages: ReadonlyArray<Passage>
  readonly words: ReadonlyArray<string>
}

export class Passages extends Context.Service<
  Passages,
  {
    /** Finds the passages of the agent's other contexts that match the query best. */
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

/** A stemmed word of a query, and how many of the sampled passages contain it. */
interface CountedWord {
  readonly word: string
  readonly having: number
  readonly sampled: number
}

/** A word to search, with its weight. */
interface SoughtWord {
  readonly word: string
  readonly weight: number
}

/** Counts for each word of a query how many of the agent's newest passages contain it. */
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

/** Returns the words with a positive weight, rarest first. */
const soughtOf = (words: ReadonlyArray<CountedWord>): ReadonlyArray<SoughtWord> =>
  words
    .map(({ having, sampled, word }): SoughtWord => ({ word, weight: weightOf(having, sampled) }))
    .filter(({ weight }) => weight > 0)
    .toSorted((one, other) => other.weight - one.weight || (one.word < other.word ? -1 : 1))
    .slice(0, recallLimits.soughtWords)

/**
 * Returns the weight of a word that `having` of the sampled passages contain.
 *
 * **Details** It is zero or negative for a word in two of five among many passages. A small sample proves little: a word in all of thirty
 * passages may still be the agent's subject.
 */
const weightOf = (having: number, sampled: number): number => Math.log((sampled + 60) / (3 * having + 1))

/** Selects the passages that contain the words: each word is a query of its own, planned by the word's frequency. */
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

/** Only a context's newest one is remembered, because it replaces those before it. */
const summaries: ReadonlySet<string> = new Set(["ContextNotedEvent", "ContextSummarizedEvent"])

/** The events whose words are indexed. */
const remembered: ReadonlySet<string> = new Set(["UserMessageEvent", "AssistantMessageEvent", ...summaries])

/** Whether any of these events has words to index. */
export const hasWords = (
  events: ReadonlyArray<{ readonly type: string; readonly [field: string]: unknown }>
): boolean => events.some(({ content, type }) => remembered.has(type) && Boolean(content))

/** The part of an append that indexes the words of its messages and summaries. */
export const remembering = (sql: SqlClient.SqlClient): Statement.Fragment =>
  sql`remembered as (
    insert into kb.passages (project_id, agent_id, context_name, number, type, created_at, words, owner)
    select appended.project_id, appended.agent_id, appended.name, event.number, event.type, appended.at, kb.passage_words(event.payload ->> 'content'), appended.owner
    from appended, jsonb_to_recordset(appended.events) as event(number int, type text, payload jsonb)
    where appended.is_remembered and event.type in ${sql.in([...remembered])} and event.payload ->> 'content' <> ''
    on conflict (project_id, context_name, type) where type in ('ContextNotedEvent', 'ContextSummarizedEvent')
    do update set number = excluded.number, created_at = excluded.created_at, words = excluded.words)`

// Limits of recall from other contexts, and of a context's notes.
//
// They are separate because `limits.ts`, which holds the limits of every stage, would be too long with them.

export const recallLimits = {
  /** Of the query: its beginning, and the first of its words. */
  askedMaxChars: 4_000,
  askedWords: 48,
  /** The agent's newest passages, from which the weight of a word is estimated. */
  sampledPassages: 200,
  /** The rarest words that are searched, and the newest passages read for each. */
  soughtWords: 12,
  passagesOfWord: 100,
  /** A passage whose score is below this share of the best is dropped. */
  shareOfBest: 0.25,
  /** Of one passage as the agent reads it, and of all together. */
  passageMaxChars: 1_000,
  toldMaxChars: 12_000,
  /** Of a context's notes, and of the messages since the last notes in the request for new ones. */
  notesMaxChars: 4_000,
  notedMaxChars: 60_000
} as const

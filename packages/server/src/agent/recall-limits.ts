/**
 * The bounds of what an agent is reminded of from its other contexts, and of the notes that they keep.
 *
 * Flow: graph → outbox → dispatch → run → tool → task, beside it **agent** → model
 *
 * Beside `limits.ts`, which has the bounds of every stage and would be too long with these.
 */

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

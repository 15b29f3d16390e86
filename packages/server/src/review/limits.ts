/**
 * Limits of tasks, with units in their names; `domain/undo.ts` has the size of an undo.
 */

/** Limits of tasks in general. */
export const taskLimits = {
  /** Title of a question; its payload holds the whole text. */
  titleMaxChars: 120,
  /** Open questions of one run. */
  openQuestionsPerRun: 10,
  /** Newest open tasks of an agent that are searched for a question from a client. */
  questionsLookedThrough: 500,
  /** Review records, and promotions, shown of one agent version. */
  autonomyShown: 500,
  /** List inside a message that explains a refused answer. */
  listedMaxChars: 400
} as const

/** Limits of suggestions: expiry sweeps, and the rejections shown to a run. */
export const reviewLimits = {
  /** Interval between expiry sweeps. */
  expiryIntervalMs: 5_000,
  /** Suggestions of one project that one sweep expires. */
  expiryBatchTasks: 500,
  /** Suggestions of one agent that one request rejects: as many as may be open. */
  rejectedAtOnce: 10_000,
  /** Rejections shown to a run. */
  rejectionsHeard: 5,
  /** Length of each text in them. */
  heardTextMaxChars: 500
} as const

/** Limits of todos. */
export const todoLimits = {
  /** Open todos of one person in one project. */
  openPerOwner: 1_000,
  /** Items of one list for a model, the newest of more. */
  listMaxItems: 500
} as const

/** Limits of undos. */
export const undoLimits = {
  /** Entities whose history one query reads. */
  factsEntities: 200,
  /** Items whose values are in memory at once during a put-back. */
  valuesItems: 50,
  /** Items named in a message about a refused undo. */
  itemsTold: 20
} as const

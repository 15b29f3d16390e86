/**
 * What somebody can want of TodoAssistant's script, in its own terms.
 *
 * Types only: `todo-phrases.ts` reads them off words, `todo-doing.ts` does them.
 */

/** Which task is meant, before anybody has looked at the list. */
export type TaskRef =
  | { readonly kind: "ids"; readonly ids: ReadonlyArray<number> }
  /** The how manyth ones of the list that was shown, from 1; -1 is the last. */
  | { readonly kind: "place"; readonly places: ReadonlyArray<number> }
  /** Words of its title; `isLoose` where the verb in front may be the speaker's own. */
  | { readonly kind: "title"; readonly text: string; readonly isLoose: boolean }
  /** What was spoken of last. */
  | { readonly kind: "it" }
  | { readonly kind: "all"; readonly status: ListStatus }
  /** None was named. */
  | { readonly kind: "none" }

export type ListStatus = "all" | "pending" | "completed"

/** What is done to a task once it is known. */
export type Deed =
  | { readonly type: "complete" }
  /** `isDoubtful` where the words may tell of the errand alone: then it is asked for. */
  | { readonly type: "delete"; readonly isDoubtful?: true }
  | { readonly type: "show" }
  | {
      readonly type: "update"
      readonly title?: string | undefined
      readonly description?: string | undefined
    }

export interface NewTask {
  readonly title: string
  readonly description?: string | undefined
}

export type Intent =
  | { readonly type: "add"; readonly tasks: ReadonlyArray<NewTask> }
  | {
      readonly type: "list"
      readonly status: ListStatus
      readonly about: string | null
      readonly isCount: boolean
    }
  /** `isTold` where somebody tells what became of a task, and does not say what to do. */
  | { readonly type: "deed"; readonly deed: Deed; readonly ref: TaskRef; readonly isTold?: true }
  /** A task that is only spoken of: what shall be done is said beside it, or nowhere. `isInstead` of another that was named by mistake. */
  | { readonly type: "mention"; readonly ref: TaskRef; readonly isInstead?: true }
  /** "Add it": what was said before is to be a task. */
  | { readonly type: "that" }
  /** A reason, or other talk beside a request. */
  | { readonly type: "aside" }
  /** A change of a title whose halves only the list can tell apart: each way to read it. */
  | {
      readonly type: "rename"
      readonly readings: ReadonlyArray<{ readonly ref: TaskRef; readonly title: string }>
    }
  | { readonly type: "yes" | "no" | "hello" | "thanks" | "bye" | "help" | "who" | "reopen" | "undo" }
  | { readonly type: "beyond"; readonly what: string }
  | { readonly type: "unknown"; readonly text: string }
  /** What is wanted perhaps: on a condition, or by who has not decided. `whole` reads the condition's words as part of a title. */
  | {
      readonly type: "doubtful"
      readonly because: "condition" | "doubt"
      readonly intents: ReadonlyArray<Intent>
      readonly whole?: Extract<Intent, { readonly type: "deed" }>
    }
  /** What stands behind something to add, and may be more of it. */
  | { readonly type: "more"; readonly titles: ReadonlyArray<string> }

/** A task as `list_tasks` tells it. */
export interface Listed {
  readonly id: number
  readonly title: string
  readonly description: string | null
  readonly completed: boolean
}

/** What the script has asked and not been told yet. */
export type Question =
  | { readonly kind: "which"; readonly deed: Deed; readonly among: ReadonlyArray<Named> }
  | { readonly kind: "sure"; readonly deed: Deed; readonly tasks: ReadonlyArray<Named> }
  | { readonly kind: "add"; readonly tasks: ReadonlyArray<NewTask> }
  | { readonly kind: "now"; readonly intents: ReadonlyArray<Intent> }
  | { readonly kind: "words"; readonly id: number; readonly field: "title" | "description" }
  | { readonly kind: "what"; readonly deed: Deed }
  | { readonly kind: "title" }
  | { readonly kind: "list" }

export interface Named {
  readonly id: number
  readonly title: string
}

/** What of a conversation the next message may speak of. */
export interface Dialogue {
  readonly question: Question | null
  /** The list that was shown last, in its order. */
  readonly shown: ReadonlyArray<Named>
  /** The tasks that were spoken of last. */
  readonly focus: ReadonlyArray<Named>
}

export const newDialogue: Dialogue = { question: null, shown: [], focus: [] }

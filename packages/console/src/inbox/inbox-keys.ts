/**
 * The keys of the inbox: one table for what they do and for the page that explains them.
 *
 * Pure. A key means nothing while somebody types, holds a modifier or keeps it
 * pressed, so that no decision is made by accident.
 */

export type Command =
  | "next"
  | "previous"
  | "approve"
  | "reject"
  | "edit"
  | "lookAgain"
  | "select"
  | "selectGroup"
  | "approveSelected"
  | "rejectSelected"
  | "clear"

interface Binding {
  readonly command: Command
  /** What the browser calls the key. */
  readonly key: string
  /** What is printed on it. */
  readonly shown: ReadonlyArray<string>
  readonly means: string
}

export const bindings: ReadonlyArray<Binding> = [
  { command: "next", key: "j", shown: ["J"], means: "Next card" },
  { command: "previous", key: "k", shown: ["K"], means: "Previous card" },
  { command: "approve", key: "a", shown: ["A"], means: "Approve" },
  { command: "reject", key: "r", shown: ["R"], means: "Reject with a reason" },
  { command: "edit", key: "e", shown: ["E"], means: "Edit and approve" },
  { command: "lookAgain", key: "l", shown: ["L"], means: "Re-evaluate outdated suggestion" },
  { command: "select", key: "x", shown: ["X"], means: "Select or deselect" },
  { command: "selectGroup", key: "X", shown: ["⇧", "X"], means: "Select or deselect group" },
  { command: "approveSelected", key: "A", shown: ["⇧", "A"], means: "Approve all selected" },
  { command: "rejectSelected", key: "R", shown: ["⇧", "R"], means: "Reject all selected" },
  { command: "clear", key: "Escape", shown: ["Esc"], means: "Clear selection" }
]

/** What of a key press matters here; a browser's KeyboardEvent has it all. */
export interface KeyPress {
  readonly key: string
  readonly repeat: boolean
  readonly ctrlKey: boolean
  readonly metaKey: boolean
  readonly altKey: boolean
  readonly isComposing: boolean
}

/** Moving on may be held down; everything else asks for a press of its own. */
const repeatable: ReadonlyArray<Command> = ["next", "previous"]

export const commandOf = (press: KeyPress): Command | undefined => {
  if (press.ctrlKey || press.metaKey || press.altKey || press.isComposing) return undefined
  const command = bindings.find(({ key }) => key === press.key)?.command
  return command !== undefined && press.repeat && !repeatable.includes(command) ? undefined : command
}

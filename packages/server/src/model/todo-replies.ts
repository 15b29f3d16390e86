/**
 * What TodoAssistant's script says: short, friendly, and nothing of a task that no tool has told (S003-R13…R19).
 */
import { shortened } from "@tropism/domain/text-beginning"
import type { Deed, Listed, ListStatus, Named } from "./todo-intents.ts"

/** Of a long title as much as is told back. */
const titleMaxChars = 80

const short = (title: string): string =>
  title.length > titleMaxChars ? shortened(title, titleMaxChars - 1) : title

export const nameOf = ({ id, title }: Named): string => `#${id} “${short(title)}”`

/** Names in one sentence. */
export const namesOf = (tasks: ReadonlyArray<Named>): string => inOneSentence(tasks.map(nameOf))

export const inOneSentence = (parts: ReadonlyArray<string>, joint = "and"): string =>
  parts.length < 2 ? (parts[0] ?? "") : `${parts.slice(0, -1).join(", ")} ${joint} ${parts.at(-1)}`

/** Tasks that one answer lists. */
export const listedMax = 100

const line = ({ completed, description, id, title }: Listed): string =>
  `- [${completed ? "x" : " "}] #${id} ${short(title)}${description ? ` (${short(description)})` : ""}`

/** One task with all that is known of it. */
export const taskOf = ({ completed, description, id, title }: Listed): string =>
  `#${id} “${title}” is ${completed ? "done" : "still pending"}.${description ? ` Description: ${description}` : ""}`

/** A list as it is read (S003-R14). */
export const listOf = (tasks: ReadonlyArray<Listed>): string => {
  const lines = tasks.slice(-listedMax).map(line)
  const left = tasks.length - lines.length
  return `${lines.join("\n")}${left > 0 ? `\n(${left} older ones are not shown: ask for one by a word of its title.)` : ""}`
}

export const counted = (count: number, status: ListStatus): string =>
  `${count} ${status === "all" ? "" : `${status} `}task${count === 1 ? "" : "s"}`

export const emptyList: Readonly<Record<ListStatus, string>> = {
  all: "Your list is empty. Tell me what to add, for example “add buy milk”.",
  pending: "You have no pending tasks: nothing is left to do.",
  completed: "You have not completed any tasks yet."
}

const verbs: Readonly<Record<Deed["type"], readonly [past: string, base: string]>> = {
  complete: ["marked as done", "complete"],
  delete: ["deleted", "delete"],
  update: ["updated", "change"],
  show: ["found", "see"]
}

export const pastOf = (deed: Deed): string => verbs[deed.type][0]
export const verbOf = (deed: Deed): string => verbs[deed.type][1]

/** One line for each that may be meant. */
export const choiceOf = (tasks: ReadonlyArray<Named>): string =>
  tasks.map(({ id, title }) => `- #${id} ${short(title)}`).join("\n")

/** What it is and what it understands, told at the beginning and when somebody asks. */
export const honestly =
  "I am TodoAssistant running as a script: no AI language model is set up on this server, so I follow fixed rules and understand plain requests only."

export const abilities =
  "I can add tasks (“add buy milk”), list all, pending or completed ones (“what's pending?”), complete, delete, and change titles or descriptions, by number or by title (“complete task 2”, “delete the dentist task”, “rename 3 to Call mom”)."

export const sentences = {
  hello: "Hello! What shall I do with your todo list?",
  thanks: "You're welcome! Tell me if there is more to do on your list.",
  bye: "Goodbye! Your list is kept.",
  reopen:
    "I can't open a completed task again: I have no tool for that. I can add it as a new task if you tell me its title.",
  undo: "I can't undo what was done. I can add, change, complete or delete a task if you tell me which.",
  no: "All right, I leave everything as it is.",
  yes: "I have not asked you anything that is still open. What shall I do with your list?",
  addWhat: "What shall I add? Tell me the title of the task.",
  stopped:
    "I had to stop before I was done: I may not use any more tools for this message. Ask me again for the rest."
} as const

export const whatToDo =
  "What shall I do with that task? I can complete, delete or rename it, for example “complete task 2”."

/** Whatever is not about the list. */
export const outOfRange = (what: string): string =>
  `I can't help with ${what}: I only keep your todo list. ${abilities}`

export const notUnderstood = (text: string): string =>
  `I'm not sure what to do with “${short(text)}”. Shall I add it as a task? Or tell me what to list, complete, delete or rename.`

export const addMore = (titles: ReadonlyArray<string>): string =>
  `Shall I add ${inOneSentence(titles.map((title) => `“${short(title)}”`))} as well?`

/** What is wanted only perhaps is not done. */
export const doubtful = {
  condition:
    "I can't see whether that has come true, and I do nothing later by myself, so I have done nothing. Shall I do it now?",
  doubt: "That sounds as if you had not decided, so I have done nothing. Shall I do it?"
} as const

const offer = "Would you like to see your current tasks?"

export const notFoundById = (id: number): string => `I couldn't find task #${id}. ${offer}`

export const notFoundByTitle = (text: string): string =>
  `I couldn't find that task: nothing on your list matches “${short(text)}”. ${offer}`

/** What a tool that failed is told as; it is never called again by itself (S003-R50…R52, R57…R59). */
export const failure = (error: string, what: string, id: number | null): string => {
  if (/^task not found|\/task_id\b/i.test(error))
    return id === null ? `I couldn't find that task. ${offer}` : notFoundById(id)
  const tooLong = /^(title|description) must be ([\d,]+) characters or less/i.exec(error)
  if (tooLong)
    return `That ${tooLong[1]?.toLowerCase()} is too long: it may have ${tooLong[2]} characters or less, so nothing was changed. Could you give me a shorter one?`
  if (/^title is required/i.test(error)) return "A task needs a title. What shall it be called?"
  if (/^at least title or description/i.test(error))
    return "Tell me the new title or the new description, and I will change it."
  if (/schema|arguments/i.test(error))
    return `I'm sorry, I couldn't ${what} as you said it. Could you say it in other words?`
  return `I'm sorry, I couldn't ${what}: ${short(error).replace(/[.!]*$/, "")}. I don't try again by myself. You can ask me again in a moment, or ask me to show your tasks first.`
}

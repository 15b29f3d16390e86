/**
 * Reads off words that somebody wants to see one task.
 */
import type { Intent } from "./todo-intents.ts"
import { heardBy, rule } from "./todo-lexicon.ts"
import { readRef } from "./todo-refs.ts"

const shows = [
  rule(
    "(?:show|display|view|open|see|read|get|find|check|look at|describe|pull up|tell me about|what's|what is|what does|more (?:about|on)|(?:(?:show|tell|give) )?(?:me )?(?:the )?(?:full )?(?:details?|description|more|notes?|title|name|status) (?:of|on|about|for)|what(?:'s| is| are) the (?:details|description|title|name|status) (?:of|on|for))(?: me)? {task}(?: (?:say|about|mean|is|again))?"
  )
]
const asked = [
  rule("(?:is|are|was|were) {task} (?:<done>|(?:still )?(?:open|pending|on <list>))(?: yet| already)?"),
  rule(
    "(?:did|have|has) i (?:already |ever )?(?:done |finished |finish |completed |complete |do )?{task}(?: yet| already)?"
  ),
  rule("(?:what(?:'s| is) the status of|status of|what about|how about) {task}")
]

const noTask =
  /^(?:anything|something|what|any|any (?:tasks|to-?dos)|everything|all|all of it|it all|left|add|the rest|(?:the )?(?:open|pending|completed|finished|done|other|remaining)(?: ones?| tasks?| stuff| things?)?)\b/i

/** Reads a wish to see a task; undefined where it is none. */
export const readShow = (text: string): Intent | undefined => {
  const said = heardBy(shows, text)?.["task"]
  const plain = said === undefined ? undefined : readRef(said)
  if (plain && (plain.kind === "ids" || plain.kind === "place")) return showing(plain)
  const task = heardBy(asked, text)?.["task"]
  if (task === undefined || noTask.test(task)) return undefined
  const ref = readRef(task, true)
  return ref.kind === "none" || ref.kind === "all" ? undefined : showing(ref)
}

const showing = (ref: ReturnType<typeof readRef>): Intent => ({ type: "deed", deed: { type: "show" }, ref })

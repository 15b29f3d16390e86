/**
 * Puts the clauses of one message together: what "it" is, and which of them say one thing twice.
 */
import type { Intent } from "./todo-intents.ts"
import { titleOf } from "./todo-words.ts"

type DeedIntent = Extract<Intent, { readonly type: "deed" }>

/** Intents in which nothing refers to a clause before it that a person would not do apart. */
export const woven = (intents: ReadonlyArray<Intent>): ReadonlyArray<Intent> => {
  const result: Array<Intent> = []
  for (const intent of intents) {
    const last = result.findLast(({ type }) => type !== "aside")
    const put = (...to: ReadonlyArray<Intent>) =>
      result.splice(last ? result.indexOf(last) : 0, last ? 1 : 0, ...to)
    if (intent.type === "that") {
      if (last?.type === "unknown" || last?.type === "beyond" || last?.type === "mention")
        put(thatAdded(last))
      else if (last?.type !== "add") result.push({ type: "add", tasks: [] })
    } else if (intent.type === "deed" && last && isPointing(intent)) {
      const merged = mergedOf(last, intent)
      if (merged) put(merged)
      else result.push(intent)
    } else if (
      intent.type === "deed" &&
      intent.isTold === true &&
      last?.type === "deed" &&
      last.deed.type === "delete" &&
      last.isTold !== true
    ) {
      // Why somebody wants to be rid of a task.
    } else if (
      intent.type === "mention" &&
      last?.type === "deed" &&
      (isPointing(last) || intent.isInstead === true)
    )
      put({ ...last, ref: intent.ref })
    else if (
      intent.type === "deed" &&
      last?.type === "mention" &&
      !isPointing(intent) &&
      intent.isTold !== true
    )
      put(intent)
    else result.push(intent)
  }
  return result
}

const thatAdded = (intent: Intent): Intent => {
  if (intent.type === "mention" && intent.ref.kind === "title")
    return { type: "add", tasks: [{ title: titleOf(intent.ref.text) }] }
  return { type: "add", tasks: intent.type === "unknown" ? [{ title: titleOf(intent.text) }] : [] }
}

const isPointing = ({ ref }: DeedIntent): boolean => ref.kind === "it" || ref.kind === "none"

/** One intent of two where the second only says more of the first; undefined where both are to be done. */
const mergedOf = (last: Intent, next: DeedIntent): Intent | undefined => {
  if (last.type === "mention") return { ...next, ref: last.ref }
  if (last.type !== "deed") return undefined
  const { deed } = last
  if (deed.type === "update" && next.deed.type === "update") {
    const said = Object.fromEntries(Object.entries(next.deed).filter(([, words]) => words !== undefined))
    return { ...last, deed: { ...deed, ...said, type: "update" } }
  }
  if (deed.type === next.deed.type)
    return isPointing(last) ? { ...next, ref: last.ref } : { type: "deed", deed, ref: last.ref }
  if (next.isTold === true) return last
  return last.isTold === true ? { ...next, ref: last.ref } : undefined
}

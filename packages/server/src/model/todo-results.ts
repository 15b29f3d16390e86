/**
 * Reads what the todo tools answer (P3-MCP-01…06).
 */
import type { Listed, Named } from "./todo-intents.ts"

export type Told = Named

type Answered = { readonly task: Told } | { readonly error: string }

interface Result {
  readonly result: unknown
  readonly isError: boolean
}

const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Array.isArray(value)

/** What a change came to. */
export const readTold = (outcome: Result | undefined): Answered => {
  const result = outcome?.result
  if (outcome?.isError !== true && isRecord(result)) {
    const { task_id: id, title } = result
    if (typeof id === "number" && typeof title === "string") return { task: { id, title } }
  }
  return { error: errorOf(result) }
}

export const failed = (answered: Answered): answered is { readonly error: string } => "error" in answered

/** The tasks of a list. */
export const readListed = (
  outcome: Result | undefined
): ReadonlyArray<Listed> | { readonly error: string } => {
  const result = outcome?.result
  const items = Array.isArray(result)
    ? result
    : isRecord(result) && Array.isArray(result["result"])
      ? result["result"]
      : undefined
  if (outcome?.isError === true || items === undefined) return { error: errorOf(result) }
  return items.flatMap((item: unknown): ReadonlyArray<Listed> => {
    if (!isRecord(item)) return []
    const { completed, description, id, title } = item
    if (typeof id !== "number" || typeof title !== "string") return []
    return [
      {
        id,
        title,
        description: typeof description === "string" ? description : null,
        completed: completed === true
      }
    ]
  })
}

const errorOf = (result: unknown): string => {
  if (typeof result === "string" && result !== "") return result
  const { detail, error, message } = isRecord(result) ? result : {}
  return (
    [error, message, detail].find((text) => typeof text === "string") ??
    "the tool gave no answer that I understand"
  )
}

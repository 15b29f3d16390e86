/**
 * Which tools an agent may use: names and globs, `server.tool`.
 *
 * An empty list means no tools. A model sees a built-in tool by its bare name
 * and one of a foreign server as `server__tool`.
 */
import { Schema } from "effect"

export const ToolPattern = Schema.String.check(
  Schema.isPattern(/^[A-Za-z0-9_*-]+\.[A-Za-z0-9_*-]+$/, {
    message: "A tool is named server.tool, with * as a wildcard: graph.* or graph.get_object"
  })
)

export const ToolPatterns = Schema.Array(ToolPattern).check(Schema.isMaxLength(100))

/** Whether a list of names and globs has a name. */
export const allows = (patterns: ReadonlyArray<string>, name: string): boolean =>
  patterns.some((pattern) => {
    const source = pattern
      .split("*")
      .map((part) => part.replace(/[.\\+?^${}()|[\]]/g, "\\$&"))
      .join(".*")
    return new RegExp(`^${source}$`).test(name)
  })

/** Whether everything that a name or glob can stand for is within a list. */
export const isWithin = (patterns: ReadonlyArray<string>, pattern: string): boolean =>
  // A * that a list's * takes in can be anything there.
  allows(patterns, pattern)

/** What two lists have in common, as far as one name or glob of either lies within the other list. */
export const commonTools = (
  some: ReadonlyArray<string>,
  others: ReadonlyArray<string>
): ReadonlyArray<string> => {
  const within = others.filter((pattern) => isWithin(some, pattern))
  return within.length === others.length
    ? others
    : [...new Set([...within, ...some.filter((pattern) => isWithin(others, pattern))])]
}

/** The servers of this program; a foreign server has another name. */
export const builtInServers = ["graph", "tasks", "agents", "run"] as const

/** Whether a name or glob can only stand for tools of this program. */
export const isBuiltInPattern = (pattern: string): boolean =>
  builtInServers.some((server) => pattern.startsWith(`${server}.`))

/** By what a step's list names the tools that a context defines and a client answers: `client.pick_colour`, `client.*`. */
export const clientServer = "client"

/** Whether a name or glob stands for such tools alone. */
export const isClientPattern = (pattern: string): boolean => pattern.startsWith(`${clientServer}.`)

/** Whether a list has a tool by the name that the model sees. */
export const allowsOffered = (patterns: ReadonlyArray<string>, offered: string): boolean =>
  offered.includes("__")
    ? allows(patterns, offered.replace("__", "."))
    : builtInServers.some((server) => allows(patterns, `${server}.${offered}`))

/**
 * The names of this program's own tools, by their server, and what a list of tools gets wrong about them.
 *
 * What a foreign server offers is known only when it is asked; what is built in
 * is known when an agent is saved, so a misspelling is told then and not by a
 * run that lacks its tool.
 */
import { type Capabilities, type ChangeKind, isForbidden } from "./capability.ts"
import { pointerStep } from "./json.ts"
import { allows } from "./tool-pattern.ts"

export const builtInTools = {
  graph: [
    "search_objects",
    "get_object",
    "neighbors",
    "create_object",
    "update_object",
    "delete_object",
    "create_relationship",
    "update_relationship",
    "delete_relationship"
  ],
  run: ["spawn_agent", "list_agents", "ask_user", "exit_loop"],
  tasks: ["add_task", "list_tasks", "complete_task", "delete_task", "update_task"]
} as const

/** What each tool of the graph that writes would change; the others only read. */
const graphWrites: Partial<Record<string, ChangeKind>> = {
  "graph.create_object": "create",
  "graph.update_object": "update",
  "graph.delete_object": "delete",
  "graph.create_relationship": "createRelationship",
  "graph.update_relationship": "updateRelationship",
  "graph.delete_relationship": "deleteRelationship"
} satisfies Partial<Record<`graph.${(typeof builtInTools.graph)[number]}`, ChangeKind>>

/** Whether an agent's capabilities refuse every call of a tool. */
export const isForbiddenTool = (capabilities: Capabilities | null, tool: string): boolean => {
  const kind = graphWrites[tool]
  return kind !== undefined && isForbidden(capabilities, kind)
}

/** The tools of an agent whose definition names none: those of the graph, without those that its capabilities forbid. */
export const defaultTools = (capabilities: Capabilities | null): ReadonlyArray<string> => {
  const all = builtInTools.graph.map((tool) => `graph.${tool}`)
  const allowed = all.filter((tool) => !isForbiddenTool(capabilities, tool))
  return allowed.length === all.length ? ["graph.*"] : allowed
}

/** The tool by which an agent hands a task to another. */
export const spawnTool = "run.spawn_agent"

/** The server that only people reach: an agent that could use it would leave its chain, or approve itself. */
const peopleServer = "agents"
const forPeople = `The server ${peopleServer} is for people alone: an agent hands work to another with ${spawnTool}`

/** Every built-in tool, as a list of tools names it. */
export const builtInNames: ReadonlyArray<string> = Object.entries(builtInTools).flatMap(([server, tools]) =>
  tools.map((tool) => `${server}.${tool}`)
)

/** The first name or glob of a built-in server that stands for none of its tools; `pointer` is where the list stands. */
export const findUnknownTool = (
  pointer: string,
  patterns: ReadonlyArray<string>
): { readonly pointer: string; readonly message: string } | undefined => {
  for (const [index, pattern] of patterns.entries()) {
    const [server = ""] = pattern.split(".")
    if (server === peopleServer) return { pointer: pointer + pointerStep(index), message: forPeople }
    const own = builtInNames.filter((name) => name.startsWith(`${server}.`))
    if (own.length === 0 || own.some((name) => allows([pattern], name))) continue
    const message = `No tool of the server ${server} is named ${pattern}: the nearest are ${nearest(pattern, own).join(", ")}`
    return { pointer: pointer + pointerStep(index), message }
  }
  return undefined
}

/** The three names that the fewest letters part from a text, the nearest first. */
const nearest = (text: string, candidates: ReadonlyArray<string>): ReadonlyArray<string> =>
  candidates
    .map((name) => ({ name, letters: lettersApart(text, name) }))
    .toSorted((a, b) => a.letters - b.letters)
    .slice(0, 3)
    .map(({ name }) => name)

/** How many letters must be added, dropped or changed to make one text of another. */
const lettersApart = (from: string, to: string): number => {
  let row = Array.from({ length: to.length + 1 }, (_, index) => index)
  for (const [line, letter] of [...from].entries()) {
    const next = [line + 1]
    for (const [column, other] of [...to].entries())
      next.push(
        Math.min(
          (row[column + 1] ?? 0) + 1,
          (next[column] ?? 0) + 1,
          (row[column] ?? 0) + (letter === other ? 0 : 1)
        )
      )
    row = next
  }
  return row.at(-1) ?? 0
}

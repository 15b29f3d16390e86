/**
 * Who can reach the todos: an agent only through a tool, and a chat that holds nothing (S003 §4.2, §5.1).
 *
 * The staircase says which folder may import which; an agent's side may import
 * tools, for it calls them. These rules follow the imports further: whatever
 * leads from there to the todos goes through `tools/`.
 */
import { type Complaint, importsOf, lineAt, type SourceFile, withoutComments } from "./source-text.ts"

const machine = "packages/server/src/"

/** Where todos are kept: the use cases, and beside them nobody writes their rows. */
export const todos = `${machine}review/todos.ts`

/** Who may name them: the tools, the door of people, and the place where all layers meet. */
const mayName: ReadonlyArray<string> = ["tools/todo-tools.ts", "http/review-routes.ts", "review/layer.ts"]

/** The side of the agent: what is said to it, what it is, what it works with and what it is asked. */
const agentSide = /^packages\/server\/src\/(?:chat|runs|agents|contexts|models)\//

const isCode = ({ path }: SourceFile): boolean =>
  path.startsWith(machine) && path.endsWith(".ts") && !path.endsWith(".test.ts")

/** S003-R42, R43: ways by imports from the agent's side to the todos that go through no tool, each named by its steps. */
export const findWaysPastTools = (files: ReadonlyArray<SourceFile>): ReadonlyArray<Complaint> => {
  const house = new Map(files.filter(isCode).map((file) => [file.path, targetsOf(file)]))
  return [...house.keys()]
    .filter((path) => agentSide.test(path))
    .flatMap((path) => {
      const way = wayTo(house, path)
      return way === undefined
        ? []
        : [{ path, line: 1, message: `reaches the todos past the tools: ${way.join(" → ")}` }]
    })
}

/** The files of the server that a file imports. */
const targetsOf = ({ path, text }: SourceFile): ReadonlyArray<string> =>
  importsOf(text)
    .filter(({ specifier }) => specifier.startsWith("."))
    .map(({ specifier }) => new URL(specifier, `file:///${path}`).pathname.slice(1))

/** The shortest way to the todos that enters no tool. */
const wayTo = (
  house: ReadonlyMap<string, ReadonlyArray<string>>,
  start: string
): ReadonlyArray<string> | undefined => {
  const seen = new Set([start])
  let ways: ReadonlyArray<ReadonlyArray<string>> = [[start]]
  while (ways.length > 0) {
    const found = ways.find((way) => way.at(-1) === todos)
    if (found) return found.map((path) => path.slice(machine.length))
    ways = ways.flatMap((way) =>
      (house.get(way.at(-1) ?? "") ?? [])
        .filter((target) => !target.startsWith(`${machine}tools/`) && !seen.has(target))
        .map((target) => {
          seen.add(target)
          return [...way, target]
        })
    )
  }
  return undefined
}

/** Files that name the use cases of todos and may not. */
export const findStrangers = (files: ReadonlyArray<SourceFile>): ReadonlyArray<Complaint> =>
  files
    .filter(isCode)
    .filter((file) => targetsOf(file).includes(todos) && !mayName.includes(file.path.slice(machine.length)))
    .map(({ path }) => ({ path, line: 1, message: "names the use cases of todos: call a tool" }))

/** S003-R41: statements on the agent's side that name the table of tasks. */
export const findStatements = (files: ReadonlyArray<SourceFile>): ReadonlyArray<Complaint> =>
  files
    .filter((file) => isCode(file) && agentSide.test(file.path))
    .flatMap(({ path, text }) =>
      [...withoutComments(text).matchAll(/\bkb\.(?:tasks|todo\w*)\b/g)].map((match) => ({
        path,
        line: lineAt(text, match.index),
        message: `names ${match[0]} in a statement: an agent reaches it through a tool alone`
      }))
    )

/** S003-R36…R40: what a file of `chat` would hold from one request to the next, at its top or beside a service. */
export const findHeld = (files: ReadonlyArray<SourceFile>): ReadonlyArray<Complaint> =>
  files
    .filter((file) => isCode(file) && file.path.startsWith(`${machine}chat/`))
    .flatMap(({ path, text }) =>
      [...withoutComments(text).matchAll(holding)].map((match) => ({
        path,
        line: lineAt(text, match.index),
        message: "holds something between two requests: the log is the memory of a chat"
      }))
    )

/** A variable or a container that no function makes for itself: a service's body is indented by six blanks. */
const holding =
  /^ {0,6}(?:let\b|const \w+(?:: [^=\n]+)? = (?:yield\* )?(?:new (?:Map|Set|WeakMap|Array)\b|\[\]|\{\}|(?:Ref|SynchronizedRef|SubscriptionRef|Cache|Queue|PubSub|FiberMap|RcMap)\.))/gm

/**
 * The words in which stories import lockfiles and look at what came of it.
 */
import { Effect } from "effect"
import type { Answer, Json, Story } from "./platform.ts"

/** Sends a file to be imported. */
export const importFile = (
  story: Story,
  file: string | Uint8Array,
  headers: Record<string, string> = {},
  query = "?format=package-lock"
): Effect.Effect<Answer> =>
  story.send("POST", `/api/projects/${story.projectId}/import${query}`, file, {
    "content-type": "application/octet-stream",
    ...headers
  })

/** The lines of an import's answer. */
export const linesOf = ({ body }: Pick<Answer, "body">): ReadonlyArray<Json> =>
  typeof body === "string"
    ? body
        .trim()
        .split("\n")
        .map((line) => JSON.parse(line))
    : [body]

/** Imports a file and answers the last line: what was changed, or why it was not. */
export const importLock = (story: Story, file: string): Effect.Effect<Json> =>
  Effect.map(importFile(story, file), (answer) => linesOf(answer).at(-1))

/** Imports lines and answers all that is told. */
export const importLines = (
  story: Story,
  file: string | Uint8Array,
  query = "?format=jsonl"
): Effect.Effect<ReadonlyArray<Json>> =>
  Effect.map(importFile(story, file, {}, query), (answer) =>
    answer.status === 200 ? linesOf(answer) : [{ type: "refused", ...answer.body }]
  )

/** Objects and relationships as lines of a file. */
export const jsonl = (...lines: ReadonlyArray<unknown>): string =>
  lines.map((line) => `${typeof line === "string" ? line : JSON.stringify(line)}\n`).join("")

/** The lines of an export. */
export const exported = (story: Story, query = ""): Effect.Effect<ReadonlyArray<Json>> =>
  Effect.map(story.send("GET", `/api/projects/${story.projectId}/export${query}`), ({ body }) =>
    body === null
      ? []
      : (typeof body === "string" ? body.trim().split("\n") : [JSON.stringify(body)]).map((line) =>
          JSON.parse(line)
        )
  )

/** All items of a list of a project, whatever their number. */
export const allOf = Effect.fn("allOf")(function* (story: Story, path: string) {
  const items: Array<Json> = []
  let cursor: string | null = ""
  while (cursor !== null) {
    const page: { readonly items: ReadonlyArray<Json>; readonly nextCursor: string | null } =
      yield* story.get(`${path}?limit=200${cursor === "" ? "" : `&cursor=${cursor}`}`)
    items.push(...page.items)
    cursor = page.nextCursor
  }
  return items
})

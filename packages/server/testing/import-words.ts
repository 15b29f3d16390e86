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
export const linesOf = ({ body }: Answer): ReadonlyArray<Json> =>
  typeof body === "string"
    ? body
        .trim()
        .split("\n")
        .map((line) => JSON.parse(line))
    : [body]

/** Imports a file and answers the last line: what was changed, or why it was not. */
export const importLock = (story: Story, file: string): Effect.Effect<Json> =>
  Effect.map(importFile(story, file), (answer) => linesOf(answer).at(-1))

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

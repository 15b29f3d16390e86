/**
 * Cursors of the event source: places in a project's feed, in a form that says nothing to a client.
 *
 * Flow: **mcp** → graph → outbox → dispatch → run → tool → task
 *
 * A cursor names its project, so one that was given out for another is refused
 * and does not quietly mean some place here.
 */
import type { ProjectId } from "@tropism/domain/ids"

/** The cursor of what comes behind a place. */
export const cursorAt = (projectId: ProjectId, position: number): string =>
  Buffer.from(`1.${projectId}.${position}`).toString("base64url")

/** The place of a cursor; undefined where it is none of this project. */
export const positionOf = (projectId: ProjectId, cursor: string): number | undefined => {
  const text = Buffer.from(cursor, "base64url").toString("utf8")
  const { position, project } =
    /^1\.(?<project>[0-9a-f-]{36})\.(?<position>\d{1,15})$/.exec(text)?.groups ?? {}
  return project === projectId && cursorAt(projectId, Number(position)) === cursor
    ? Number(position)
    : undefined
}

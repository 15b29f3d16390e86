/**
 * Who asks for tasks, and what they may do.
 *
 * Flow: **mcp** → graph → outbox → dispatch → run → tool → task
 */
import { includesRole, type Principal } from "@tropism/api/authorization"
import type { ProjectId } from "@tropism/domain/ids"
import type { Terms } from "./run-task.ts"

/** Who asks, and whether forms can be shown to the person behind it. */
export interface TaskCaller {
  readonly principal: Principal
  readonly projectId: ProjectId
  readonly canElicit: boolean
}

/** What a caller can be asked, but for what they have declined of a run. */
export const termsOf = ({ canElicit, principal: { role } }: TaskCaller): Omit<Terms, "declined"> => ({
  canElicit,
  mayWrite: includesRole(role, "editor")
})

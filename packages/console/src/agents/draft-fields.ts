/**
 * What each part of an agent's form gets.
 */
import type { AgentDraft } from "./agent-draft.ts"

export interface DraftFields {
  readonly draft: AgentDraft
  readonly change: (changes: Partial<AgentDraft>) => void
  /** What the server refused. */
  readonly error: unknown
}

/**
 * What each part of an agent's form gets.
 */
import type { FieldWords } from "../parts/field.tsx"
import type { AgentDraft } from "./agent-draft.ts"

export interface DraftFields {
  readonly draft: AgentDraft
  readonly change: (changes: Partial<AgentDraft>) => void
  /** What a field at this place of the definition is told, so that what is wrong with it stands there. */
  readonly at: At
}

export type At = (pointer: string) => Required<Pick<FieldWords, "pointer" | "error">>

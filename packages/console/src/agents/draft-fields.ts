/**
 * What each part of an agent's form gets.
 */
import type { FieldWords } from "../parts/field.tsx"
import type { AgentDraft } from "./agent-draft.ts"
import type { DraftFault } from "./draft-texts.ts"

export interface DraftFields {
  readonly draft: AgentDraft
  readonly change: (changes: Partial<AgentDraft>) => void
  /** What a field at this place of the definition is told, so that what is wrong with it stands there. */
  readonly at: At
}

export type At = (pointer: string) => Required<Pick<FieldWords, "pointer" | "error" | "fault">>

/** `error` is what the server refused, `fault` what could not be sent. */
export const atPlaces =
  (error: unknown, fault: DraftFault | undefined): At =>
  (pointer) => ({ pointer, error, fault: fault?.pointer === pointer ? fault.message : undefined })

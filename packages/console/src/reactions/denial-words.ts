/**
 * Denials in words.
 */
import type { Denial, DenialReason } from "@tropism/domain/denial"
import { changeVerbs } from "../suggestion/change-words.ts"

/** Which right was missing. */
export const missingRight = (reason: DenialReason): string => rights[reason]

const rights: Readonly<Record<DenialReason, string>> = {
  notPermitted: "Not permitted by the agent's capabilities.",
  untrusted: "The run had read untrusted content.",
  agentDisabled: "The agent was disabled.",
  forbidden: "Not permitted by the person's role.",
  tooManySuggestions: "Too many pending suggestions.",
  rejectedBefore: "Rejected by a person before."
}

/** What it would have been, and by which tool: "Create Company, by create_object". */
export const deniedText = ({ change, tool }: Pick<Denial, "change" | "tool">): string =>
  change === null
    ? tool
    : `${changeVerbs[change.type]}${"objectType" in change ? ` ${change.objectType}` : ""}, by ${tool}`

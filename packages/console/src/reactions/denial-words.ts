/**
 * Denials in words.
 */
import type { Denial, DenialReason } from "@tropism/domain/denial"
import { changeVerbs } from "../suggestion/change-words.ts"

/** Which right was missing. */
export const missingRight = (reason: DenialReason): string => rights[reason]

const rights: Readonly<Record<DenialReason, string>> = {
  notPermitted: "The agent's rights do not reach so far.",
  untrusted: "Its run had read something untrusted.",
  agentDisabled: "The agent was disabled.",
  forbidden: "The person's role does not allow it.",
  tooManySuggestions: "Too many suggestions wait for a person.",
  rejectedBefore: "A person has rejected this before."
}

/** What it would have been, and by which tool: "Create Company, by create_object". */
export const deniedText = ({ change, tool }: Pick<Denial, "change" | "tool">): string =>
  change === null
    ? tool
    : `${changeVerbs[change.type]}${"objectType" in change ? ` ${change.objectType}` : ""}, by ${tool}`

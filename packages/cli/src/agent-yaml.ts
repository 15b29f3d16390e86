/**
 * An agent as YAML that says no more than it must, and applies back without a change.
 */
import type { Agent } from "@tropism/domain/agent"
import { definitionOf, leanAgent } from "@tropism/domain/agent-version"
import { canonicalJson } from "@tropism/domain/json"
import { parseDocument, stringify } from "yaml"

/**
 * The document of one agent, ending in a line break.
 *
 * **Gotchas** The library writes some texts of nothing but white space as a block
 * that it does not read back; such a document has its texts in quotes.
 */
export const agentYaml = (agent: Agent): string => {
  const lean = leanAgent(definitionOf(agent))
  const readable = stringify(lean, { ...settings, blockQuote: "literal" })
  const readBack = parseDocument(readable)
  return readBack.errors.length === 0 && canonicalJson(readBack.toJS()) === canonicalJson(lean)
    ? readable
    : stringify(lean, { ...settings, blockQuote: false })
}

/** A text in quotes stays on one line: broken over several, not each is read back. */
const settings = {
  lineWidth: 0,
  aliasDuplicateObjects: false,
  doubleQuotedMinMultiLineLength: Number.MAX_SAFE_INTEGER
}

/** Several agents in one text. */
export const agentsYaml = (agents: ReadonlyArray<Agent>): string => agents.map(agentYaml).join("---\n")

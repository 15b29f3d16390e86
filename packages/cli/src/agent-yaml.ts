/**
 * An agent as YAML that says no more than it must, and applies back without a change.
 */
import type { Agent } from "@tropism/domain/agent"
import { definitionOf, leanAgent } from "@tropism/domain/agent-version"
import { stringify } from "yaml"

/** The document of one agent, ending in a line break. */
export const agentYaml = (agent: Agent): string =>
  stringify(leanAgent(definitionOf(agent)), {
    lineWidth: 0,
    blockQuote: "literal",
    aliasDuplicateObjects: false
  })

/** Several agents in one text. */
export const agentsYaml = (agents: ReadonlyArray<Agent>): string => agents.map(agentYaml).join("---\n")

/**
 * Goes to the page of an agent that a form has made, once the form knows that nothing in it is lost by that.
 *
 * Whoever has left the form meanwhile stays where they are.
 */
import type { Agent } from "@tropism/domain/agent"
import { useNavigate } from "@tanstack/react-router"
import { useEffect, useState } from "react"

export const useMade = () => {
  const navigate = useNavigate()
  const [agentId, setAgentId] = useState<string>()
  // What stands below this hook's component has drawn by then that it is made.
  useEffect(() => {
    if (agentId !== undefined) void navigate({ to: "/agents/$agentId", params: { agentId } })
  }, [agentId, navigate])
  return { isMade: agentId !== undefined, goTo: ({ id }: Agent): void => setAgentId(id) }
}

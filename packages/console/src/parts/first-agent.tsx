/**
 * How the first agent of a project is made: in the form, or of a file.
 */
import { Link } from "@tanstack/react-router"
import type { ReactNode } from "react"
import { useConsole } from "../frame/console-context.tsx"
import { Command } from "./command.tsx"

/** Whether an agent is the one that every project begins with; it speaks with people and reacts to nothing. */
export const isGiven = (agentName: string): boolean => agentName === "TodoAssistant"

export const FirstAgent = (): ReactNode => {
  const { isAdmin } = useConsole()
  return (
    <section aria-label="The first agent" className="max-w-xl text-sm text-ink-soft">
      <p className="mb-3 text-pretty">
        No agent reacts to the graph yet.{" "}
        {isAdmin ? (
          <>
            <Link to="/agents/new" className="font-medium text-leaf underline underline-offset-2">
              Create the first one
            </Link>
            or define agents in a file:
          </>
        ) : (
          "A project admin can create one, also from a file:"
        )}
      </p>
      <Command text="npx tropism agents apply -f agents.yaml" />
    </section>
  )
}

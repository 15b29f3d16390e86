/**
 * What a foreign server listed when somebody looked: each tool in its own words, and whether agents may have it.
 */
import type { McpServer } from "@tropism/domain/mcp-server"
import type { ReactNode } from "react"
import { useConsole } from "../frame/console-context.tsx"
import { Button } from "../parts/button.tsx"
import { Failure } from "../parts/failure.tsx"
import { TimeAgo } from "../parts/time-ago.tsx"
import { Visible } from "../parts/visible.tsx"
import { useAct } from "../server/use-act.ts"
import { cutText } from "../words/cut-text.ts"
import { visibleText } from "../words/visible-text.ts"
import { allowTool } from "./settings-acts.ts"

/** What is to be so of one tool. */
interface Wish {
  readonly tool: string
  readonly isAllowed: boolean
}

export const ServerTools = ({ server }: { readonly server: McpServer }): ReactNode => {
  const { project, isAdmin } = useConsole()
  const allow = useAct({
    what: ({ tool, isAllowed }: Wish) => `${isAllowed ? "Allow" : "Forbid"} ${visibleText(tool)}`,
    act: ({ tool, isAllowed }: Wish) => allowTool(project.id, server.id, tool, isAllowed),
    touches: [[project.id, "mcp-servers"]]
  })
  if (server.tools.length === 0)
    return <p className="mt-2 text-xs text-ink-soft">The server listed no tools.</p>
  return (
    <>
      {allow.error !== null && <Failure error={allow.error} />}
      <ul aria-label={`Tools of ${server.name}`} className="m-0 mt-3 grid list-none gap-2.5 p-0 pl-3">
        {server.tools.map((tool) => (
          <li
            key={tool.name}
            data-is-changed={tool.changedAt !== null}
            className="border-l-2 border-line pl-3 text-xs"
          >
            <span className="flex flex-wrap items-baseline gap-x-2">
              <code className="text-sm">
                <Visible text={tool.name} />
              </code>
              <span className="text-ink-faint">
                {tool.isAllowed ? "allowed for agents" : "not allowed for agents"}
              </span>
              {isAdmin && !tool.isAllowed && (
                <Button
                  size="small"
                  weight="quiet"
                  disabled={allow.isBusy}
                  onClick={() => allow.run({ tool: tool.name, isAllowed: true })}
                >
                  Allow <span className="sr-only"> {tool.name}</span>
                </Button>
              )}
              {isAdmin && server.allowedTools.includes(tool.name) && (
                <Button
                  size="small"
                  weight="quiet"
                  disabled={allow.isBusy}
                  onClick={() => allow.run({ tool: tool.name, isAllowed: false })}
                >
                  Forbid <span className="sr-only"> {tool.name}</span>
                </Button>
              )}
            </span>
            {tool.changedAt !== null && (
              <span className="block text-caution-ink">
                The definition changed <TimeAgo instant={tool.changedAt} />. It is not called until someone
                trusts the new definition.
              </span>
            )}
            {tool.description !== null && (
              <span className="block text-ink-soft [overflow-wrap:anywhere]">
                <Visible text={cutText(tool.description, 20, 1_000)} />
              </span>
            )}
            <span className="block text-ink-faint" title={tool.hash}>
              pinned as {tool.hash.slice(0, 12)}
            </span>
          </li>
        ))}
      </ul>
    </>
  )
}

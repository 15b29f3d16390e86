/**
 * What nobody vouches for: the foreign sources that an agent had read before it suggested.
 */
import type { TaintKind } from "@tropism/domain/taint"
import type { SuggestionTask } from "@tropism/domain/task"
import { Link } from "@tanstack/react-router"
import type { ReactNode } from "react"
import { CautionIcon } from "../parts/icons.tsx"
import { Visible } from "../parts/visible.tsx"

const sourceWords: Readonly<Record<TaintKind, string>> = {
  object: "the object",
  relationship: "the relationship",
  attachment: "the file",
  mcpServer: "the MCP server",
  webhook: "the webhook",
  todo: "the todo",
  clientTool: "the client tool",
  context: "the tainted context"
}

const maxSources = 3

/** Says that the run had read what comes from outside. */
export const TaintNotice = ({ task }: { readonly task: SuggestionTask }): ReactNode => {
  const { untrusted } = task
  if (untrusted.length === 0) return null
  return (
    <p
      data-testid="untrusted-sources"
      className="flex items-start gap-2.5 rounded-lg border border-caution-line bg-caution px-3.5 py-2.5 text-xs text-caution-ink"
    >
      <CautionIcon className="mt-0.5" />
      <span className="min-w-0 [overflow-wrap:anywhere]">
        <strong className="font-semibold">Untrusted sources.</strong> The agent read{" "}
        {untrusted.slice(0, maxSources).map(({ id, kind, properties }, index) => (
          <span key={`${kind} ${id}`}>
            {index > 0 && ", "}
            {properties !== undefined && (
              <>
                <Visible text={properties.join(", ")} exact /> of{" "}
              </>
            )}
            {sourceWords[kind]} <TaintName kind={kind} id={id} />
          </span>
        ))}
        {untrusted.length > maxSources && ` and ${untrusted.length - maxSources} more`}. By approving, you
        take responsibility for this change.
      </span>
    </p>
  )
}

const TaintName = ({ kind, id }: { readonly kind: TaintKind; readonly id: string }): ReactNode =>
  kind === "object" ? (
    <Link
      to="/objects/$objectId"
      params={{ objectId: id }}
      className="font-mono underline underline-offset-2"
    >
      <Visible text={id} exact />
    </Link>
  ) : (
    <span className="font-mono">
      <Visible text={id} exact />
    </span>
  )

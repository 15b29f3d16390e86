/**
 * Conversations with agents: the list of one's own, and one of them beside it.
 */
import type { Conversation } from "@tropism/domain/conversation"
import { useQuery } from "@tanstack/react-query"
import { Link, useNavigate, useParams } from "@tanstack/react-router"
import type { ReactNode } from "react"
import { useConsole } from "../frame/console-context.tsx"
import { useKeys } from "../keys/use-keys.ts"
import { Button } from "../parts/button.tsx"
import { DataList } from "../parts/data-list.tsx"
import { EmptyState } from "../parts/empty-state.tsx"
import { Failure } from "../parts/failure.tsx"
import { PageHeader } from "../parts/page-header.tsx"
import { Skeleton } from "../parts/skeleton.tsx"
import { TimeAgo } from "../parts/time-ago.tsx"
import { Visible } from "../parts/visible.tsx"
import { agentsQuery } from "../server/agent-queries.ts"
import { conversationsQuery } from "../server/chat-queries.ts"
import { keptPlace } from "../server/whose.ts"
import { ConversationView, NewConversation } from "./conversation-view.tsx"
import { useTurn } from "./use-turn.ts"

export const ChatPage = (): ReactNode => {
  const { conversationId } = useParams({ strict: false })
  const { principal, project, canAnswer } = useConsole()
  const navigate = useNavigate()
  const agents = useQuery(agentsQuery(project.id))
  const turns = useTurn(project.id, keptPlace(principal.userId, project.id), (id) => {
    // Whoever has opened another one meanwhile stays there.
    if (conversationId === undefined)
      void navigate({ to: "/chat/$conversationId", params: { conversationId: id }, resetScroll: false })
  })
  const begin = () => navigate({ to: "/chat" })
  useKeys("Chat", [{ key: "n", shown: ["N"], means: "Start a conversation", run: begin }])
  return (
    <>
      <PageHeader title="Chat" lead="Chat with agents. Tool calls appear with each reply.">
        {canAnswer && (
          <Button shortcut="N" onClick={begin}>
            New conversation
          </Button>
        )}
      </PageHeader>
      <div className="grid gap-8 lg:grid-cols-[minmax(0,1fr)_18rem]">
        <section aria-label="Conversation" className="min-w-0">
          {agents.data === undefined && agents.error === null && <Skeleton label="Loading agents …" />}
          {agents.error !== null && <Failure error={agents.error} triesAgain />}
          {agents.data !== undefined &&
            (conversationId === undefined ? (
              <NewConversation agents={agents.data.items} turns={turns} />
            ) : (
              <ConversationView
                key={conversationId}
                conversationId={conversationId}
                agents={agents.data.items}
                turns={turns}
              />
            ))}
        </section>
        <section aria-label="Your conversations" className="min-w-0">
          <h2 className="mb-3 text-sm font-semibold">Your conversations</h2>
          <Conversations current={conversationId} />
        </section>
      </div>
    </>
  )
}

const Conversations = ({ current }: { readonly current: string | undefined }): ReactNode => {
  const { project } = useConsole()
  const { data, error } = useQuery(conversationsQuery(project.id))
  if (data === undefined)
    return error === null ? <Skeleton label="Loading your conversations …" /> : <Failure error={error} />
  if (data.items.length === 0)
    return (
      <EmptyState
        title="No conversations yet"
        command="npx tropism chat"
        does="starts a chat in the terminal"
      >
        Your conversations with agents appear here.
      </EmptyState>
    )
  return (
    <DataList label="Conversations" rows={data.items} keyOf={({ id }) => id} estimatedHeightPx={58}>
      {(conversation) => <Row conversation={conversation} isCurrent={conversation.id === current} />}
    </DataList>
  )
}

interface RowProps {
  readonly conversation: Conversation
  readonly isCurrent: boolean
}

const Row = ({ conversation, isCurrent }: RowProps): ReactNode => (
  <Link
    to="/chat/$conversationId"
    params={{ conversationId: conversation.id }}
    {...(isCurrent && { "aria-current": "page" })}
    className={`mb-1 block rounded-lg px-3 py-2 text-sm hover:bg-sunken ${isCurrent ? "bg-sunken font-medium" : ""}`}
  >
    <span className="block truncate">
      <Visible text={conversation.title} />
    </span>
    <span className="text-2xs text-ink-faint">
      <TimeAgo instant={conversation.updatedAt} />
    </span>
  </Link>
)

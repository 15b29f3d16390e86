/**
 * One conversation, or the beginning of one: what was said, what is being said, and where to write.
 */
import type { Agent } from "@tropism/domain/agent"
import type { Conversation, ConversationMessage } from "@tropism/domain/conversation"
import { useMutation, useQuery } from "@tanstack/react-query"
import { Link } from "@tanstack/react-router"
import { Effect } from "effect"
import type { ReactNode } from "react"
import { useConsole } from "../frame/console-context.tsx"
import { Failure } from "../parts/failure.tsx"
import { ChoiceField } from "../parts/form-fields.tsx"
import { Skeleton } from "../parts/skeleton.tsx"
import { useToasts } from "../parts/toasts.tsx"
import { useAddress } from "../parts/use-address.ts"
import { Visible } from "../parts/visible.tsx"
import { conversationQuery, messagesQuery } from "../server/chat-queries.ts"
import { call, inProject } from "../server/request.ts"
import { modelsQuery } from "../server/settings-queries.ts"
import { keptPlace } from "../server/whose.ts"
import { Composer } from "./composer.tsx"
import { useDraft } from "./use-draft.ts"
import { ConversationActions } from "./conversation-actions.tsx"
import type { Saying } from "./say.ts"
import { Transcript } from "./transcript.tsx"
import type { Turn, Turns } from "./use-turn.ts"
import { scriptNotice } from "./who-answers.ts"

interface ViewProps {
  readonly agents: ReadonlyArray<Agent>
  readonly turns: Turns
}

/** The beginning of a conversation, with TodoAssistant unless another agent is chosen. */
export const NewConversation = ({ agents, turns }: ViewProps): ReactNode => {
  const { canAnswer } = useConsole()
  const [address, change] = useAddress()
  const agent =
    agents.find(({ id }) => id === address["agentId"]) ??
    agents.find(({ name }) => name === "TodoAssistant") ??
    agents[0]
  if (agent === undefined)
    return <p className="text-sm text-ink-soft">No agent can chat yet. Create one first.</p>
  return (
    <>
      <h2 data-testid="new-conversation" className="mb-1 text-base font-semibold">
        New conversation
      </h2>
      <p className="mb-4 text-sm text-ink-soft">
        {canAnswer
          ? "Send a message to start. Tool calls appear with each reply."
          : "The agent replies to each message. Tool calls appear with each reply."}
      </p>
      <div className="max-w-xs">
        <ChoiceField
          label="Agent"
          value={agent.id}
          choices={agents.map(({ id, name }) => ({ value: id, label: name }))}
          onChange={(agentId) => change({ agentId })}
        />
      </div>
      <ScriptNotice agent={agent} />
      <Spoken
        agentName={agent.name}
        messages={[]}
        turns={turns}
        turn={turns.turn?.conversationId === undefined ? turns.turn : undefined}
        start={{ agentId: agent.id }}
        canSpeak={canAnswer}
      />
    </>
  )
}

interface ConversationViewProps extends ViewProps {
  readonly conversationId: string
}

export const ConversationView = ({ conversationId, agents, turns }: ConversationViewProps): ReactNode => {
  const { project, canAnswer } = useConsole()
  const { data: conversation, error } = useQuery(conversationQuery(project.id, conversationId))
  const said = useQuery(messagesQuery(project.id, conversationId))
  const turn = turns.turn?.conversationId === conversationId ? turns.turn : undefined
  // Of one that has just begun is known enough to go on writing.
  const agentId = conversation?.agentId ?? turn?.saying.agentId
  if (agentId === undefined)
    return error === null ? <Skeleton label="Loading conversation …" /> : <Failure error={error} />
  const agent = agents.find(({ id }) => id === agentId)
  const agentName = agent?.name ?? "the agent"
  const messages = before(said.data?.messages ?? [], turn)
  return (
    <>
      {conversation !== undefined && <Head conversation={conversation} agentName={agentName} />}
      {agent !== undefined && <ScriptNotice agent={agent} />}
      {said.error !== null && <Failure error={said.error} hasOlder={said.data !== undefined} triesAgain />}
      {said.data?.isWhole === false && (
        <p className="mb-3 text-xs text-caution-ink">
          Older messages are not shown here. Export includes all of them.
        </p>
      )}
      <Spoken
        agentName={agentName}
        messages={messages}
        turns={turns}
        turn={turn}
        start={{ conversationId, ...afterOf(messages) }}
        canSpeak={canAnswer}
      />
    </>
  )
}

const Head = ({
  conversation,
  agentName
}: {
  readonly conversation: Conversation
  readonly agentName: string
}) => (
  <div className="mb-4 flex flex-wrap items-start justify-between gap-3">
    <div className="min-w-0">
      <h2 className="text-base font-semibold [overflow-wrap:anywhere]">
        <Visible text={conversation.title} />
      </h2>
      <p className="text-xs text-ink-soft">
        with{" "}
        <Link
          to="/agents/$agentId"
          params={{ agentId: conversation.agentId }}
          className="text-leaf underline underline-offset-2"
        >
          <Visible text={agentName} />
        </Link>
      </p>
    </div>
    <div className="flex flex-wrap gap-2">
      <ConversationActions key={conversation.id} conversation={conversation} />
    </div>
  </div>
)

const ScriptNotice = ({ agent }: { readonly agent: Agent }): ReactNode => {
  const { project } = useConsole()
  const { data: models } = useQuery(modelsQuery(project.id))
  const notice = models === undefined ? undefined : scriptNotice(agent, models)
  if (notice === undefined) return null
  return (
    <p
      data-testid="script-notice"
      className="my-4 rounded-xl border border-caution-line bg-caution px-4 py-2.5 text-xs text-caution-ink"
    >
      <Visible text={notice} />
    </p>
  )
}

interface SpokenProps {
  readonly agentName: string
  readonly messages: ReadonlyArray<ConversationMessage>
  readonly turns: Turns
  readonly turn: Turn | undefined
  readonly start: Omit<Saying, "key" | "message">
  readonly canSpeak: boolean
}

const Spoken = ({ agentName, messages, turns, turn, start, canSpeak }: SpokenProps): ReactNode => {
  const { principal, project } = useConsole()
  const { ending, speak, tryAgain, turn: anyTurn } = turns
  const show = useToasts()
  const stop = useMutation({
    mutationFn: (conversationId: string) =>
      Effect.runPromise(
        call<{ readonly detail: string } | null>(
          inProject(project.id, `contexts/${encodeURIComponent(`chat-${conversationId}`)}/interrupt`),
          {
            method: "POST"
          }
        )
      ),
    onSuccess: (later) => {
      if (later !== null) show({ tone: "done", title: "Stopping", sentence: later.detail })
    }
  })
  const isHere =
    ending !== undefined && isOf(ending.saying, ending.answer?.conversationId, start.conversationId)
  const stoppable = turn?.conversationId
  const [draft, write] = useDraft(
    keptPlace(principal.userId, project.id),
    start.conversationId,
    turn !== undefined && turn.saying.conversationId === undefined,
    isHere ? ending : undefined
  )
  const say = (message: string) => {
    // What is said again may stand in the field by now, or something else that is yet to be said.
    if (draft === message) write("")
    speak({ ...start, message })
  }
  return (
    <>
      <Transcript
        agentName={agentName}
        messages={messages}
        turn={turn}
        ending={isHere ? ending : undefined}
        onRetry={say}
        onTryAgain={tryAgain}
      />
      {stop.error !== null && turn !== undefined && <Failure error={stop.error} />}
      {canSpeak ? (
        <Composer
          agentName={agentName}
          isAtWork={anyTurn !== undefined}
          hasFocus={turn !== undefined}
          text={draft}
          onWrite={write}
          onSend={say}
          onStop={stoppable === undefined ? undefined : () => stop.mutate(stoppable)}
        />
      ) : (
        <p
          data-testid="may-not-speak"
          className="mt-4 rounded-xl border border-line bg-sunken px-4 py-3 text-sm text-ink-soft"
        >
          Your role is read-only. Editors, reviewers and admins can send messages. A project admin can change
          roles in the settings.
        </p>
      )}
    </>
  )
}

/** Whether what ended is of this conversation: of a new one only what the server refused has none yet. */
const isOf = (saying: Saying, answered: string | undefined, conversationId: string | undefined): boolean =>
  (answered ?? saying.conversationId) === conversationId

/** The messages before the turn that is open: what belongs to the turn is told by the turn. */
const before = (
  messages: ReadonlyArray<ConversationMessage>,
  turn: Turn | undefined
): ReadonlyArray<ConversationMessage> => {
  if (turn === undefined) return messages
  const { after } = turn.saying
  return after === undefined ? [] : messages.slice(0, messages.findIndex(({ id }) => id === after) + 1)
}

const afterOf = (messages: ReadonlyArray<ConversationMessage>): { readonly after?: string } => {
  const last = messages.at(-1)
  return last === undefined ? {} : { after: last.id }
}

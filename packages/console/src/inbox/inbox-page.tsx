/**
 * The inbox: all that waits for a person, to be answered, decided or done.
 */
import type { PromotionTask } from "@tropism/domain/task"
import type { ReactNode } from "react"
import { useConsole } from "../frame/console-context.tsx"
import { CheckField } from "../parts/form-fields.tsx"
import { EditDialog } from "./edit-dialog.tsx"
import { EmptyInbox, InboxFailure, InboxSkeleton } from "./inbox-without-list.tsx"
import { LeftAside } from "./left-aside.tsx"
import { InboxPlace, LinkedTask, type Place } from "./linked-card.ts"
import { LinkedSuggestion } from "./linked-suggestion.tsx"
import { PromotionCard } from "./promotion-card.tsx"
import { QuestionList } from "./question-list.tsx"
import { RejectDialog } from "./reject-dialog.tsx"
import { SelectionBar } from "./selection-bar.tsx"
import { StoppedList } from "./stopped-list.tsx"
import { SuggestionGroups } from "./suggestion-groups.tsx"
import { TaskSection } from "./task-frame.tsx"
import { TodoList } from "./todo-list.tsx"
import { isDenied } from "../suggestion/staleness.ts"
import { UndoCard } from "./undo-card.tsx"
import { headingId, useCardFocus } from "./use-card-focus.ts"
import { useInboxKeys } from "./use-inbox-keys.ts"
import { useInbox } from "./use-inbox.ts"
import { useLinkedInView } from "./use-linked-in-view.ts"
import { useMoving } from "./use-moving.ts"

interface InboxPageProps {
  /** The suggestion that a link leads to. */
  readonly linkedTaskId?: string
}

export const InboxPage = ({ linkedTaskId }: InboxPageProps): ReactNode => {
  const state = useConsole()
  const { project, canAnswer, canTakeBack, keyMap } = state
  const all = useInbox(state, linkedTaskId)
  const { pending, groups, inbox, dispatch, rejection, editing, actions, perform } = all
  const isDialogOpen = rejection.tasks.length > 0 || editing.task !== undefined || keyMap.isOpen
  useCardFocus(inbox, isDialogOpen)
  const { isMoving, list } = useMoving(all.order)
  useInboxKeys({ isMoving, isListening: keyMap.areKeysOn, onCommand: perform })
  const tasks = pending.data?.tasks
  const isListed = tasks?.some(({ id }) => id === linkedTaskId) ?? false
  useLinkedInView(linkedTaskId, isListed)
  return (
    <Around linkedTaskId={linkedTaskId} place={all.place}>
      <h1 id={headingId} tabIndex={-1} className="sr-only">
        Inbox
      </h1>
      {linkedTaskId !== undefined && tasks && !isListed && (
        <LinkedSuggestion projectId={project.id} taskId={linkedTaskId} />
      )}
      {pending.error && <InboxFailure error={pending.error} hasList={tasks !== undefined} />}
      {pending.isPending && <InboxSkeleton />}
      {all.mine.isOffered && <OnlyMine isOnly={all.mine.isOnly} onChange={all.mine.set} />}
      {all.mine.isOnly && all.order.length === 0 && <NothingForMe />}
      {tasks?.length === 0 && all.stopped.length === 0 && <EmptyInbox projectId={project.id} />}
      <LeftAside projectId={project.id} />
      <QuestionList projectId={project.id} questions={all.questions} canAnswer={canAnswer} />
      <StoppedList stopped={all.stopped} />
      <TaskSection title="Pending undos" words="of agents' changes" count={all.undos.length}>
        {all.undos.map((task) => (
          <li key={`${task.id} ${task.digest}`} className="enter min-w-0">
            <UndoCard projectId={project.id} task={task} canDecide={canTakeBack} />
          </li>
        ))}
      </TaskSection>
      <Promotions projectId={project.id} tasks={all.promotions} canDecide={canTakeBack} />
      <SuggestionGroups
        list={list}
        projectId={project.id}
        groups={groups}
        inbox={inbox}
        markedId={all.markedId}
        canDecide={canAnswer}
        askingId={all.askingId}
        actions={actions}
        onSelectAll={(ids, isSelected) => dispatch({ type: "selectedAll", ids, isSelected })}
      />
      <TodoList projectId={project.id} tasks={all.todos} canSettle={canAnswer} />
      {pending.data?.isWhole === false && <NewestOnly count={pending.data.tasks.length} />}
      <SelectionBar
        selectedCount={inbox.selected.size}
        deniedCount={all.shown.filter((task) => inbox.selected.has(task.id) && isDenied(task)).length}
        decidingCount={[...inbox.selected].filter((id) => inbox.deciding.has(id)).length}
        onApprove={() => perform("approveSelected")}
        onReject={() => perform("rejectSelected")}
        onClear={() => perform("clear")}
      />
      <Dialogs projectId={project.id} all={all} />
    </Around>
  )
}

interface DialogsProps {
  readonly projectId: string
  readonly all: ReturnType<typeof useInbox>
}

const Dialogs = ({ projectId, all }: DialogsProps): ReactNode => {
  const { decide, editing, rejection } = all
  return (
    <>
      <RejectDialog
        projectId={projectId}
        listed={all.shown}
        tasks={rejection.tasks}
        reason={rejection.reason}
        onReject={(rejected, reason) => {
          decide("reject", rejected, { reason }).then((refusals) =>
            rejection.keep({ reason, ids: new Set(refusals.keys()) })
          )
          rejection.close()
        }}
        onClose={rejection.close}
        onClosed={all.goOn}
      />
      <EditDialog
        projectId={projectId}
        listed={all.shown}
        task={editing.task}
        onApprove={editing.approve}
        onDone={editing.done}
        onCancel={editing.cancel}
        onClosed={all.goOn}
      />
    </>
  )
}

interface PromotionsProps {
  readonly projectId: string
  readonly tasks: ReadonlyArray<PromotionTask>
  readonly canDecide: boolean
}

const Promotions = ({ projectId, tasks, canDecide }: PromotionsProps): ReactNode => (
  <TaskSection title="Earned trust" words="to review" count={tasks.length}>
    {tasks.map((task) => (
      <li key={task.id} className="enter min-w-0">
        <PromotionCard projectId={projectId} task={task} canDecide={canDecide} />
      </li>
    ))}
  </TaskSection>
)

interface OnlyMineProps {
  readonly isOnly: boolean
  readonly onChange: (isOnly: boolean) => void
}

const OnlyMine = ({ isOnly, onChange }: OnlyMineProps): ReactNode => (
  <div data-testid="only-mine" className="mb-6 px-1">
    <CheckField label="Assigned to me" isChecked={isOnly} onChange={onChange} />
  </div>
)

const NothingForMe = (): ReactNode => (
  <p className="mb-6 px-1 text-sm text-ink-soft">
    Nothing is assigned to you. Others may have pending reviews.
  </p>
)

/** What stands below a list that is longer than what is drawn. */
const NewestOnly = ({ count }: { readonly count: number }): ReactNode => (
  <p className="mt-8 text-center text-sm text-ink-faint">
    Showing the latest {count.toLocaleString()}. Older ones appear as you review these.
  </p>
)

interface AroundProps {
  readonly linkedTaskId: string | undefined
  readonly place: Place
  readonly children: ReactNode
}

/** Where a link led, and where a person is, for every card below. */
const Around = ({ linkedTaskId, place, children }: AroundProps): ReactNode => (
  <LinkedTask value={linkedTaskId}>
    <InboxPlace value={place}>{children}</InboxPlace>
  </LinkedTask>
)
